package harness;

import com.spotify.sparkey.*;
import java.io.*;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.*;
import org.apache.hadoop.util.ReflectionUtils;

/**
 * What Hadoop's and Sparkey's own readers find in a file.
 *
 * <p>"read file=PATH": the number of records and the SHA-256 over all of them, each as one byte (1 if deleted), the length of the key (4 bytes,
 * big-endian), the key, the length of the value, the value.
 */
final class ReadBack {
    private ReadBack() {}

    static String run(Map<String, String> o) throws Exception {
        Path file = Path.of(o.get("file"));
        MessageDigest d = MessageDigest.getInstance("SHA-256");
        List<Rec> all = file.toString().endsWith(".spl") ? sparkey(file) : sequenceFile(file);
        for (Rec r : all) {
            d.update((byte) (r.deleted() ? 1 : 0));
            for (byte[] b : List.of(r.key(), r.value())) {
                d.update(ByteBuffer.allocate(4).putInt(b.length).array());
                d.update(b);
            }
        }
        return "records=" + all.size() + " sha256=" + HexFormat.of().formatHex(d.digest());
    }

    /** Proves a fixture: what is found in each file is what was given to its writer. */
    static void check(Path dir, Map<String, List<Rec>> files) throws IOException {
        for (Map.Entry<String, List<Rec>> e : files.entrySet()) {
            Path file = dir.resolve(e.getKey());
            List<Rec> got = e.getKey().endsWith(".spl") ? sparkey(file) : sequenceFile(file), want = e.getValue();
            if (got.size() != want.size()) throw new IOException(file + ": " + got.size() + " records, not " + want.size());
            for (int i = 0; i < got.size(); i++) if (!same(got.get(i), want.get(i))) throw new IOException(file + ": record " + i + " differs");
        }
    }

    private static boolean same(Rec a, Rec b) {
        return a.deleted() == b.deleted() && Arrays.equals(a.key(), b.key()) && Arrays.equals(a.value(), b.value());
    }

    private static List<Rec> sequenceFile(Path file) throws IOException {
        Configuration c = new Configuration();
        List<Rec> out = new ArrayList<>();
        try (SequenceFile.Reader r = new SequenceFile.Reader(c, SequenceFile.Reader.file(new org.apache.hadoop.fs.Path(file.toUri())))) {
            Writable k = blank(r.getKeyClass(), c), v = blank(r.getValueClass(), c);
            while (r.next(k, v)) out.add(Rec.put(Kind.bytes(k), Kind.bytes(v)));
        }
        return out;
    }

    private static Writable blank(Class<?> type, Configuration c) {
        return type == NullWritable.class ? NullWritable.get() : (Writable) ReflectionUtils.newInstance(type, c);
    }

    private static List<Rec> sparkey(Path file) throws IOException {
        List<Rec> out = new ArrayList<>();
        for (SparkeyReader.Entry e : new SparkeyLogIterator(file.toFile()))
            out.add(e.getType() == SparkeyReader.Type.DELETE ? Rec.delete(e.getKey().clone()) : Rec.put(e.getKey().clone(), e.getValue()));
        return out;
    }
}
