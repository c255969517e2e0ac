"""Writes a Parquet and an Avro file, and what other programs read from them: judge.py DIR.

Each line of a judgement is the key, a tab and the value of a record, as DuckDB, pyarrow and fastavro have them.
"""
import datetime
import json
import os
import sys

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

folder = sys.argv[1]
rows = [
    {
        "word": f"word-{i:04d}",
        "meaning": None if i % 7 == 0 else f"the meaning of {i} – ünïcode",
        "n": i * 1_000_003,
        "day": datetime.date(2026, 1, 1) + datetime.timedelta(days=i),
        "half": i / 2,
        "ok": i % 2 == 0,
    }
    for i in range(2500)
]


def text(value):
    """A value as sequins serves a field of its own."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def judge(name, records):
    for field in ("meaning", "n", "day", "half", "ok"):
        with open(os.path.join(folder, f"{name}.{field}"), "w", encoding="utf-8") as f:
            for r in records:
                f.write(f"{r['word']}\t{text(r[field])}\n")


parquet = os.path.join(folder, "words.parquet")
pq.write_table(pa.Table.from_pylist(rows), parquet, compression="zstd", row_group_size=700, write_page_checksum=True)
judge("words.parquet.pyarrow", pq.read_table(parquet).to_pylist())
columns = ["word", "meaning", "n", "day", "half", "ok"]
found = duckdb.sql(f"SELECT {', '.join(columns)} FROM read_parquet('{parquet}')").fetchall()
judge("words.parquet.duckdb", [dict(zip(columns, r)) for r in found])

avro = os.path.join(folder, "words.avro")
schema = fastavro.parse_schema({
    "type": "record", "name": "word", "fields": [
        {"name": "word", "type": "string"},
        {"name": "meaning", "type": ["null", "string"]},
        {"name": "n", "type": "long"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "half", "type": "double"},
        {"name": "ok", "type": "boolean"},
    ],
})
with open(avro, "wb") as f:
    fastavro.writer(f, schema, rows, codec="deflate", sync_interval=4000)
with open(avro, "rb") as f:
    judge("words.avro.fastavro", list(fastavro.reader(f)))
with open(os.path.join(folder, "counts.json"), "w") as f:
    json.dump({"rows": len(rows)}, f)
