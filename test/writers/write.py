"""Writes files by other programs' Parquet and Avro writers: write.py DIR.

Beside each file, in FILE.ndjson, are its records as the writer's own reader returns them, rendered as sequins does. What
was written is in DIR/manifest.ndjson, a line for each file. Everything is the same in each run.
"""

import datetime
import decimal
import json
import os
import random
import sys
import uuid

import duckdb
import fastavro
import fastparquet
import numpy
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

import render

OUT = sys.argv[1]
ROWS = 300
CODECS = ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]
manifest = []


def note(writer, variant, codec, name, rows, key="k", reads=True):
    """Notes a file and its rows; reads is False if it must not be read."""
    with open(os.path.join(OUT, name + ".ndjson"), "w", encoding="utf-8") as f:
        f.writelines(r + "\n" for r in rows)
    manifest.append({"writer": writer, "variant": variant, "codec": codec, "file": name, "key": key, "reads": reads})


rendered = {}


def rows_of(t, utc=False):
    """Renders a table, unless one with the same contents has been rendered before."""
    sink = pa.BufferOutputStream()
    t = t.take(numpy.arange(len(t))).combine_chunks().replace_schema_metadata()  # take clears what readers leave in the place of nulls
    with pa.ipc.new_stream(sink, t.schema) as w:
        w.write_table(t)
    same = (sink.getvalue().to_pybytes(), utc)
    if same not in rendered:
        rendered[same] = render.table(t, utc)
    return rendered[same]


def units_of(t, file):
    """Casts times to the units that they have in a file: DuckDB and pandas have their own."""
    for i, (f, inside) in enumerate(zip(t.schema, pq.read_schema(file), strict=True)):
        if pa.types.is_timestamp(f.type) and f.type.unit != inside.type.unit:
            t = t.set_column(i, f.name, t.column(i).cast(pa.timestamp(inside.type.unit, f.type.tz)))
    return t


def path(*parts):
    name = "-".join(str(p) for p in parts).replace(" ", "_").replace(",", "") + ".parquet"
    return name, os.path.join(OUT, name)


# Values


def maybe(r, make, null):
    return None if null and r.random() < 0.2 else make()


def scalars(r):
    """Types of pyarrow, and what makes values of them."""
    word = lambda: "".join(r.choice("abcdé\n\"\\ ") for _ in range(r.randrange(12)))
    raw = lambda n: bytes(r.randrange(256) for _ in range(n))
    at = lambda: r.randrange(-(2**40), 2**43)
    return [
        (pa.bool_(), lambda: r.random() < 0.5),
        (pa.int8(), lambda: r.randrange(-128, 128)),
        (pa.int16(), lambda: r.randrange(-(2**15), 2**15)),
        (pa.int32(), lambda: r.choice([r.randrange(-(2**31), 2**31), r.randrange(100)])),
        (pa.int64(), lambda: r.choice([r.randrange(-(2**63), 2**63), r.randrange(100)])),
        (pa.uint8(), lambda: r.randrange(2**8)),
        (pa.uint16(), lambda: r.randrange(2**16)),
        (pa.uint32(), lambda: r.randrange(2**32)),
        (pa.uint64(), lambda: r.randrange(2**64)),
        (pa.float16(), lambda: numpy.float16(r.choice([0.5, -1.25, 65504.0, 6e-8]))),
        (pa.float32(), lambda: r.choice([r.random(), 1e-30, -3.4e38, 0.0, float("inf")])),
        (pa.float64(), lambda: r.choice([r.random(), 1e-300, -1.7e308, -0.0, float("nan")])),
        (pa.string(), word),
        (pa.large_string(), word),
        (pa.binary(), lambda: raw(r.randrange(10))),
        (pa.binary(7), lambda: raw(7)),
        (pa.decimal128(5, 2), lambda: decimal.Decimal(r.randrange(-99999, 99999)).scaleb(-2)),
        (pa.decimal128(30, 10), lambda: decimal.Decimal(r.randrange(-(10**20), 10**20)).scaleb(-10)),
        (pa.date32(), lambda: datetime.date(1970, 1, 1) + datetime.timedelta(r.randrange(-100000, 100000))),
        (pa.time32("ms"), lambda: r.randrange(86400000)),
        (pa.time64("us"), lambda: r.randrange(86400000000)),
        (pa.time64("ns"), lambda: r.randrange(86400000000000)),
        (pa.timestamp("ms"), at),
        (pa.timestamp("us", "UTC"), at),
        (pa.timestamp("ns"), at),
        (pa.timestamp("ns", "UTC"), at),
        (pa.duration("us"), at),
        (pa.dictionary(pa.int32(), pa.string()), word),
        (pa.null(), lambda: None),
    ]


