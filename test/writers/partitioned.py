"""Writes random tables in directories of a partitioned table with pyarrow, and how pyarrow reads them with
partitioning="hive": DIR/<table>/1 and, for each record, a line of its table and its JSON in records.ndjson."""

import json
import os
import random
import sys

import pyarrow as pa
import pyarrow.dataset as ds

base = sys.argv[1]
TEXTS = ["Bonn", "São Paulo", "a/b", "x=y", "100%", "%41", 'q"\\', "a b", "ключ", "😀", "new\nline", "tab\t", "+", "#", "&?;", "2026-01-31", "1.5", "7x", "'", "c:d", "_x", ".x"]


def column(r, n):
    kind = r.choice(["small", "padded", "mixed", "text"])
    values = {
        "small": lambda: str(r.randint(-40, 40)),
        "padded": lambda: "%02d" % r.randint(0, 12),
        "mixed": lambda: r.choice([str(r.randint(0, 9)), r.choice(TEXTS)]),
        "text": lambda: r.choice(TEXTS),
    }[kind]
    nulls = r.random() < 0.5
    some = [None if nulls and r.random() < 0.3 else values() for _ in range(r.randint(1, 6))]
    chosen = [r.choice(some) for _ in range(n)]
    return chosen if any(v is not None for v in chosen) else [values()] + chosen[1:]  # pyarrow cannot infer a type from nulls alone


with open(os.path.join(base, "records.ndjson"), "w") as out:
    for seed in range(30):
        r = random.Random(seed)
        n, name = r.randint(1, 120), "table%d" % seed
        names = r.sample(["day", "city", "stadt", "Ä", "hour", "a.b", "x y"], r.randint(1, 4))
        columns = {"k": ["key-%d" % i for i in range(n)], "v": [r.choice([None, i]) for i in range(n)]}
        columns.update({c: column(r, n) for c in names})
        t = pa.table(columns, schema=pa.schema([("k", pa.string()), ("v", pa.int64())] + [(c, pa.string()) for c in names]))
        directory = os.path.join(base, name, "1")
        ds.write_dataset(t, directory, format="parquet", partitioning=ds.partitioning(pa.schema([(c, pa.string()) for c in names]), flavor="hive"),
                         max_partitions=10000, basename_template="part-{i}.parquet")
        ds_read = ds.dataset(directory, format="parquet", partitioning="hive")
        for record in ds_read.to_table().to_pylist():
            out.write(json.dumps({"table": name, "key": record["k"], "value": json.dumps(record, ensure_ascii=False)}) + "\n")
