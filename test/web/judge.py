"""Judges of package web: what header fields mean to WebOb, and what Python's libraries get of a node."""
import json
import sys

import requests
import urllib3
import zstandard
from webob.acceptparse import create_accept_encoding_header, create_accept_header


def coding(field):
    """The content coding for an Accept-Encoding field: "" for none, "?" if the client accepts nothing."""
    header = create_accept_encoding_header(field)
    offers = [name for name, _ in header.acceptable_offers(["zstd", "gzip", "identity"])]
    mentioned = {name.lower() for name, _ in header.parsed}
    if not mentioned & {"identity", "*"} and len(offers) > 1:
        offers.remove("identity")  # acceptable, and without a weight: the client names what it would rather have
    return "?" if not offers else "" if offers[0] == "identity" else offers[0]


def weights(line):
    """The weights of media types in an Accept field."""
    field, *offers = json.loads(line)
    accepted = dict(create_accept_header(field).acceptable_offers(offers))
    return json.dumps([accepted.get(offer, 0) for offer in offers])


def clients(base, size):
    """Reads the value of /words/large, of a repeated letter, with each client."""
    want = b"x" * int(size)
    for accepts, used in [("gzip", "gzip"), ("zstd", "zstd"), ("gzip, deflate, br, zstd", "zstd"), ("identity", None), (None, None)]:
        r = requests.get(base + "/words/large", headers={"Accept-Encoding": accepts})
        assert r.content == want, (accepts, len(r.content))
        assert r.headers.get("Content-Encoding") == used, (accepts, r.headers)
        assert r.headers["X-Sequins-Version"] == "1" and ("Accept-Encoding" in r.headers["Vary"]), r.headers
        if used:
            assert r.headers["ETag"].startswith('W/"') and "Accept-Ranges" not in r.headers, r.headers
        again = requests.get(base + "/words/large", headers={"Accept-Encoding": accepts, "If-None-Match": r.headers["ETag"]})
        assert again.status_code == 304 and again.headers["ETag"] == r.headers["ETag"], again.headers
        part = requests.get(base + "/words/large", headers={"Accept-Encoding": accepts, "Range": "bytes=5-9"})
        assert part.status_code == 206 and part.content == want[5:10] and "Content-Encoding" not in part.headers, part.headers

    # The defaults of requests, and a stream that is decoded while it arrives.
    assert requests.get(base + "/words/large").content == want
    pool = urllib3.PoolManager()
    for field in ("gzip", "zstd"):
        r = pool.request("GET", base + "/words?prefix=", headers={"Accept-Encoding": field}, preload_content=False)
        lines = b"".join(r.stream(1000, decode_content=True)).splitlines()
        assert r.headers["Content-Encoding"] == field and json.loads(lines[-1])["records"] == len(lines) - 1 > 100, lines[-1]
    status = requests.get(base + "/").json()
    assert "words" in status["dbs"]

    # One frame, which decoders that stop at the first can read, of a window that browsers accept.
    raw = pool.request("GET", base + "/words/large", headers={"Accept-Encoding": "zstd"}, decode_content=False).data
    frame = zstandard.get_frame_parameters(raw)
    assert frame.window_size <= 8 << 20, frame.window_size
    one = zstandard.ZstdDecompressor().decompressobj()
    assert one.decompress(raw) == want and one.unused_data == b""

    # Errors as problems, which json() reads.
    r = requests.get(base + "/words/absent", headers={"Accept": "application/json"})
    assert r.status_code == 404 and r.json()["detail"] == "no such key" and r.json()["status"] == 404, r.text
    print("ok")


def main(command, *args):
    if command == "clients":
        clients(*args)
    for line in sys.stdin:
        print({"coding": lambda: coding(json.loads(line)), "weights": lambda: weights(line)}[command]())


main(*sys.argv[1:])
