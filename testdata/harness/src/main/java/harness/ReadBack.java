package harness;

import java.io.IOException;
import java.nio.file.Path;
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.*;
import org.apache.hadoop.util.ReflectionUtils;

/** Proves a fixture with Hadoop's own reader: what it finds in each file is what was given to the writer. */
final class ReadBack {
    private ReadBack() {}

    static void check(Path dir, Map<String, List<Rec>> files) throws IOException {
        for (Map.Entry<String, List<Rec>> e : files.entrySet()) {
            List<Rec> got = read(dir.resolve(e.getKey())), want = e.getValue();
            if (got.size() != want.size()) throw new IOException(dir + " " + e.getKey() + ": " + got.size() + " records, not " + want.size());
            for (int i = 0; i < got.size(); i++)
                if (!Arrays.equals(got.get(i).key(), want.get(i).key()) || !Arrays.equals(got.get(i).value(), want.get(i).value()))
                    throw new IOException(dir + " " + e.getKey() + ": record " + i + " differs");
        }
    }

    static List<Rec> read(Path file) throws IOException {
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
}
