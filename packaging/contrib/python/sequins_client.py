"""A client of sequins in one file, for Python 3.8 and later. It needs the standard library only.

    from sequins_client import Client

    with Client(["node1:9599", "node2:9599"]) as client:
        value = client.get("words", "apple")
        print(value.data, value.version)        # data is None if the key is absent
        batch = client.multi_get("words", ["apple", "beet"])
        print(batch.values, batch.version)      # all from one version

A Client learns from any node which nodes hold which keys (GET /<db>?partitions), asks one of them directly, and others
if it fails. Nodes fetch what they do not hold, so a map that is missing or out of date costs time and never changes a
value. The map is requested on a thread of its own. A Client is safe for use by several threads. It sends no hedged
requests.
"""

import codecs
import http.client
import io
import itertools
import json
import operator
import random
import re
import ssl
import struct
import threading
import time
from typing import Dict, FrozenSet, List, NamedTuple, Optional, Sequence, SupportsIndex, Tuple, Union
from urllib.parse import parse_qsl, quote_from_bytes, urlencode, urlsplit

Key = Union[str, bytes, SupportsIndex]  # an integer, also one of numpy, is its decimal text
_Pool = Tuple[str, bool]  # a node, and whether its connections are for GETs of keys, which are faster without other requests


class SequinsError(Exception):
    """No node has given a usable answer."""


class NoDatabase(SequinsError):
    """The nodes have no such database."""


class Denied(SequinsError):
    """The token is missing, unknown, or not valid for the database."""


class Behind(SequinsError):
    """No node serves a version as new as the session has seen."""


class TooLarge(SequinsError):
    """The value or the batch exceeds a limit."""


class Value(NamedTuple):
    data: Optional[bytes]  # None: the key is absent
    version: str


class Batch(NamedTuple):
    values: List[Optional[bytes]]  # in the order of the keys; None: the key is absent
    version: str


MAX_KEY = 64 << 10
_MAX_MAP = 4 << 20
_MAX_IDLE = 90.0  # seconds for which a connection is kept without a request; nodes close it after two minutes by default
_MAX_REFRESHING = 8  # maps that are requested at a time
_BINARY = "application/octet-stream"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=+,@:-]{0,254}")
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]{1,253}):([0-9]{1,5})")


def _is_address(node: str) -> bool:
    parts = _ADDRESS.fullmatch(node)
    return parts is not None and 0 < int(parts.group(2)) < 1 << 16


def partition(partitioner: str, key: bytes, partitions: int) -> int:
    """The partition of a key. Raises ValueError for an unknown partitioner."""
    if partitioner == "string":
        h = _polynomial(0, key) & 0x7FFFFFFF
    elif partitioner == "hadoop":
        h = _polynomial(1, struct.unpack("%db" % len(key), key)) & 0x7FFFFFFF
    elif partitioner == "spark":
        h = _polynomial(0, _utf16(key))
        h -= (h & 0x80000000) << 1  # signed; the remainder of Python is not negative
    elif partitioner == "cascading":
        h = (31 + _polynomial(0, _utf16(key))) & 0x7FFFFFFF
    elif partitioner == "kafka":
        h = _murmur2(key) & 0x7FFFFFFF
    elif partitioner in ("murmur3", "murmur3-int", "murmur3-long"):
        h = _of_spark(key, _number(partitioner, key))
        h -= (h & 0x80000000) << 1
    elif partitioner in ("hive", "hive-int", "hive-long"):
        h = _of_hive(key, _number(partitioner, key)) & 0x7FFFFFFF
    elif partitioner in ("hive-murmur3", "hive-murmur3-int", "hive-murmur3-long"):
        h = _of_hive3(key, _number(partitioner, key)) & 0x7FFFFFFF
    else:
        raise ValueError("unknown partitioner %r" % partitioner)
    return h % partitions


_DECIMAL = re.compile(rb"0|-?[1-9][0-9]{0,18}")


