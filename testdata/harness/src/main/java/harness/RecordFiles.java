package harness;

import java.io.*;
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.time.*;
import java.util.*;
import org.apache.avro.Schema;
import org.apache.avro.file.*;
import org.apache.avro.generic.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.avro.*;
import org.apache.parquet.hadoop.*;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.hadoop.util.*;

/**
 * Fixtures by the writers of Avro and of parquet-mr: files of records with a field of every kind, cut along the function "string". What is to
 * be served for a record, its key and value as text and as JSON, is put together here by hand, without either format.
 */
final class RecordFiles {
    private RecordFiles() {}

    static final Schema EVENT = new Schema.Parser().parse("""
            {"type": "record", "name": "Event", "namespace": "fixtures", "fields": [
              {"name": "id", "type": "string"},
              {"name": "n", "type": "int"},
              {"name": "big", "type": "long"},
              {"name": "yes", "type": "boolean"},
              {"name": "ratio", "type": "double"},
              {"name": "half", "type": "float"},
              {"name": "day", "type": {"type": "int", "logicalType": "date"}},
              {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
              {"name": "exact", "type": {"type": "long", "logicalType": "timestamp-micros"}},
              {"name": "clock", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
              {"name": "noon", "type": {"type": "long", "logicalType": "time-micros"}},
              {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
              {"name": "fee", "type": {"type": "fixed", "name": "Fee", "size": 6, "logicalType": "decimal", "precision": 12, "scale": 4}},
              {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
              {"name": "raw", "type": "bytes"},
              {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "GREEN"]}},
              {"name": "note", "type": ["null", "string"]},
              {"name": "tags", "type": {"type": "array", "items": "string"}},
              {"name": "counts", "type": {"type": "map", "values": "long"}},
              {"name": "inner", "type": {"type": "record", "name": "Inner", "fields": [
                {"name": "name", "type": "string"}, {"name": "maybe", "type": ["null", "long"]}]}},
              {"name": "rows", "type": {"type": "array", "items": ["null", "fixtures.Inner"]}}]}
            """);

    /** A fixture of this format and codec. key and value are what [db.NAME] must say. */
    static Fixture fixture(String db, String format, String codec, String key, String value) {
        Fixture f = new Fixture(db, List.of()).cut(Cut.STRING, 3);
        f.format = format;
        f.compression = codec;
        f.keyField = key;
        f.valueField = value;
        return f;
    }

    static Map<String, List<Rec>> write(Fixture f, Path dir) throws IOException {
        Files.createDirectories(dir);
        if (f.groups) return GroupFiles.write(f, dir);
        List<List<GenericRecord>> files = new ArrayList<>();
        Map<String, List<Rec>> expected = new TreeMap<>();
        for (int i = 0; i < f.files; i++) {
            files.add(new ArrayList<>());
            expected.put(name(f, i), new ArrayList<>());
        }
        for (int i = 0; i < 60; i++) {
            Map<String, Object> served = new LinkedHashMap<>();
            GenericRecord r = event(i, served, !f.oldLists);
            byte[] key = text(find(served, f.keyField));
            int file = f.cut.partition(key, f.files);
            files.get(file).add(r);
            expected.get(name(f, file)).add(Rec.put(key, text(f.valueField.isEmpty() ? served : find(served, f.valueField))));
        }
        for (int i = 0; i < f.files; i++) {
            Path p = dir.resolve(name(f, i));
            if (f.format.equals("avro")) avro(f, p, files.get(i));
            else parquet(f, p, files.get(i));
        }
        Files.createFile(dir.resolve("_SUCCESS"));
        return expected;
    }

    private static String name(Fixture f, int i) { return String.format("part-r-%05d.%s", i, f.format); }

    private static void avro(Fixture f, Path p, List<GenericRecord> records) throws IOException {
        try (DataFileWriter<GenericRecord> w = new DataFileWriter<>(new GenericDatumWriter<>(EVENT))) {
            w.setCodec(org.apache.avro.file.CodecFactory.fromString(f.compression)).setSyncInterval(2000).create(EVENT, p.toFile());
            for (GenericRecord r : records) w.append(r);
        }
        try (DataFileReader<GenericRecord> back = new DataFileReader<>(p.toFile(), new GenericDatumReader<>())) {
            for (GenericRecord r : records) if (!back.next().equals(r)) throw new IOException(p + ": a record differs");
            if (back.hasNext()) throw new IOException(p + ": there are more records");
        }
    }

