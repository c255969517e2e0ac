"""Renders values as docs/DATA.md says, from what a writer's own reader returns."""

import base64
import datetime
import math

import numpy
import pyarrow


def text(s):
    out = []
    for c in s:
        if c in '"\\':
            out.append("\\" + c)
        elif c in "\n\r\t":
            out.append({"\n": "\\n", "\r": "\\r", "\t": "\\t"}[c])
        elif c < " ":
            out.append("\\u%04x" % ord(c))
        else:
            out.append(c)
    return '"' + "".join(out) + '"'


def number(f):
    """Renders a numpy float by its shortest digits."""
    if math.isnan(f):
        return '"NaN"'
    if math.isinf(f):
        return '"Infinity"' if f > 0 else '"-Infinity"'
    if f != 0 and not 1e-6 <= abs(float(f)) < 1e21:
        return numpy.format_float_scientific(f, unique=True, trim="-", exp_digits=2)
    return numpy.format_float_positional(f, unique=True, trim="-")


UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
DECIMALS = {"s": 3, "ms": 3, "us": 6, "ns": 9}  # seconds are written as milliseconds


def fraction(nanos, unit):
    return "." + ("%09d" % nanos)[: DECIMALS[unit]]


def instant(nanos, utc, unit):
    seconds, rest = divmod(nanos, 10**9)
    at = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    return text(at.isoformat() + fraction(rest, unit) + ("Z" if utc else ""))


