"""Runs contrib/python/sequins_client.py for tests: python3 drive.py MODE ARGS, with keys in hexadecimal on stdin.

partition PARTITIONER N    prints the partition of each key
read DB ADDR...            prints the version and the value of each key in hexadecimal, or -, as get, session and multi_get read it
refuse ADDR DB             prints the exception of a read of each key
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "contrib", "python"))
sys.dont_write_bytecode = True

import sequins_client  # noqa: E402


def shown(data):
    return "-" if data is None else "=" + data.hex()


def read(keys, db, *addrs):
    with sequins_client.Client(addrs, token=os.environ.get("TOKEN", ""), timeout=30) as client:
        session = client.session()
        for at in range(0, len(keys), 1000):
            some = keys[at:at + 1000]
            batch = session.multi_get(db, some)
            session = client.session(session.export())
            for key, data in zip(some, batch.values):
                value, again = client.get(db, key), session.get(db, key)
                assert value == again and value == (data, batch.version), (key, value, again, data)
                print(value.version, shown(value.data))


def main(mode, *args):
    keys = [bytes.fromhex(line) for line in sys.stdin]
    if mode == "partition":
        for key in keys:
            print(sequins_client.partition(args[0], key, int(args[1])))
    elif mode == "read":
        read(keys, *args)
    elif mode == "refuse":
        with sequins_client.Client(args[:1], timeout=3, attempt_timeout=0.5, max_value=1000, max_batch=1000) as client:
            for key in keys:
                for call in (lambda: client.get(args[1], key), lambda: client.multi_get(args[1], [key, key])):
                    try:
                        print("read", call())
                    except Exception as e:
                        print(type(e).__name__, e)


main(*sys.argv[1:])
