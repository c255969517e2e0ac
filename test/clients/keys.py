"""Reads keys of several types with packaging/contrib/python/sequins_client.py: python3 keys.py ADDR DB. The database has the keys 0, 5, -7, 18446744073709551615 and k."""

import os
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging", "contrib", "python"))
sys.dont_write_bytecode = True

from sequins_client import Client  # noqa: E402

addr, db = sys.argv[1:]
with Client([addr], timeout=30) as client:
    present = ["k", b"k", "5", 5, 0, -7, 2**64 - 1, numpy.int64(5), numpy.int8(-7), numpy.uint64(2**64 - 1), numpy.str_("k"), numpy.bytes_(b"k"), numpy.array(5)]
    for key in present:
        value = client.get(db, key).data
        assert value, (key, type(key), value)
        assert client.session().get(db, key).data == value
    assert all(client.multi_get(db, present).values)
    assert all(client.multi_get(db, numpy.array([5, 0, -7])).values)
    assert client.get(db, 6).data is None
    for key in [True, False, None, 5.0, numpy.float64(5), numpy.bool_(True), [1, 2], (5,), bytearray(b"k"), memoryview(b"k"), numpy.array([5, 0]), object()]:
        for read in (client.get, lambda db, key: client.multi_get(db, ["k", key])):
            try:
                raise SystemExit("%r is read as %r" % (key, read(db, key)))
            except TypeError:
                pass
    for keys in ["k", b"k"]:
        try:
            raise SystemExit("%r is read as %r" % (keys, client.multi_get(db, keys)))
        except TypeError:
            pass