    /** Small pages and row groups, so that rows go over several; and lists as old writers spell them, or as the format says now. */
    private static void parquet(Fixture f, Path p, List<GenericRecord> records) throws IOException {
        Configuration c = new Configuration();
        c.set("parquet.avro.write-old-list-structure", Boolean.toString(f.oldLists));
        org.apache.hadoop.fs.Path path = new org.apache.hadoop.fs.Path(p.toUri());
        // an array in the old structure cannot hold a null, and event() gives it none
        try (ParquetWriter<GenericRecord> w = AvroParquetWriter.<GenericRecord>builder(HadoopOutputFile.fromPath(path, c)).withSchema(EVENT).withConf(c)
                .withCompressionCodec(CompressionCodecName.valueOf(f.compression)).withRowGroupSize(6000L).withPageSize(200).withPageRowCountLimit(7)
                .withMinRowCountForPageSizeCheck(1).withDictionaryEncoding("note", true).build()) {
            for (GenericRecord r : records) w.write(r);
        }
        Files.deleteIfExists(p.resolveSibling("." + p.getFileName() + ".crc"));
        try (ParquetReader<GenericRecord> back = AvroParquetReader.<GenericRecord>builder(HadoopInputFile.fromPath(path, c)).withConf(c).build()) {
            for (GenericRecord r : records) if (!back.read().get("id").toString().equals(r.get("id").toString())) throw new IOException(p + ": a record differs");
            if (back.read() != null) throw new IOException(p + ": there are more records");
        }
    }

    /** Record i for the writers, and in served what its fields are to be shown as. */
    private static GenericRecord event(int i, Map<String, Object> served, boolean nulls) {
        GenericRecord r = new GenericData.Record(EVENT);
        Random rnd = new Random(i);
        put(r, served, "id", "event-" + i + (i % 5 == 0 ? "-ключ \"quoted\" \\ \n\t" + (char) 1 + "😀" : ""));
        put(r, served, "n", i == 0 ? Integer.MIN_VALUE : i - 30);
        put(r, served, "big", i == 1 ? Long.MAX_VALUE : i * 1_000_000_007L - 9);
        put(r, served, "yes", i % 3 == 0);
        r.put("ratio", i * 0.25 - 3);
        served.put("ratio", new Number(plain(i * 0.25 - 3)));
        r.put("half", i * 0.5f);
        served.put("half", new Number(plain(i * 0.5)));
        int day = -20000 + i * 977;
        put(r, "day", day, served, LocalDate.ofEpochDay(day).toString());
        long ms = -86_400_000L * 400 * (i % 7) + i * 1_234_567L + i * 86_400_000L * 300;
        put(r, "at", ms, served, time("uuuu-MM-dd'T'HH:mm:ss.SSS'Z'", ms * 1000));
        long us = ms * 1000 + i * 10 + 1;
        put(r, "exact", us, served, time("uuuu-MM-dd'T'HH:mm:ss.SSSSSS'Z'", us));
        put(r, "clock", ms, served, time("uuuu-MM-dd'T'HH:mm:ss.SSS", ms * 1000));
        long tod = i * 1_440_000_000L + i % 4 * 250_000L;
        put(r, "noon", tod, served, time("HH:mm:ss.SSSSSS", tod));
        decimals(i, r, served);
        put(r, served, "uuid", new UUID(rnd.nextLong(), rnd.nextLong()).toString());
        byte[] raw = Data.noise(rnd, i % 20);
        put(r, "raw", ByteBuffer.wrap(raw), served, raw);
        put(r, "color", new GenericData.EnumSymbol(EVENT.getField("color").schema(), i % 2 == 0 ? "RED" : "GREEN"), served, i % 2 == 0 ? "RED" : "GREEN");
        put(r, served, "note", i % 4 == 0 ? null : "note " + i % 3);
        collections(i, r, served, nulls);
        return r;
    }

