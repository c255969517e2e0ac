package harness;

import java.io.IOException;
import java.nio.*;
import java.nio.file.*;
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.SimpleGroup;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.hadoop.util.HadoopOutputFile;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.*;

/**
 * A fixture of what Parquet has and Avro has not, by parquet-mr's writer of groups: intervals, times beyond the day, maps without values
 * and with keys that are records. What is to be served is put together here by hand, as in RecordFiles.
 */
final class GroupFiles {
    private GroupFiles() {}

    static final MessageType ROW = MessageTypeParser.parseMessageType("""
            message Row {
              required binary id (STRING);
              required fixed_len_byte_array(12) span (INTERVAL);
              required int64 clock (TIME(MICROS,true));
              required int64 nanos (TIMESTAMP(NANOS,true));
              required group names (MAP) { repeated group key_value { required binary key (STRING); } }
              required group pairs (MAP) { repeated group key_value { required group key { required int32 a; optional int32 b; } optional int64 value; } }
            }
            """);

    static Map<String, List<Rec>> write(Fixture f, Path dir) throws IOException {
        String name = "part-r-00000.parquet";
        var path = new org.apache.hadoop.fs.Path(dir.resolve(name).toUri());
        List<Rec> expected = new ArrayList<>();
        try (ParquetWriter<Group> w = ExampleParquetWriter.builder(HadoopOutputFile.fromPath(path, new Configuration())).withType(ROW)
                .withCompressionCodec(CompressionCodecName.valueOf(f.compression)).build()) {
            for (int i = 0; i < 20; i++) {
                Map<String, Object> served = new LinkedHashMap<>();
                w.write(row(i, served));
                expected.add(Rec.put(RecordFiles.text(served.get("id")), RecordFiles.text(served)));
            }
        }
        Files.deleteIfExists(dir.resolve("." + name + ".crc"));
        Files.createFile(dir.resolve("_SUCCESS"));
        return new TreeMap<>(Map.of(name, expected));
    }

    /** Row i for the writer, and in served what its fields are to be shown as. */
    private static Group row(int i, Map<String, Object> served) {
        Group g = new SimpleGroup(ROW).append("id", "row-" + i);
        served.put("id", "row-" + i);
        byte[] span = ByteBuffer.allocate(12).order(ByteOrder.LITTLE_ENDIAN).putInt(i).putInt(i + 1).putInt(i * 1001).array();
        g.append("span", Binary.fromConstantByteArray(span));
        served.put("span", String.format("P%dM%dDT%d.%03dS", i, i + 1, i * 1001 / 1000, i * 1001 % 1000));
        long hours = 3L * i - 6; // the day has 24
        g.append("clock", hours * 3_600_000_000L);
        served.put("clock", String.format("%s%02d:00:00.000000", hours < 0 ? "-" : "", Math.abs(hours)));
        g.append("nanos", i * 1_000_000_000L + i);
        served.put("nanos", String.format("1970-01-01T00:00:%02d.%09dZ", i, i));
        Group names = g.addGroup("names"), pairs = g.addGroup("pairs");
        List<Object> keys = new ArrayList<>(), entries = new ArrayList<>();
        for (int n = 0; n < i % 3; n++) {
            names.addGroup("key_value").append("key", "name " + n);
            keys.add("name " + n);
            entries.add(pair(pairs.addGroup("key_value"), i, n));
        }
        served.put("names", keys);
        served.put("pairs", entries);
        return g;
    }

    private static Map<String, Object> pair(Group entry, int a, int b) {
        Map<String, Object> served = new LinkedHashMap<>(), key = new LinkedHashMap<>();
        Group g = entry.addGroup("key").append("a", a);
        if (b > 0) g.append("b", b);
        key.put("a", a);
        key.put("b", b > 0 ? b : null);
        if (b == 0) entry.append("value", 7L);
        served.put("key", key);
        served.put("value", b == 0 ? 7L : null);
        return served;
    }
}