def clock(nanos, unit):
    seconds, rest = divmod(nanos, 10**9)
    return text("%02d:%02d:%02d" % (seconds // 3600, seconds // 60 % 60, seconds % 60) + fraction(rest, unit))


def scalar(v, utc):
    """Renders a pyarrow scalar. utc: timestamps without a zone are instants, too."""
    t = v.type
    if not v.is_valid:
        return "null"
    if isinstance(v, pyarrow.ExtensionScalar):
        if t.extension_name == "arrow.uuid":
            return text(str(v.as_py()))
        return scalar(v.value, utc)
    if pyarrow.types.is_dictionary(t):
        return scalar(v.value, utc)
    if pyarrow.types.is_struct(t):
        return "{" + ",".join(text(f.name) + ":" + scalar(v[i], utc) for i, f in enumerate(t)) + "}"
    if pyarrow.types.is_map(t):
        entries = []
        for entry in v.values:
            k = scalar(entry[0], utc)
            entries.append((k if k[0] == '"' else '"' + k + '"') + ":" + scalar(entry[1], utc))
        return "{" + ",".join(entries) + "}"
    if pyarrow.types.is_list(t) or pyarrow.types.is_large_list(t) or pyarrow.types.is_fixed_size_list(t):
        return "[" + ",".join(scalar(e, utc) for e in v.values) + "]"
    if pyarrow.types.is_timestamp(t):
        return instant(v.value * UNITS[t.unit], utc or t.tz is not None, t.unit)
    if pyarrow.types.is_time(t):
        return clock(v.value * UNITS[t.unit], t.unit)
    if pyarrow.types.is_duration(t):
        return str(v.value)
    if pyarrow.types.is_date(t):
        return text(v.as_py().isoformat())
    if pyarrow.types.is_decimal(t):
        return text(format(v.as_py(), "f"))
    if pyarrow.types.is_boolean(t):
        return "true" if v.as_py() else "false"
    if pyarrow.types.is_integer(t):
        return str(v.as_py())
    if pyarrow.types.is_float64(t):
        return number(numpy.float64(v.as_py()))
    if pyarrow.types.is_floating(t):  # halves are widened
        return number(numpy.float32(v.as_py()))
    if pyarrow.types.is_interval(t):
        m = v.as_py()
        ms = m.nanoseconds // 10**6
        return text("P%dM%dDT%d.%03dS" % (m.months, m.days, ms // 1000, ms % 1000))
    if isinstance(v.as_py(), str):
        return text(v.as_py())
    if isinstance(v.as_py(), bytes):
        return text(base64.b64encode(v.as_py()).decode())
    raise TypeError(t)


def table(t, utc=False):
    """Returns the rows of a pyarrow table, as JSON."""
    names = [text(n) for n in t.column_names]
    columns = [c.combine_chunks() for c in t.columns]
    columns = [c.chunk(0) if isinstance(c, pyarrow.ChunkedArray) else c for c in columns]
    return ["{" + ",".join(n + ":" + scalar(c[i], utc) for n, c in zip(names, columns)) + "}" for i in range(t.num_rows)]


def avro(v, schema):
    """Renders what fastavro gives for a schema."""
    if isinstance(schema, list):
        if v is None:
            return "null"
        return avro(v, next(s for s in schema if s != "null"))
    kind = schema["type"] if isinstance(schema, dict) else schema
    logical = schema.get("logicalType", "") if isinstance(schema, dict) else ""
    unit = "ms" if logical.endswith("-millis") else "us"
    if kind == "record":
        return "{" + ",".join(text(f["name"]) + ":" + avro(v[f["name"]], f["type"]) for f in schema["fields"]) + "}"
    if kind == "array":
        return "[" + ",".join(avro(e, schema["items"]) for e in v) + "]"
    if kind == "map":
        return "{" + ",".join(text(k) + ":" + avro(e, schema["values"]) for k, e in v.items()) + "}"
    if logical == "decimal":
        return text(format(v, "f"))
    if logical == "uuid":
        return text(str(v))
    if logical == "date":
        return text(v.isoformat())
    if logical.startswith("time-"):
        return clock(((v.hour * 60 + v.minute) * 60 + v.second) * 10**9 + v.microsecond * 1000, unit)
    if "timestamp-" in logical:
        since = v.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)
        nanos = ((since.days * 86400 + since.seconds) * 10**6 + since.microseconds) * 1000
        return instant(nanos, not logical.startswith("local-"), unit)
    if kind == "boolean":
        return "true" if v else "false"
    if kind == "float":
        return number(numpy.float32(v))
    if kind == "double":
        return number(numpy.float64(v))
    if kind in ("int", "long"):
        return str(v)
    if kind in ("bytes", "fixed"):
        return text(base64.b64encode(v).decode())
    return text(v)


def spark(v, t, unit):
    """Renders what spark.scala wrote of a value of a type, which is as in the JSON of a schema of Spark. unit is that of
    instants in the file; Spark itself has microseconds."""
    if v is None:
        return "null"
    if isinstance(t, dict):
        if t["type"] == "struct":
            return "{" + ",".join(text(f["name"]) + ":" + spark(e, f["type"], unit) for f, e in zip(t["fields"], v, strict=True)) + "}"
        if t["type"] == "map":
            entries = []
            for key, e in v:
                k = spark(key, t["keyType"], unit)
                entries.append((k if k[0] == '"' else '"' + k + '"') + ":" + spark(e, t["valueType"], unit))
            return "{" + ",".join(entries) + "}"
        if t["type"] == "array":
            return "[" + ",".join(spark(e, t["elementType"], unit) for e in v) + "]"
        raise TypeError(t)
    if t == "string":
        return text(v)
    if t == "binary":
        return text(base64.b64encode(bytes.fromhex(v)).decode())
    if t == "boolean":
        return "true" if v else "false"
    if t == "float":
        return number(numpy.array([v], "int32").view("float32")[0])
    if t == "double":
        return number(numpy.array([v], "int64").view("float64")[0])
    if t == "date":
        return text((datetime.date(1970, 1, 1) + datetime.timedelta(v)).isoformat())
    if t == "timestamp":
        return instant(v * 1000, True, unit)
    if t == "timestamp_ntz":
        return instant(v * 1000, False, "us")
    if t.startswith("decimal("):
        sign, digits, scale = "-" if v < 0 else "", str(abs(v)), int(t[:-1].split(",")[1])
        digits = digits.rjust(scale + 1, "0")
        return text(sign + digits[: len(digits) - scale] + ("." + digits[len(digits) - scale :] if scale else ""))
    if t in ("integer", "long", "short", "byte") or t.startswith("interval "):
        return str(v)
    raise TypeError(t)