    private static void decimals(int i, GenericRecord r, Map<String, Object> served) {
        java.math.BigDecimal price = java.math.BigDecimal.valueOf(i * 12_345L - 100_000, 2), fee = java.math.BigDecimal.valueOf(i * 77L - 1000, 4);
        put(r, "price", ByteBuffer.wrap(price.unscaledValue().toByteArray()), served, price.toPlainString());
        byte[] fixed = ByteBuffer.allocate(8).putLong(fee.unscaledValue().longValue()).array();
        put(r, "fee", new GenericData.Fixed(EVENT.getField("fee").schema(), Arrays.copyOfRange(fixed, 2, 8)), served, fee.toPlainString());
    }

    private static void collections(int i, GenericRecord r, Map<String, Object> served, boolean nulls) {
        List<String> tags = new ArrayList<>();
        for (int t = 0; t < i % 5; t++) tags.add("tag " + t);
        put(r, served, "tags", tags);
        Map<String, Object> counts = new TreeMap<>();
        for (int t = 0; t < i % 3; t++) counts.put("count" + t, (long) t * i);
        put(r, served, "counts", counts);
        List<Object> records = new ArrayList<>(), shown = new ArrayList<>();
        Map<String, Object> first = new LinkedHashMap<>();
        put(r, "inner", inner(i, first), served, first);
        for (int t = 0; t < i % 4; t++) {
            Map<String, Object> one = nulls && t == 1 ? null : new LinkedHashMap<>();
            records.add(one == null ? null : inner(i + t, one));
            shown.add(one);
        }
        put(r, "rows", records, served, shown);
    }

    private static GenericRecord inner(int i, Map<String, Object> served) {
        GenericRecord r = new GenericData.Record(EVENT.getField("inner").schema());
        put(r, served, "name", "inner " + i);
        put(r, served, "maybe", i % 2 == 0 ? null : (Object) (long) i);
        return r;
    }

    private static void put(GenericRecord r, Map<String, Object> served, String field, Object v) { put(r, field, v, served, v); }

    private static void put(GenericRecord r, String field, Object v, Map<String, Object> served, Object shown) {
        r.put(field, v);
        served.put(field, shown);
    }

    /** A number as it is to stand in JSON. */
    private record Number(String digits) {}

    private static String plain(double d) { return d == Math.rint(d) ? Long.toString((long) d) : Double.toString(d); }

    /** A number of microseconds since 1970, with the decimals of the pattern. */
    private static String time(String pattern, long us) {
        Instant at = Instant.EPOCH.plus(us, java.time.temporal.ChronoUnit.MICROS);
        return java.time.format.DateTimeFormatter.ofPattern(pattern).format(at.atOffset(ZoneOffset.UTC));
    }

    private static Object find(Object in, String path) {
        for (String name : path.split("\\.")) in = ((Map<?, ?>) in).get(name);
        return in;
    }

    /** A value that is served by itself. */
    static byte[] text(Object v) {
        if (v == null) return Rec.NOTHING;
        if (v instanceof byte[] b) return b;
        if (v instanceof String s) return Data.utf8(s);
        StringBuilder b = new StringBuilder();
        json(b, v);
        return Data.utf8(b.toString());
    }

    private static void json(StringBuilder b, Object v) {
        if (v instanceof String s) string(b, s);
        else if (v instanceof byte[] x) string(b, Base64.getEncoder().encodeToString(x));
        else if (v instanceof Number n) b.append(n.digits());
        else if (v instanceof List<?> l) {
            String between = "[";
            for (Object x : l) { b.append(between); json(b, x); between = ","; }
            b.append(l.isEmpty() ? "[]" : "]");
        } else if (v instanceof Map<?, ?> m) {
            String between = "{";
            for (Map.Entry<?, ?> e : m.entrySet()) {
                b.append(between);
                string(b, (String) e.getKey());
                b.append(':');
                json(b, e.getValue());
                between = ",";
            }
            b.append(m.isEmpty() ? "{}" : "}");
        } else b.append(v); // null, boolean, int, long
    }

    private static void string(StringBuilder b, String s) {
        b.append('"');
        for (char c : s.toCharArray()) {
            if (c == '"' || c == '\\') b.append('\\').append(c);
            else if (c == '\n') b.append("\\n");
            else if (c == '\t') b.append("\\t");
            else if (c < ' ') b.append(String.format("\\u%04x", (int) c));
            else b.append(c);
        }
        b.append('"');
    }
}
