"""Renders what spark.scala wrote: spark.py DIR makes FILE.ndjson of each FILE.raw."""

import json
import os
import sys

import render

OUT = sys.argv[1]
rendered = {}  # by the raw rows: those of a variant are mostly alike
for name in sorted(os.listdir(OUT)):
    if not name.endswith(".raw"):
        continue
    with open(os.path.join(OUT, name), encoding="utf-8", newline="\n") as f:
        raw = f.read()
    if raw not in rendered:
        schema, *rows = map(json.loads, raw.splitlines())
        rendered[raw] = "".join(render.spark(r, schema) + "\n" for r in rows)
    with open(os.path.join(OUT, name.removesuffix(".raw") + ".ndjson"), "w", encoding="utf-8") as f:
        f.write(rendered[raw])