def nested(r, depth):
    """A type with values, which can be nested."""
    kind = r.randrange(6) if depth else 5
    t, make = r.choice(scalars(r)) if kind == 5 else nested(r, depth - 1)
    while kind in (2, 3) and pa.types.is_null(t):
        t, make = nested(r, depth - 1)
    if kind <= 1:
        return pa.list_(t), lambda: [maybe(r, make, True) for _ in range(r.randrange(4))]
    if kind == 2:
        return pa.map_(pa.string(), t), lambda: [("k%d" % i, maybe(r, make, True)) for i in range(r.randrange(4))]
    if kind in (3, 4):
        u, other = nested(r, depth - 1)
        null = r.random() < 0.5
        fields = [pa.field("a", t), pa.field("b", u)]
        return pa.struct(fields), lambda: {"a": maybe(r, make, True), "b": maybe(r, other, null)}
    return t, make


def column(r, t, make, null):
    values = [maybe(r, make, null) for _ in range(ROWS)]
    if pa.types.is_dictionary(t):
        return pa.array(values, pa.string()).dictionary_encode()
    return pa.array(values, t)


def with_keys(fields, arrays):
    keys = pa.array(["k%06d" % i for i in range(len(arrays[0]))])
    return pa.table([keys] + arrays, schema=pa.schema([pa.field("k", pa.string(), nullable=False)] + fields))


def of_types(r, choose, null=True):
    some = [(t, make) for t, make in scalars(r) if choose(t)]
    fields = [pa.field("c%02d" % i, t, nullable=null or pa.types.is_null(t)) for i, (t, _) in enumerate(some)]
    return with_keys(fields, [column(r, t, make, null) for t, make in some])


# pyarrow


def is_flat(t):
    return not pa.types.is_null(t) and not pa.types.is_dictionary(t)


def is_bytes(t):
    return pa.types.is_string(t) or pa.types.is_large_string(t) or t == pa.binary()


def is_fixed(t):
    return t == pa.binary(7) or pa.types.is_decimal(t)


def is_number(t):
    return pa.types.is_integer(t) or pa.types.is_temporal(t)


ENCODINGS = {
    "PLAIN": is_flat,
    "DELTA_BINARY_PACKED": is_number,
    "DELTA_LENGTH_BYTE_ARRAY": is_bytes,
    "DELTA_BYTE_ARRAY": lambda t: is_bytes(t) or is_fixed(t),
    "BYTE_STREAM_SPLIT": lambda t: is_number(t) or is_fixed(t) or t in (pa.float16(), pa.float32(), pa.float64()),
    "RLE": pa.types.is_boolean,
}


def write_pyarrow(variant, codec, table, name, key="k", utc=False, **options):
    name, file = path("pyarrow", name, codec)
    pq.write_table(table, file, compression=codec, **options)
    note("pyarrow", variant, codec, name, rows_of(pq.read_table(file), utc), key)


