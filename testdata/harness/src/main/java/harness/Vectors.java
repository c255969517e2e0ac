package harness;

import cascading.tuple.Tuple;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import org.apache.hadoop.io.*;
import org.apache.hadoop.mapreduce.lib.partition.HashPartitioner;

/**
 * "vectors out=FILE": hash codes and partitions of many keys, as JSON. String.hashCode, Text.hashCode, BytesWritable.hashCode, Tuple.hashCode
 * and HashPartitioner are the real ones; Spark's non-negative mod and the masking of Cascading's partitioner are restated (see Cut).
 */
final class Vectors {
    private Vectors() {}

    private static final int[] N = {1, 2, 3, 4, 5, 7, 8, 10, 31, 32, 100, 255, 256, 1000, 1024, 4099, 65536, 1_000_003, 1 << 30, Integer.MAX_VALUE};

    static String run(Map<String, String> o) throws Exception {
        StringBuilder b = new StringBuilder("{\n\"partitions\": ").append(Arrays.toString(N)).append(",\n\"keys\": [\n");
        List<byte[]> keys = keys();
        for (byte[] k : keys) vector(b, k);
        b.setLength(b.length() - 2);
        Path out = Path.of(o.get("out"));
        Files.createDirectories(out.toAbsolutePath().getParent());
        Files.writeString(out, b.append("\n]\n}\n"));
        return "out=" + out + " keys=" + keys.size();
    }

    private static List<byte[]> keys() {
        List<byte[]> out = new ArrayList<>();
        out.add(Rec.NOTHING);
        for (Rec r : Data.binary(31)) out.add(r.key());
        for (int i = 0; i < 256; i += 5) out.add(Data.raw(i));
        for (Rec r : Data.hashed(60, false)) out.add(r.key());
        for (int n : new int[] {1000, 4096, 65536}) out.add(Data.words(new Random(n), n));
        for (String s : List.of("foo bar baz", "foobarbaz", "The quick brown fox jumped over the lazy dog", "Aa", "BB",
                "DESIGNING WORKHOUSES", "GydZG_", // Integer.MIN_VALUE, as "polygenelubricants" above
               
                "\uD83D\uDE00", "\uD83D\uDE00\uD83D\uDE00", "a\uD83D\uDE00", "\uDBFF\uDFFF")) out.add(Data.utf8(s));
        return out;
    }

    private static void vector(StringBuilder b, byte[] key) {
        boolean string = Cut.isString(key);
        Text text = new Text(key);
        BytesWritable bytes = new BytesWritable(key);
        b.append("{\"key\":\"").append(Base64.getEncoder().encodeToString(key)).append("\",\"byteHash\":").append(Cut.STRING.hash(key));
        b.append(",\"textHashCode\":").append(text.hashCode()).append(",\"bytesWritableHashCode\":").append(bytes.hashCode());
        if (string) {
            String s = new String(key, StandardCharsets.UTF_8);
            b.append(",\"stringHashCode\":").append(s.hashCode()).append(",\"tupleHashCode\":").append(new Tuple(s).hashCode());
        }
        for (Cut c : Cut.values()) {
            if (!string && (c == Cut.SPARK || c == Cut.CASCADING)) continue; // such a key is no String
            b.append(",\"").append(c.id()).append("\":").append(Arrays.toString(Arrays.stream(N).map(n -> c.partition(key, n)).toArray()).replace(" ", ""));
        }
        for (int n : N) {
            HashPartitioner<Object, Object> p = new HashPartitioner<>();
            if (p.getPartition(text, null, n) != p.getPartition(bytes, null, n)) throw new IllegalStateException("Text and BytesWritable part ways");
        }
        b.append("},\n");
    }
}
