"""Compares what sequins reads with what other readers read: corpus.py [--known FILE] SEQUINS JAVA FOLDER...

SEQUINS is the program, and JAVA a command that runs Judge.java. Each Parquet or Avro file below the folders is a line of the
output: its verdict, its path, and the reason.

  exact     sequins reads the records that one of the judges reads: pyarrow or DuckDB, fastavro or Avro for Java
  error     neither sequins nor a judge reads it
  known     the path and the difference are in the table of known differences, with the reason
  DIFFERS   anything else

The exit code is 1 if a file differs.
"""

import argparse
import base64
import datetime
import decimal
import fnmatch
import json
import math
import multiprocessing
import os
import re
import shlex
import subprocess
import sys
import tempfile
import uuid

import duckdb
import fastavro
import numpy
import pyarrow.parquet

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "writers"))
import render  # noqa: E402

SECONDS = 120  # for a file and a reader
BATCH = 50  # files that Java reads in one process


class Failed(Exception):
    """A reader cannot read a file."""


def files(folders):
    """Yields the Parquet and Avro files below the folders, with their formats."""
    for folder in folders:
        for where, folders_in, names in os.walk(folder):
            folders_in.sort()
            for name in sorted(names):
                path = os.path.join(where, name)
                if not os.path.isfile(path) or os.path.islink(path):
                    continue
                with open(path, "rb") as f:
                    head = f.read(4)
                if head == b"Obj\x01" or name.endswith(".avro"):
                    yield path, "avro"
                elif head in (b"PAR1", b"PARE") or name.endswith((".parquet", ".parq")):
                    yield path, "parquet"


def parse(text):
    """Parses JSON with its objects as lists of pairs, so that no entry is lost."""
    return json.loads(text, object_pairs_hook=lambda pairs: ["object", *map(list, pairs)])


def sequins(program, path):
    """Returns the values that sequins serves, as text."""
    run = subprocess.run([program, "cat", "--json", path], capture_output=True, timeout=SECONDS)
    if run.returncode != 0:
        raise Failed(run.stderr.decode("utf-8", "replace").strip().removeprefix("sequins: "))
    values = []
    for line in run.stdout.splitlines():
        record = json.loads(line)
        values.append(record["value"] if "value" in record else base64.b64decode(record["value_base64"]).decode("latin-1"))
    return values


# The judges return lists of JSON.


def by_pyarrow(path):
    file = pyarrow.parquet.ParquetFile(path)
    return [parse(row) for row in render.table(file.read(use_threads=False), has_int96(file))]


def has_int96(file):
    """Reports whether timestamps without a zone are those of INT96, which are instants."""
    return any(file.schema.column(i).physical_type == "INT96" for i in range(len(file.schema)))


def by_duckdb(path):
    db = duckdb.connect(config={"threads": 1, "autoinstall_known_extensions": False})
    db.sql("SET TimeZone = 'UTC'")
    found = db.sql("SELECT * FROM read_parquet($path)", params={"path": path}).to_arrow_table()
    try:
        utc = has_int96(pyarrow.parquet.ParquetFile(path))
    except Exception:  # pyarrow cannot read it
        utc = False
    return [parse(row) for row in render.table(found, utc)]


def by_fastavro(path):
    with open(path, "rb") as f:
        return [plain(r) for r in fastavro.reader(f)]


def plain(v):
    """Returns a value of fastavro as JSON."""
    if isinstance(v, dict):
        return ["object", *([k, plain(e)] for k, e in v.items())]
    if isinstance(v, list):
        return [plain(e) for e in v]
    if isinstance(v, bytes):
        return base64.b64encode(v).decode()
    if isinstance(v, decimal.Decimal):
        return format(v, "f")
    if isinstance(v, datetime.datetime):
        return v.astimezone(datetime.timezone.utc).replace(tzinfo=None).isoformat() + "Z" if v.tzinfo else v.isoformat()
    if isinstance(v, (datetime.date, datetime.time, uuid.UUID)):
        return v.isoformat() if hasattr(v, "isoformat") else str(v)
    if isinstance(v, float) and not math.isfinite(v):
        return "NaN" if math.isnan(v) else "Infinity" if v > 0 else "-Infinity"
    return v


def child(judge, path, to):
    try:
        result = judge(path)
    except BaseException as e:
        result = "%s: %s" % (type(e).__name__, e)
    with open(to, "w", encoding="utf-8") as f:
        json.dump(result, f)