def _number(partitioner: str, key: bytes) -> Optional[bytes]:
    """The number that a key is, for a function of numbers, as 4 or 8 big-endian bytes; None for all other keys."""
    size = 4 if partitioner.endswith("-int") else 8 if partitioner.endswith("-long") else 0
    if size == 0 or not _DECIMAL.fullmatch(key):
        return None
    try:
        return int(key).to_bytes(size, "big", signed=True)
    except OverflowError:
        return None


def _of_spark(key: bytes, number: Optional[bytes]) -> int:
    if number is not None:
        key = number[::-1]
    words = len(key) & ~3
    h = _murmur3_words(42, key[:words])
    for b in struct.unpack("%db" % (len(key) - words), key[words:]):
        h = _mix3(h, b & 0xFFFFFFFF)
    return _finish3(h, len(key))


def _of_hive(key: bytes, number: Optional[bytes]) -> int:
    if number is None:
        return _polynomial(0, struct.unpack("%db" % len(key), key))
    h = 0
    for i in range(0, len(number), 4):
        h ^= int.from_bytes(number[i : i + 4], "big")
    return h


def _of_hive3(key: bytes, number: Optional[bytes]) -> int:
    if number is not None:
        key = number
    words = len(key) & ~3
    h, k = _murmur3_words(104729, key[:words]), 0
    for i, b in enumerate(struct.unpack("%db" % (len(key) - words), key[words:])):
        k ^= b << 8 * i
    if words < len(key):
        h ^= _scramble3(k & 0xFFFFFFFF)
    return _finish3(h, len(key))


def _rotate(x: int, n: int) -> int:
    return (x << n | x >> (32 - n)) & 0xFFFFFFFF