def pyarrow_encodings():
    r = random.Random(1)
    tables = {e: of_types(r, choose) for e, choose in ENCODINGS.items()}
    whole = of_types(r, lambda t: True)
    required = of_types(r, lambda t: True, null=False)
    for version in ["1.0", "2.0"]:
        for codec in CODECS:
            common = {"data_page_version": version, "data_page_size": 500, "write_batch_size": 50}
            for e, t in tables.items():
                encodings = {n: e for n in t.column_names[1:]}
                write_pyarrow("%s, pages %s" % (e, version), codec, t, e + version, use_dictionary=False, column_encoding=encodings, **common)
            write_pyarrow("dictionaries, pages " + version, codec, whole, "dict" + version, write_page_checksum=True, **common)
            write_pyarrow("required, pages " + version, codec, required, "required" + version, **common)


def pyarrow_others():
    r = random.Random(2)
    two = pa.table(
        [pa.array(range(20000), pa.int64()), pa.array([i * i for i in range(20000)], pa.int64())],
        schema=pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.int64(), nullable=False)]),
    )
    for codec in CODECS:
        write_pyarrow("20,000 rows of two required INT64", codec, two, "two")
        write_pyarrow("20,000 rows of two required INT64, PLAIN", codec, two, "two-plain", use_dictionary=False)
    flags = [r.random() < 0.5 for _ in range(5000)]
    booleans = with_keys([pa.field("v", pa.bool_(), nullable=False), pa.field("n", pa.bool_())], [pa.array(flags), pa.array(flags)])
    for codec in CODECS:
        write_pyarrow("5,000 booleans, pages 2.0", codec, booleans, "booleans", data_page_version="2.0")
    times = of_types(r, pa.types.is_timestamp)
    write_pyarrow("INT96", "snappy", times, "int96", utc=True, use_deprecated_int96_timestamps=True)
    for i in range(60):
        r = random.Random(100 + i)
        kinds = [nested(r, 3) for _ in range(4)]
        fields = [pa.field("c%d" % j, t) for j, (t, _) in enumerate(kinds)]
        t = with_keys(fields, [column(r, t, make, True) for t, make in kinds])
        write_pyarrow(
            "60 random nested schemas", CODECS[i % 6], t, "random%d" % i, data_page_version=r.choice(["1.0", "2.0"]),
            use_dictionary=r.random() < 0.5, data_page_size=r.choice([100, 1 << 20]), row_group_size=r.choice([70, 1000]),
            use_compliant_nested_type=r.random() < 0.5,
        )


class Keys(pe.KmsClient):
    def __init__(self, _):
        pe.KmsClient.__init__(self)

    def wrap_key(self, key_bytes, _):
        return key_bytes

    def unwrap_key(self, wrapped_key, _):
        return wrapped_key


def pyarrow_encrypted():
    t = of_types(random.Random(3), is_number)
    factory = pe.CryptoFactory(lambda config: Keys(config))
    for plaintext in (False, True):
        config = pe.EncryptionConfiguration(footer_key="f", column_keys={"c": t.column_names}, plaintext_footer=plaintext, double_wrapping=False)
        name, file = path("pyarrow-encrypted", plaintext)
        properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), config)
        with pq.ParquetWriter(file, t.schema, encryption_properties=properties) as w:
            w.write_table(t)
        note("pyarrow", "encrypted, " + ("plain footer" if plaintext else "encrypted footer"), "snappy", name, [], reads=False)


# DuckDB, polars, fastparquet

