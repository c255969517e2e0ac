"""Runs packaging/contrib/python/sequins_client.py for tests: python3 drive.py MODE ARGS, with keys in hexadecimal on stdin.

partition PARTITIONER N... prints the partitions of each key, of each number of them
read DB ADDR...            prints the version and the value of each key in hexadecimal, or -, as get, session and multi_get read it
refuse ADDR DB...          prints the exceptions of two reads of each key in each database
repeat DB OPTIONS ADDR...  reads each key, one after the other, with a client of OPTIONS, which are the arguments of Client in JSON; prints the
                           value or the exception
first DB OPTIONS ADDR...   is repeat with a new client for each key
accept                     prints for each key, as an address, whether a client accepts it
idle DB ADDR               reads a key in eight threads at a time, and then in one until stdin ends; keeps idle connections for 0.2 seconds
walk N DB OPTIONS ADDR...  reads the keys key-0000000 to key-N at random in three threads, each with a session, until stdin ends; prints the
                           thread, the key, the version and the value of each, or the exception
"""

import json
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging", "contrib", "python"))
sys.dont_write_bytecode = True

import sequins_client  # noqa: E402


def shown(data):
    return "-" if data is None else "=" + data.hex()


def read(keys, db, *addrs):
    with sequins_client.Client(addrs, token=os.environ.get("TOKEN", ""), timeout=30) as client:
        session = client.session()
        for at in range(0, len(keys), 200):
            some = keys[at:at + 200]
            batch = session.multi_get(db, some)
            session = client.session(session.export())
            for key, data in zip(some, batch.values):
                value, again = client.get(db, key), session.get(db, key)
                assert value == again and value == (data, batch.version), (key, value, again, data)
                print(value.version, shown(value.data))


def repeat(keys, db, options, *addrs):
    with sequins_client.Client(addrs, **json.loads(options)) as client:
        for key in keys:
            try:
                print(shown(client.get(db, key).data))
            except sequins_client.SequinsError as e:
                print(type(e).__name__, e)


def first(keys, *args):
    for key in keys:
        repeat([key], *args)


def idle(db, addr):
    sequins_client._MAX_IDLE = 0.2
    with sequins_client.Client([addr], refresh=None, timeout=30, attempt_timeout=30) as client:
        threads = [threading.Thread(target=client.get, args=(db, "k")) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print("read", flush=True)
        stop = threading.Event()
        threading.Thread(target=lambda: (sys.stdin.read(), stop.set())).start()
        while not stop.is_set():
            client.get(db, "k")
            time.sleep(0.01)


def walk(n, db, options, *addrs):
    lock, stop = threading.Lock(), threading.Event()
    client = sequins_client.Client(addrs, **json.loads(options))

    def reader(number):
        session = client.session()
        while not stop.is_set():
            some = ["key-%07d" % random.randrange(int(n)) for _ in range(random.choice([1, 5]))]
            try:
                if len(some) == 1:
                    value = session.get(db, some[0])
                    values, version = [value.data], value.version
                else:
                    values, version = session.multi_get(db, some)
                lines = ["%d %s %s %s" % (number, key, version, shown(data)) for key, data in zip(some, values)]
            except Exception as e:
                lines = ["error %s %s" % (type(e).__name__, e)]
            with lock:
                print("\n".join(lines), flush=True)
            time.sleep(0.002)

    threads = [threading.Thread(target=reader, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    stop.set()
    for thread in threads:
        thread.join()
    client.close()


def main(mode, *args):
    if mode == "walk":
        walk(*args)
        return
    if mode == "idle":
        idle(*args)
        return
    keys = [bytes.fromhex(line) for line in sys.stdin]
    if mode == "partition":
        for key in keys:
            print(*(sequins_client.partition(args[0], key, int(n)) for n in args[1:]))
    elif mode == "read":
        read(keys, *args)
    elif mode == "repeat":
        repeat(keys, *args)
    elif mode == "first":
        first(keys, *args)
    elif mode == "accept":
        for key in keys:
            try:
                sequins_client.Client([key.decode()]).close()
                print("yes")
            except ValueError:
                print("no")
    elif mode == "refuse":
        for db in args[1:]:
            with sequins_client.Client(args[:1], timeout=3, attempt_timeout=0.5, max_value=1000, max_batch=1000) as client:
                for key in keys:
                    for call in (lambda: client.get(db, key), lambda: client.multi_get(db, [key, key])):
                        try:
                            print("read", call())
                        except Exception as e:
                            print(type(e).__name__, *str(e).split())


main(*sys.argv[1:])