def _scramble3(k: int) -> int:
    return _rotate(k * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF


def _mix3(h: int, k: int) -> int:
    return (_rotate(h ^ _scramble3(k), 13) * 5 + 0xE6546B64) & 0xFFFFFFFF


def _murmur3_words(h: int, key: bytes) -> int:
    for k in struct.unpack("<%dI" % (len(key) // 4), key):
        h = _mix3(h, k)
    return h


def _finish3(h: int, length: int) -> int:
    h ^= length
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return h ^ h >> 16


def _murmur2(key: bytes) -> int:
    m = 0x5BD1E995
    h = 0x9747B28C ^ len(key)
    words = len(key) & ~3
    for k in struct.unpack("<%dI" % (words // 4), key[:words]):
        k = k * m & 0xFFFFFFFF
        h = (h * m ^ (k ^ k >> 24) * m) & 0xFFFFFFFF
    for i, b in enumerate(key[words:]):
        h ^= b << 8 * i
    if words < len(key):
        h = h * m & 0xFFFFFFFF
    h = (h ^ h >> 13) * m & 0xFFFFFFFF
    return h ^ h >> 15


def _polynomial(h: int, units) -> int:
    for unit in units:
        h = (31 * h + unit) & 0xFFFFFFFF
    return h


# Nodes count each byte of invalid UTF-8 as one character, and Python several as one.
codecs.register_error("sequins.bytes", lambda e: ("\ufffd" * (e.end - e.start), e.end))


def _utf16(key: bytes) -> Tuple[int, ...]:
    """The UTF-16 units of a key in UTF-8."""
    units = key.decode("utf-8", "sequins.bytes").encode("utf-16-be")
    return struct.unpack(">%dH" % (len(units) // 2), units)


class Session:
    """Reads of a session never go back to an older version of a database. It is safe for use by several threads."""

    def __init__(self, client: "Client", exported: str = ""):
        self._client, self._lock, self._seen = client, threading.Lock(), {}  # type: Client, threading.Lock, Dict[str, str]
        if len(exported) > 64 << 10:
            raise ValueError("a session of %d bytes" % len(exported))
        pairs = parse_qsl(exported, keep_blank_values=True, strict_parsing=True) if exported else []
        for db, version in pairs:
            if not _NAME.fullmatch(db) or not _NAME.fullmatch(version):
                raise ValueError("this is no session")
            self._advance(db, version)

    def get(self, db: str, key: Key) -> Value:
        value = self._client._get(db, key, self._version(db))
        self._advance(db, value.version)
        return value

    def multi_get(self, db: str, keys: Sequence[Key]) -> Batch:
        batch = self._client._multi_get(db, keys, self._version(db))
        if batch.version:
            self._advance(db, batch.version)
        return batch

    def export(self) -> str:
        """The session as a string for Client.session, such as a cookie."""
        with self._lock:
            return urlencode(sorted(self._seen.items()))

    def _version(self, db: str) -> str:
        with self._lock:
            return self._seen.get(db, "")

    def _advance(self, db: str, version: str) -> None:
        with self._lock:
            self._seen[db] = max(self._seen.get(db, ""), version)


class _Map(NamedTuple):
    version: str
    partitioner: str
    nodes: List[str]
    replicas: List[List[int]]
    near: FrozenSet[str]  # the nodes in the zone of the client

    def nodes_of(self, key: bytes) -> List[str]:
        """The nodes that hold a key, those in the zone of the client first."""
        if not self.replicas:
            return []
        nodes = [self.nodes[n] for n in self.replicas[partition(self.partitioner, key, len(self.replicas))]]
        return sorted(nodes, key=lambda node: node not in self.near) if self.near else nodes


class _Failure(Exception):
    def __init__(self, error: SequinsError, final=False, wait=0.0, failing=False, broken=False):
        self.error, self.final, self.wait = error, final, wait
        self.failing = failing  # the node is asked after others for a while
        self.broken = broken or failing  # another round may succeed


class _Answer(NamedTuple):
    status: int
    version: str
    media: str
    retry_after: float
    body: bytes


class _Limited:
    """Adds a limit of time to a connection: whatever it does ends at until, of time.monotonic(), with an OSError."""

    until = 0.0
    idle_since = 0.0

    def left(self) -> float:
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        return left

    def connect(self) -> None:
        self.timeout = self.left()
        super().connect()

    def send(self, data) -> None:
        if self.sock is None:
            self.connect()
        self.sock.settimeout(self.left())
        super().send(data)

    def response_class(self, sock, *args, **kwargs) -> http.client.HTTPResponse:
        return http.client.HTTPResponse(_Reader(self, sock), *args, **kwargs)


class _HTTP(_Limited, http.client.HTTPConnection):
    pass


class _HTTPS(_Limited, http.client.HTTPSConnection):
    pass


class _Reader(io.RawIOBase):
    """Reads from the socket of a connection within its limit of time, which that of a socket is not: it begins again with each byte."""

    def __init__(self, connection: _Limited, sock):
        self._connection, self._sock, self._file = connection, sock, sock.makefile("rb", buffering=0)

    def makefile(self, _) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer):
        self._sock.settimeout(self._connection.left())
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


class Client:
    """Reads from the nodes of one cluster.

    addrs            host:port, or http:// or https:// and host:port, all with the same scheme
    token            is sent as "Authorization: Bearer <token>"; never over http if addrs are https
    timeout          of a call, in seconds
    attempt_timeout  a node counts as failed if more seconds pass until the header of its answer, or then between two parts of it; as long
                     as there is another node to ask, half of the time that is left for the call is the limit of the first
    refresh          seconds between two requests for the map of a database; None: ask only addrs, such as a load balancer
    max_value        limit of a value, max_batch of the values of a batch together, in bytes
    zone             the zone of this program, as sharding.zone names that of a node: of the nodes that hold a key, those in it are asked first
    """

    def __init__(self, addrs: Sequence[str], token: str = "", timeout: float = 5.0, attempt_timeout: float = 1.0, refresh: Optional[float] = 30.0,
                 ssl_context: Optional[ssl.SSLContext] = None, max_value: int = 64 << 20, max_batch: int = 64 << 20, zone: str = ""):
        split = [urlsplit(a if "://" in a else "//" + a, scheme="https" if ssl_context else "http") for a in addrs]
        self._seeds = [s.netloc for s in split]
        if not split or len({s.scheme for s in split}) != 1 or split[0].scheme not in ("http", "https") or not all(map(_is_address, self._seeds)) or \
                any(s.path.strip("/") or s.query or s.fragment for s in split):
            raise ValueError("addrs must be host:port, or URLs of them with one scheme")
        self._scheme, self._context = split[0].scheme, ssl_context
        self._timeout, self._attempt_timeout, self._refresh = timeout, attempt_timeout, refresh
        self._max_value, self._max_batch, self._zone = max_value, max_batch, zone
        self._header = {"User-Agent": "sequins-python"}
        if token:
            self._header["Authorization"] = "Bearer " + token
        self._lock = threading.Lock()  # guards the rest
        self._maps = {}  # type: Dict[str, _Map]
        self._due = {}  # type: Dict[str, float]
        self._refreshing = {}  # type: Dict[str, float] # until when a map is being requested, at most
        self._failing = {}  # type: Dict[str, float] # until when a node is asked last; until it answers
        self._idle = {}  # type: Dict[_Pool, List[_Limited]]
        self._expire_at = 0.0  # when idle connections are looked through next
        self._closed = False

    def get(self, db: str, key: Key) -> Value:
        """The value of a key."""
        return self._get(db, key, "")

    def multi_get(self, db: str, keys: Sequence[Key]) -> Batch:
        """The values of several keys, all from one version. Nodes limit the keys of a batch, by default to 10,000."""
        return self._multi_get(db, keys, "")

    def session(self, exported: str = "") -> Session:
        """A new session, or one that Session.export has exported. Raises ValueError if that cannot be read."""
        return Session(self, exported)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _get(self, db: str, key: Key, at_least: str) -> Value:
        key = _bytes(key)
        if not key:  # has no path of its own
            batch = self._multi_get(db, [key], at_least)
            return Value(batch.values[0], batch.version)
        escaped = quote_from_bytes(key, safe="") if key not in (b".", b"..") else "%2E" * len(key)

        def check(a: _Answer) -> Value:
            if a.status == 404 and a.version:
                return Value(None, a.version)
            return Value(a.body, a.version)

        return self._call(db, "/%s/%s" % (db, escaped), None, at_least, self._max_value, lambda m: m.nodes_of(key), check)

    def _multi_get(self, db: str, keys: Sequence[Key], at_least: str) -> Batch:
        if isinstance(keys, (str, bytes)):
            raise TypeError("multi_get takes a sequence of keys, not one key")
        encoded = [_bytes(key) for key in keys]
        body = b"".join(struct.pack(">I", len(key)) + key for key in encoded)

        def best(m: _Map) -> List[str]:
            held = {}  # type: Dict[str, int]
            for key in encoded:
                for node in m.nodes_of(key):
                    held[node] = held.get(node, 0) + 1
            order = sorted(held, key=lambda node: (node not in m.near, -held[node], random.random()))
            near = sum(node in m.near for node in order)
            return (order[:2] + order[max(2, near):])[:3]  # the zone may be lost

        def check(a: _Answer) -> Batch:
            if a.media != _BINARY:
                raise _Failure(SequinsError("an answer of type %.100r" % a.media), failing=True)
            return Batch(self._decode(a.body, len(encoded)), a.version)

        if not encoded:
            return Batch([], "")
        return self._call(db, "/%s/" % db, body, at_least, self._max_batch + 4 * len(encoded), best, check)

    def _decode(self, body: bytes, n: int) -> List[Optional[bytes]]:
        values, at = [], 0  # type: List[Optional[bytes]], int
        for _ in range(n):
            if len(body) - at < 4:
                raise _Failure(SequinsError("the answer is shorter than its values"), failing=True)
            size, at = struct.unpack_from(">I", body, at)[0], at + 4
            if size == 0xFFFFFFFF:
                values.append(None)
                continue
            if size > self._max_value:
                raise _Failure(TooLarge("a value of %d bytes" % size), final=True)
            values.append(body[at:at + size])
            at += size
        if at != len(body):
            raise _Failure(SequinsError("the answer has not one value for each key"), failing=True)
        return values

    def _call(self, db, path, body, at_least, limit, preferred, check):
        """Asks one node after the other until one answers, and again if nodes are temporarily unavailable."""
        if not _NAME.fullmatch(db):
            raise ValueError("%.100r is no name of a database" % db)
        deadline = time.monotonic() + self._timeout
        for round_ in itertools.count(1):
            m = self._map(db)
            failures = []
            route = self._route(preferred(m) if m else [], m)
            for node in route:
                try:
                    a = self._attempt(node, path, body, at_least, limit, self._until(deadline, node == route[-1]), deadline)
                    if m and a.version != m.version:
                        self._suspect(db)
                    answer = check(a)
                    with self._lock:
                        self._failing.pop(node, None)
                    return answer
                except _Failure as f:
                    f.error.args = ("%s: %s" % (node, f.error),)
                    failures.append((node, f))
                    if f.failing:
                        self._mark(node)
                        self._suspect(db)
                    if f.final or (node in self._seeds and isinstance(f.error, NoDatabase)):
                        raise f.error from None
                if time.monotonic() >= deadline:
                    break
            wait = min((f.wait for _, f in failures if f.wait), default=0.0)
            if not wait and round_ < 3 and any(f.broken for _, f in failures):
                wait = 0.05 * 2 ** round_
            if not wait or time.monotonic() + wait >= deadline:
                raise self._error(db, failures)
            time.sleep(wait * random.uniform(0.5, 1))

    def _error(self, db: str, failures) -> SequinsError:
        """What a call raises. What only a node of the map says of the database is not believed."""
        text = "reading %s: %s" % (db, "; ".join(str(f.error) for _, f in failures[-8:]))
        for kind in (Denied, Behind):
            for node, f in failures:
                if isinstance(f.error, kind) and (kind is Behind or node in self._seeds):
                    return kind(text)
        return SequinsError(text)

    def _route(self, preferred: List[str], m: Optional[_Map]) -> List[str]:
        """The order in which nodes are asked: failing ones last."""
        seeds = random.sample(self._seeds, len(self._seeds))
        others = random.sample(m.nodes, min(3, len(m.nodes))) if m else []
        nodes = list(dict.fromkeys(preferred + seeds + others))
        now = time.monotonic()
        with self._lock:
            nodes.sort(key=lambda node: self._failing.get(node, 0) > now)
            if nodes[0] in self._failing:  # one call tries it, others wait for the result
                self._failing[nodes[0]] = now + 2
        return nodes

    def _mark(self, node: str) -> None:
        """Marks a node as failing: for two seconds it is asked last, and then by one call at a time until it answers."""
        with self._lock:
            if len(self._failing) > 10000:
                self._failing.clear()
            self._failing[node] = time.monotonic() + 2

    def _suspect(self, db: str) -> None:
        """Makes the map be requested again, at most once a second."""
        with self._lock:
            self._due[db] = min(self._due.get(db, 0), time.monotonic() + 1)

    def _until(self, deadline: float, last: bool) -> float:
        """Until when a node has time for the header of its answer. Unless it is the last one, others get a chance after it."""
        now = time.monotonic()
        return now + min(self._attempt_timeout, (deadline - now) / (1 if last else 2))

    def _attempt(self, node, path, body, at_least, limit, until, deadline) -> _Answer:
        """The answer of a node that has a result."""
        header = dict(self._header)
        if at_least:
            header["X-Sequins-At-Least"] = at_least
        if body is not None:
            header["Content-Type"] = header["Accept"] = _BINARY
        try:
            a = self._send(node, path, body, header, limit, until, deadline)
        except (OSError, http.client.HTTPException) as e:
            raise _Failure(SequinsError("%s: %s" % (type(e).__name__, e)), failing=True) from None
        if a.version and a.version < at_least and a.status in (200, 404, 503):
            raise _Failure(Behind("it serves %s" % a.version), wait=a.retry_after)
        if a.status == 200 and a.version or a.status == 404 and a.version and body is None:
            return a
        text = "status %d: %.200r" % (a.status, a.body[:200].decode("utf-8", "replace").strip())
        if a.status == 404:
            raise _Failure(NoDatabase(text))
        if a.status in (401, 403):
            raise _Failure(Denied(text))
        if a.status == 413:
            raise _Failure(TooLarge(text), final=True)
        raise _Failure(SequinsError(text), wait=a.retry_after if a.status == 503 else 0.0, failing=a.status in (200, 503), broken=a.status >= 500)

    def _send(self, node, path, body, header, limit, until, deadline) -> _Answer:
        """Sends a request, over an idle connection if there is one. If that was closed meanwhile, it uses a new one."""
        pool = (node, body is None and "?" not in path)
        connection, idle = self._connection(pool)
        while True:
            try:
                connection.until = until
                connection.request("GET" if body is None else "POST", path, body=body, headers=header)
                response = connection.getresponse()
                break
            except BaseException as e:
                connection.close()
                if not idle or not isinstance(e, (ConnectionError, http.client.BadStatusLine)):
                    raise
                connection, idle = self._connect(node), False
        try:
            answer = self._read(connection, response, limit, deadline)
        except BaseException:
            connection.close()
            raise
        self._keep(pool, connection, response)
        return answer

    def _read(self, connection, response, limit, deadline) -> _Answer:
        length = response.getheader("Content-Length")
        if response.status == 200 and (length is None and not response.chunked or response.getheader("Content-Encoding")):
            raise http.client.HTTPException("an answer without a length, or with a coding")
        if length is not None and not length.isdecimal():
            raise http.client.HTTPException("the length %.50r" % length)
        limit = limit if response.status == 200 else 1 << 16
        if response.status == 200 and int(length or 0) > limit:
            raise _Failure(TooLarge("the answer has %s bytes" % length), final=True)
        parts, size = [], 0
        while True:
            connection.until = min(deadline, time.monotonic() + self._attempt_timeout)
            part = response.read1(1 << 20)
            if not part:
                break
            parts.append(part)
            size += len(part)
            if size > limit:
                raise _Failure(TooLarge("the answer is larger than %d bytes" % limit), final=response.status == 200)
        if response.status == 200 and length is not None and size != int(length):
            raise http.client.IncompleteRead(b"", int(length) - size)
        response.read()  # marks the answer as read; read1 does not before Python 3.11.8 and 3.12.2
        version, retry = response.getheader("X-Sequins-Version", ""), response.getheader("Retry-After", "")
        wait = min(max(float(retry), 0.05), 1.0) if retry.isdecimal() and len(retry) < 9 else 0.1
        return _Answer(response.status, version if _NAME.fullmatch(version) else "", response.getheader("Content-Type", ""), wait, b"".join(parts))

    def _connection(self, pool: _Pool):
        with self._lock:
            if self._closed:
                raise _Failure(SequinsError("the client is closed"), final=True)
            old = self._expired()
            idle = self._idle.get(pool)
            kept = idle.pop() if idle else None
        for connection in old:
            connection.close()
        return (kept, True) if kept else (self._connect(pool[0]), False)

    def _expired(self) -> List[_Limited]:
        """Removes the connections that have been idle for too long, of all nodes. The lock is held."""
        old = []  # type: List[_Limited]
        now = time.monotonic()
        if now < self._expire_at:
            return old
        self._expire_at, before = now + _MAX_IDLE / 4, now - _MAX_IDLE
        for pool, connections in list(self._idle.items()):
            old += [c for c in connections if c.idle_since < before]
            self._idle[pool] = [c for c in connections if c.idle_since >= before]
            if not self._idle[pool]:
                del self._idle[pool]
        return old

    def _connect(self, node: str) -> _Limited:
        host, port = _ADDRESS.fullmatch(node).groups()
        host = host.strip("[]")
        if self._scheme == "https":
            return _HTTPS(host, int(port), context=self._context)
        return _HTTP(host, int(port))

    def _keep(self, pool: _Pool, connection, response) -> None:
        """Keeps a connection for the next request, unless it has to be closed."""
        connection.idle_since = time.monotonic()
        with self._lock:
            keep = not self._closed and not response.will_close and response.isclosed() and len(self._idle.setdefault(pool, [])) < 32
            if keep:
                self._idle[pool].append(connection)
        if not keep:
            connection.close()

    def _map(self, db: str) -> Optional[_Map]:
        """The map of a database. If it is due, it is requested in the background, because a call can do without."""
        if self._refresh is None:
            return None
        now = time.monotonic()
        with self._lock:
            m = self._maps.get(db)
            if self._due.get(db, 0) > now:
                return m
            self._refreshing = {each: until for each, until in self._refreshing.items() if until > now}
            if db in self._refreshing or len(self._refreshing) >= _MAX_REFRESHING:
                return m
            if len(self._due) > 1000:
                self._due.clear()
                self._maps.clear()
            self._due[db] = now + self._refresh * random.uniform(0.75, 1.25)
            self._refreshing[db] = now + self._timeout + 1
        try:
            threading.Thread(target=self._request_map, args=(db, m), daemon=True).start()
        except RuntimeError:  # there are too many threads, or the interpreter ends
            pass
        return m

    def _request_map(self, db: str, m: Optional[_Map]) -> None:
        """Replaces the map m of a database."""
        deadline = time.monotonic() + self._timeout
        route = self._route([], m)[:4]
        new, due = None, time.monotonic() + 2
        for node in route:
            try:
                a = self._send(node, "/%s/?partitions" % db, None, self._header, _MAX_MAP, self._until(deadline, node == route[-1]), deadline)
                if a.status == 200:
                    new = self._parse(a.body, db, node)
                    break
            except (OSError, http.client.HTTPException):
                self._mark(node)
            except (_Failure, ValueError, KeyError, TypeError, RecursionError):
                pass  # the next node; without any, those of addrs are asked for keys
        with self._lock:
            self._refreshing.pop(db, None)
            if new:
                self._maps[db] = new
            else:
                self._due[db] = due

    def _parse(self, body: bytes, db: str, asked: str) -> _Map:
        """The map in an answer, checked."""
        a = json.loads(body)
        nodes, replicas, count, zones = a["nodes"], a["replicas"], a["partitions"], a.get("zones", [])
        nodes = [asked if node == "self" else node for node in nodes]
        if a["db"] != db or a["scheme"] != self._scheme or not _NAME.fullmatch(a["version"]):
            raise ValueError("a map of something else")
        if not isinstance(count, int) or not 0 <= count <= 1 << 16 or len(replicas) != count or len(nodes) > 4096 or len(zones) not in (0, len(nodes)):
            raise ValueError("a map of the wrong size")
        if not all(map(_is_address, nodes)):
            raise ValueError("a map with an invalid address")
        if not all(len(r) <= 64 and all(type(n) is int and 0 <= n < len(nodes) for n in r) for r in replicas):
            raise ValueError("a map with an invalid node")
        partition(a["partitioner"], b"", 1)
        near = frozenset(node for node, zone in zip(nodes, zones) if zone and zone == self._zone)
        return _Map(a["version"], a["partitioner"], nodes, replicas, near)


def _bytes(key: Key) -> bytes:
    if isinstance(key, str):
        key = key.encode("utf-8")
    elif not isinstance(key, bytes):
        if isinstance(key, bool) or not hasattr(key, "__index__"):
            raise TypeError("a key is a str, bytes or an integer, not %s" % type(key).__name__)
        key = b"%d" % operator.index(key)
    if len(key) > MAX_KEY:
        raise ValueError("a key of %d bytes" % len(key))
    return key
