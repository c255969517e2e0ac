"""Reads from sequins with redis-py, and prints what it has read: see clients_test.go."""
import sys

import redis

host, port, protocol = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
r = redis.Redis(host=host, port=port, protocol=protocol, client_name="test")
print("get", r.get("words/key-001").decode())
print("absent", r.get("words/nokey"))
print("mget", ",".join("nil" if v is None else v.decode() for v in r.mget("words/key-001", "words/nokey", "words/key-002")))
print("hget", r.hget("words", "key-003").decode())
print("hmget", ",".join("nil" if v is None else v.decode() for v in r.hmget("words", ["key-003", "nokey"])))
print("exists", r.exists("words/key-001", "words/nokey"), "strlen", r.strlen("words/large"))
p = r.pipeline(transaction=False)
for i in range(300):
    p.get("words/key-%03d" % i)
print("pipeline", sum(v.decode() == "value-%d" % i for i, v in enumerate(p.execute())))
print("large", r.get("words/large") == b"0123456789" * 20000)
print("scan", sum(1 for _ in r.hscan_iter("words", match="key-*", count=77)), "hlen", r.hlen("words"))
try:
    r.set("words/x", "y")
except redis.exceptions.ResponseError:
    print("write refused")
print("ping", r.ping())