DUCKDB = """
SELECT printf('k%06d', i) AS k, i % 3 = 0 AS bool, (i % 100)::TINYINT AS i8, (i * 77 % 30000)::SMALLINT AS i16,
  ((hash(i) % 4000000000)::BIGINT - 2000000000)::INTEGER AS i32, ((hash(i) >> 1)::HUGEINT - 4000000000000000000)::BIGINT AS i64, (i % 200)::UTINYINT AS u8, (hash(i) % 60000)::USMALLINT AS u16,
  (hash(i) % 4000000000)::UINTEGER AS u32, hash(i)::UBIGINT AS u64, i::HUGEINT AS huge, (i / 7)::FLOAT AS f32, i / 3 AS f64,
  (i / 100)::DECIMAL(4, 2) AS d4, (i / 100)::DECIMAL(9, 3) AS d9, (i / 100)::DECIMAL(18, 4) AS d18, (i / 100)::DECIMAL(38, 5) AS d38,
  CASE WHEN i % 5 <> 0 THEN 'text ' || i % 10 END AS text, encode('raw ' || i) AS raw, DATE '2000-01-01' + i::INTEGER AS day,
  TIME '10:00:00' + to_microseconds(i * 1000001) AS t, TIMESTAMP '2000-01-01 10:00:00' + to_microseconds(i * 1000001) AS ts,
  (TIMESTAMP '2000-01-01 10:00:00' + to_seconds(i))::TIMESTAMP_S AS ts_s, (TIMESTAMP '2000-01-01 10:00:00' + to_milliseconds(i))::TIMESTAMP_MS AS ts_ms,
  (TIMESTAMP '2000-01-01 10:00:00' + to_microseconds(i))::TIMESTAMP_NS AS ts_ns, TIMESTAMPTZ '2000-01-01 10:00:00+00' + to_seconds(i) AS tz,
  ('00000000-0000-4000-8000-' || printf('%012d', i))::UUID AS id, INTERVAL (i) DAY AS span, (['a', 'b', 'c'][i % 3 + 1])::ENUM('a', 'b', 'c') AS e,
  [i, NULL, i + 1] AS list, {'a': i, 'b': CASE WHEN i % 2 = 0 THEN 'x' END} AS struct, MAP {'a': i, 'b': i + 1} AS map,
  [{'x': [i]}, NULL] AS deep
FROM range(2500) t(i)
"""


def write_duckdb():
    db = duckdb.connect()
    db.sql("SET TimeZone = 'UTC'")
    for version in ["V1", "V2"]:
        for codec in ["uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4_raw"]:
            name, file = path("duckdb", version, codec)
            db.sql("COPY (%s) TO '%s' (FORMAT parquet, COMPRESSION %s, PARQUET_VERSION %s)" % (DUCKDB, file, codec, version))
            got = db.sql("SELECT * FROM read_parquet('%s') ORDER BY k" % file).to_arrow_table()
            note("DuckDB", "parquet_version " + version, codec, name, rows_of(units_of(got, file)))


def write_polars():
    r = random.Random(4)
    t = of_types(r, lambda t: t not in (pa.time32("ms"), pa.time64("us"), pa.float16()) and not pa.types.is_fixed_size_binary(t))
    frame = polars.from_arrow(t).with_columns(
        polars.Series("list", [[i, None] if i % 3 else None for i in range(ROWS)]),
        polars.Series("struct", [{"a": i, "b": [str(i)]} for i in range(ROWS)]),
        polars.Series("deep", [[{"x": [i]}, None] for i in range(ROWS)]),
    )
    for codec in ["uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4"]:
        name, file = path("polars", codec)
        frame.write_parquet(file, compression=codec, data_page_size=1000)
        note("polars", "all types", codec, name, rows_of(polars.read_parquet(file).to_arrow()))