def isolated(judge, path):
    """Runs a judge in a process of its own: damaged files end some of them."""
    with tempfile.TemporaryDirectory() as folder:
        to = os.path.join(folder, "result")
        process = multiprocessing.get_context("fork").Process(target=child, args=(judge, path, to))
        process.start()
        process.join(SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
            raise Failed("it takes more than %d seconds" % SECONDS)
        if process.exitcode != 0:
            raise Failed("it ends with %d" % process.exitcode)
        with open(to, encoding="utf-8") as f:
            result = json.load(f)
    if isinstance(result, str):
        raise Failed(result)
    return result


def by_java(command, paths):
    """Returns what Avro for Java reads of each file: a list of JSON, or a Failed."""
    results = {}
    for at in range(0, len(paths), BATCH):
        batch = paths[at : at + BATCH]
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([*shlex.split(command), folder, *batch], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=SECONDS * BATCH)
            for i, path in enumerate(batch):
                try:
                    with open(os.path.join(folder, "%d.error" % i), encoding="utf-8") as f:
                        error = f.read()
                    with open(os.path.join(folder, "%d.ndjson" % i), encoding="utf-8") as f:
                        results[path] = Failed(error) if error else [parse(line) for line in f]
                except FileNotFoundError:
                    results[path] = Failed("Java has ended")
    return results


TIME = re.compile(r"((?:-?\d{4,}-\d\d-\d\dT)?\d\d:\d\d:\d\d)(?:\.(\d+?)0*)?(Z?)")


def same(ours, theirs, loose):
    """Compares JSON. loose: the judge has one unit of time, no float of 32 bits, or no order of the entries of a map."""
    if isinstance(ours, list) and isinstance(theirs, list):
        if loose and ours[:1] == ["object"] == theirs[:1]:
            ours, theirs = sorted(ours[1:]), sorted(theirs[1:])
        return len(ours) == len(theirs) and all(same(a, b, loose) for a, b in zip(ours, theirs))
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return ours is theirs
    if isinstance(ours, float) or isinstance(theirs, float):
        if not isinstance(ours, (int, float)) or not isinstance(theirs, (int, float)):
            return False
        return ours == theirs or loose and numpy.float32(ours) == numpy.float32(theirs)
    if isinstance(ours, str) and isinstance(theirs, str):
        return ours == theirs or loose and short(ours) == short(theirs)
    return ours == theirs


def short(text):
    """Returns a time without the zeros at its end."""
    found = TIME.fullmatch(text)
    if not found:
        return text
    return found[1] + ("." + found[2] if (found[2] or "").strip("0") else "") + found[3]


def same_value(ours, theirs, loose):
    """Compares a value as it is served, which is text or JSON."""
    if isinstance(theirs, str):
        return same(ours, theirs, loose) or base64.b64encode(ours.encode("latin-1", "replace")).decode() == theirs
    if theirs is None:
        return ours == ""
    try:
        return same(parse(ours), theirs, loose)
    except ValueError:
        return False


def difference(ours, theirs, loose):
    """Returns the first difference; empty if there is none."""
    for i, (a, b) in enumerate(zip(ours, theirs)):
        if not same_value(a, b, loose):
            return "record %d: %.300s, not %.300s" % (i, a, json.dumps(b, ensure_ascii=False))
    return "" if len(ours) == len(theirs) else "%d records, not %d" % (len(ours), len(theirs))


def verdict(program, path, kind, java):
    """Asks one judge after another, until one agrees."""
    if kind == "parquet":
        judges = {"pyarrow": lambda: isolated(by_pyarrow, path), "DuckDB": lambda: isolated(by_duckdb, path)}
    else:
        judges = {"Java": lambda: java[path], "fastavro": lambda: isolated(by_fastavro, path)}
    ours = attempt(sequins, program, path)
    read, errors, differences = [], [], []
    for name, judge in judges.items():
        found = attempt(judge)
        if isinstance(found, Failed):
            errors.append("%s: %.200s" % (name, found))
            continue
        read.append(name)
        if isinstance(ours, Failed):
            continue
        what = difference(ours, found, name in ("fastavro", "DuckDB"))
        if not what:
            return "exact", name
        differences.append("%s: %s" % (name, what))
    if isinstance(ours, Failed):
        return ("DIFFERS", "%s; read by %s" % (ours, ", ".join(read))) if read else ("error", str(ours))
    return "DIFFERS", "; ".join(differences) if read else "it is read; " + "; ".join(errors)


def attempt(f, *args):
    """Returns the result of f, or why there is none."""
    try:
        return f(*args)
    except (Failed, subprocess.TimeoutExpired, ValueError, RecursionError) as e:
        return Failed(" ".join(str(e).split()))


def known_differences(name):
    """Reads the table of known differences: a pattern of paths, one of what is said of the file, and the reason, with tabs between."""
    with open(name, encoding="utf-8") as f:
        return [line.rstrip("\n").split("\t") for line in f if line.strip() and not line.startswith("#")]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--known", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "known.tsv"))
    arguments.add_argument("sequins")
    arguments.add_argument("java")
    arguments.add_argument("folders", nargs="+")
    args = arguments.parse_args()
    known = known_differences(args.known)
    all_files = list(files(args.folders))
    java = by_java(args.java, [path for path, kind in all_files if kind == "avro"])
    counts = {}
    for path, kind in all_files:
        result, reason = verdict(args.sequins, path, kind, java)
        if result == "DIFFERS":
            for where, what, why in known:
                if fnmatch.fnmatchcase(path, where) and fnmatch.fnmatchcase(reason, what):
                    result, reason = "known", why + ": " + reason
                    break
        counts[result] = counts.get(result, 0) + 1
        print("%s\t%s\t%.600s" % (result, path, reason), flush=True)
    print("\t".join("%s %d" % count for count in sorted(counts.items())))
    return 1 if counts.get("DIFFERS") else 0


if __name__ == "__main__":
    sys.exit(main())
