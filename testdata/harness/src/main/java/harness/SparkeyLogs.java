package harness;

import com.spotify.sparkey.*;
import java.io.*;
import java.nio.file.*;
import java.util.*;
import org.xerial.snappy.SnappyFramedOutputStream;

/**
 * Fixtures by Sparkey's Java writer: one log a partition, cut along the function "string", with its index beside it as .spi.sz (framed
 * Snappy), which is how the jobs that feed the old sequins leave them.
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
        for (int i = 0; i < f.files; i++) {
            String name = String.format("part-%05d.spl", i);
            List<Rec> mine = new ArrayList<>();
            for (Rec r : f.records) if (f.cut.partition(r.key(), f.files) == i) mine.add(r);
            files.put(name, mine);
            log(f, mine, dir.resolve(name).toFile());
        }
        Files.createFile(dir.resolve("_SUCCESS"));
        return files;
    }

    private static void log(Fixture f, List<Rec> records, File spl) throws IOException {
        try (SparkeyWriter w = Sparkey.createNew(spl, CompressionType.valueOf(f.compression), f.sparkeyBlock)) {
            for (Rec r : records) {
                if (r.deleted()) w.delete(r.key());
                else w.put(r.key(), r.value());
            }
            w.setHashSeed(42);
            w.writeHash();
        }
        check(records, spl);
        File spi = Sparkey.getIndexFile(spl);
        try (OutputStream o = new SnappyFramedOutputStream(new FileOutputStream(spi + ".sz"))) { Files.copy(spi.toPath(), o); }
        Files.delete(spi.toPath());
    }

    /** Sparkey's writer leaves out the delete of a key longer than every key put before; such a record must not be in a fixture. */
    private static void check(List<Rec> records, File spl) throws IOException {
        Iterator<Rec> want = records.iterator();
        for (SparkeyReader.Entry e : new SparkeyLogIterator(spl)) {
            Rec r = want.next();
            boolean deleted = e.getType() == SparkeyReader.Type.DELETE;
            if (deleted != r.deleted() || !Arrays.equals(e.getKey(), r.key()) || !deleted && !Arrays.equals(e.getValue(), r.value()))
                throw new IOException(spl + ": a record differs");
        }
        if (want.hasNext()) throw new IOException(spl + ": records are missing");
    }
}
