"""Renders what spark.scala wrote: spark.py DIR makes FILE.ndjson of each FILE.raw."""

import json
import os
import sys

import render

OUT = sys.argv[1]
rendered = {}  # by the raw rows and the unit: those of a variant are mostly alike
with open(os.path.join(OUT, "manifest.ndjson"), encoding="utf-8") as f:
    files = [json.loads(line) for line in f]
for file in files:
    unit = "ns" if "INT96" in file["variant"] else "ms" if "TIMESTAMP_MILLIS" in file["variant"] else "us"
    path = os.path.join(OUT, file["file"])
    with open(path + ".raw", encoding="utf-8", newline="\n") as f:
        raw = f.read()
    if (raw, unit) not in rendered:
        schema, *rows = map(json.loads, raw.splitlines())
        rendered[raw, unit] = "".join(render.spark(r, schema, unit) + "\n" for r in rows)
    with open(path + ".ndjson", "w", encoding="utf-8") as f:
        f.write(rendered[raw, unit])