def write_fastparquet():
    r = random.Random(5)
    frame = pandas.DataFrame({
        "k": ["k%06d" % i for i in range(ROWS)],
        "bool": [i % 3 == 0 for i in range(ROWS)],
        "i8": numpy.arange(ROWS, dtype="int64").astype("int8"),
        "i32": numpy.arange(ROWS, dtype="int32") * 1000003,
        "i64": numpy.arange(ROWS, dtype="int64") * 10**15,
        "u16": numpy.arange(ROWS, dtype="uint16"),
        "u64": numpy.arange(ROWS, dtype="uint64") * numpy.uint64(6 * 10**16),
        "f32": numpy.arange(ROWS, dtype="float32") / numpy.float32(7),
        "f64": numpy.arange(ROWS, dtype="float64") / 3,
        "text": [None if i % 7 == 0 else "text %d" % r.randrange(20) for i in range(ROWS)],
        "raw": [b"raw %d" % i for i in range(ROWS)],
        "null": pandas.array([None if i % 4 == 0 else i for i in range(ROWS)], dtype="Int64"),
        "category": pandas.Categorical(["c%d" % (i % 5) for i in range(ROWS)]),
        "ts": pandas.to_datetime(numpy.arange(ROWS, dtype="int64") * 1000001, unit="us", utc=True),
    })
    encodings = {"k": "utf8", "text": "utf8", "raw": "bytes"}
    for version in [1, 2]:
        fastparquet.writer.DATAPAGE_VERSION = version
        for times in ["int64", "int96"]:
            for codec in ["UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4", "LZ4_RAW"]:
                name, file = path("fastparquet", version, times, codec)
                fastparquet.write(file, frame, compression=codec, object_encoding=encodings, times=times, write_index=False, row_group_offsets=100)
                got = fastparquet.ParquetFile(file).to_pandas()
                t = pa.Table.from_pandas(got, preserve_index=False)
                note("fastparquet", "pages V%d, times %s" % (version, times), codec, name, rows_of(units_of(t, file), utc=True))


# fastavro

AVRO = {"type": "record", "name": "Row", "fields": [
    {"name": "k", "type": "string"},
    {"name": "bool", "type": "boolean"},
    {"name": "int", "type": "int"},
    {"name": "long", "type": "long"},
    {"name": "float", "type": "float"},
    {"name": "double", "type": "double"},
    {"name": "bytes", "type": "bytes"},
    {"name": "fixed", "type": {"type": "fixed", "name": "Five", "size": 5}},
    {"name": "enum", "type": {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}},
    {"name": "null", "type": ["null", "string"]},
    {"name": "list", "type": {"type": "array", "items": ["null", "long"]}},
    {"name": "map", "type": {"type": "map", "values": "double"}},
    {"name": "inner", "type": {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": {"type": "array", "items": "string"}}]}},
    {"name": "decimal", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}},
    {"name": "date", "type": {"type": "int", "logicalType": "date"}},
    {"name": "time_ms", "type": {"type": "int", "logicalType": "time-millis"}},
    {"name": "time_us", "type": {"type": "long", "logicalType": "time-micros"}},
    {"name": "ts_ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "ts_us", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
    {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
]}


def avro_record(i):
    at = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(milliseconds=i * 1001)
    return {
        "k": "k%06d" % i, "bool": i % 2 == 0, "int": -i, "long": i * 10**12, "float": i / 7, "double": i / 3, "bytes": b"\xff%d" % i,
        "fixed": b"%05d" % i, "enum": ["RED", "GREEN"][i % 2], "null": None if i % 3 else "s", "list": [i, None], "map": {"a": i / 9},
        "inner": {"x": ["x"] * (i % 3)}, "decimal": decimal.Decimal(i * 12345).scaleb(-3), "date": at.date(), "time_ms": at.time(),
        "time_us": at.time(), "ts_ms": at, "ts_us": at, "local": at.replace(tzinfo=None), "uuid": uuid.UUID(int=i),
    }


def write_avro():
    schema = fastavro.parse_schema(AVRO)
    for codec in ["null", "deflate", "bzip2", "snappy", "zstandard", "xz"]:
        name = "fastavro-%s.avro" % codec
        with open(os.path.join(OUT, name), "wb") as f:
            fastavro.writer(f, schema, (avro_record(i) for i in range(ROWS)), codec=codec, sync_interval=2000, sync_marker=b"0123456789abcdef")
        with open(os.path.join(OUT, name), "rb") as f:
            rows = [render.avro(r, AVRO) for r in fastavro.reader(f)]
        note("fastavro", "all types", codec, name, rows)


pyarrow_encodings()
pyarrow_others()
pyarrow_encrypted()
write_duckdb()
write_polars()
write_fastparquet()
write_avro()
with open(os.path.join(OUT, "manifest.ndjson"), "w", encoding="utf-8") as f:
    f.writelines(json.dumps(m) + "\n" for m in manifest)
