package harness;

import com.spotify.sparkey.*;
import java.io.*;
import java.nio.file.*;
import java.util.*;
import org.xerial.snappy.SnappyFramedOutputStream;

/**
 * Fixtures by Sparkey's Java writer: logs cut along the function "string", each with its index beside it as .spi.sz (framed Snappy), which
 * is how the jobs that feed the old sequins leave them. The first run of digits in a log's name is its partition.
 */
final class SparkeyLogs {
    private SparkeyLogs() {}

    static Fixture fixture(String db, List<Rec> records, String compression, int blockSize) {
        Fixture f = new Fixture(db, records).cut(Cut.STRING, 3);
        f.format = "sparkey";
        f.compression = compression;
        f.sparkeyBlock = blockSize;
        return f;
    }

    /** Deletes some keys, puts some of those again, and deletes a key that was never there. */
    static List<Rec> withDeletes(List<Rec> in) {
        List<Rec> out = new ArrayList<>(in);
        for (int i = 0; i < in.size(); i += 3) out.add(Rec.delete(in.get(i).key()));
        for (int i = 0; i < in.size(); i += 9) out.add(Rec.put(in.get(i).key(), Data.utf8("again " + i)));
        out.add(Rec.delete(Data.utf8("never there")));
        return out;
    }

    static Map<String, List<Rec>> write(Fixture f, Path dir) throws IOException {
        Files.createDirectories(dir);
        Map<String, List<Rec>> files = new TreeMap<>();
        for (int i = 0; i < f.files; i++)
            for (int part = 0; part < f.logsPerPartition; part++) files.put(name(f, i, part), new ArrayList<>());
        int n = 0; // the records go to a partition's logs in turn
        for (Rec r : f.records) files.get(name(f, f.cut.partition(r.key(), f.files), n++ % f.logsPerPartition)).add(r);
        for (Map.Entry<String, List<Rec>> e : files.entrySet()) log(f, e.getValue(), dir.resolve(e.getKey()).toFile());
        Files.createFile(dir.resolve("_SUCCESS"));
        return files;
    }

    private static String name(Fixture f, int partition, int part) {
        return f.logsPerPartition == 1 ? String.format("part-%05d.spl", partition) : String.format("part%d-file%d.spl", partition, part);
    }

    /** Sparkey's writer silently leaves out the delete of a key longer than every key put before; ReadBack.check would find that. */
    private static void log(Fixture f, List<Rec> records, File spl) throws IOException {
        try (SparkeyWriter w = Sparkey.createNew(spl, CompressionType.valueOf(f.compression), f.sparkeyBlock)) {
            for (Rec r : records) {
                if (r.deleted()) w.delete(r.key());
                else w.put(r.key(), r.value());
            }
            w.setHashSeed(42);
            w.writeHash();
        }
        File spi = Sparkey.getIndexFile(spl);
        try (OutputStream o = new SnappyFramedOutputStream(new FileOutputStream(spi + ".sz"))) { Files.copy(spi.toPath(), o); }
        Files.delete(spi.toPath());
    }
}
