package harness;

import java.nio.file.*;
import java.util.*;

/**
 * "fixtures out=DIR [only=PREFIX]": writes every fixture of the catalogue as a version of a db under DIR, which so becomes a source that
 * sequins can serve, and what each must hold under DIR/_expected.
 */
final class Fixtures {
    private Fixtures() {}

    private static final String VERSION = "1";

    static String run(Map<String, String> o) throws Exception {
        Path out = Path.of(o.get("out")).toAbsolutePath();
        int n = 0;
        for (Fixture f : catalogue()) {
            if (!f.db.startsWith(o.getOrDefault("only", ""))) continue;
            write(f, out);
            n++;
        }
        return "out=" + out + " fixtures=" + n;
    }

    private static void write(Fixture f, Path out) throws Exception {
        Path dir = out.resolve(f.db).resolve(VERSION);
        Tree.delete(out.resolve(f.db));
        Files.createDirectories(dir.getParent());
        Map<String, List<Rec>> files = f.ofRecords() ? RecordFiles.write(f, dir) : f.format.equals("sparkey") ? SparkeyLogs.write(f, dir) : FixtureJob.run(f, dir);
        if (f.header != 6) OldHeader.rewrite(dir, f.header);
        if (f.manifestCommitter) Tree.anonymise(dir);
        if (!f.keepCrc) Tree.deleteCrc(dir);
        if (!f.success) Files.delete(dir.resolve("_SUCCESS"));
        if (!f.ofRecords()) ReadBack.check(dir, files);
        Expected.write(f, VERSION, files, out.resolve("_expected"));
    }

    static List<Fixture> catalogue() {
        List<Fixture> all = new ArrayList<>();
        compressions(all);
        randomised(all);
        classes(all);
        shapes(all);
        cuts(all);
        bigs(all);
        sparkey(all);
        records(all);
        Set<String> names = new HashSet<>();
        for (Fixture f : all) if (!names.add(f.db)) throw new IllegalStateException("two fixtures are called " + f.db);
        return all;
    }

    /** Every codec with RECORD and BLOCK, and no compression, for Text and BytesWritable. */
    private static void compressions(List<Fixture> all) {
        for (Kind k : List.of(Kind.TEXT, Kind.BYTES)) {
            List<Rec> data = k == Kind.TEXT ? Data.text(1) : Data.binary(1);
            String kind = k.name().toLowerCase(Locale.ROOT);
            all.add(new Fixture(kind + "-none", data).kinds(k, k));
            for (String codec : Jobs.CODECS)
                for (String type : List.of("RECORD", "BLOCK"))
                    all.add(new Fixture(kind + "-" + type.toLowerCase(Locale.ROOT) + "-" + codec.replace("Codec", "").toLowerCase(Locale.ROOT), data)
                            .kinds(k, k).compress(type, codec));
            // Hadoop has two bzip2s: the system's library, taken above, and one in Java, which codes them in its own way
            for (String type : List.of("RECORD", "BLOCK"))
                all.add(new Fixture(kind + "-" + type.toLowerCase(Locale.ROOT) + "-bzip2-java", data).kinds(k, k).compress(type, "BZip2Codec")
                        .conf("io.compression.codec.bzip2.library", "java-builtin"));
        }
    }

    /** Data that repeats so much that the bzip2 in Java gives up sorting it as it is, and writes randomised blocks. */
    private static void randomised(List<Fixture> all) {
        for (String type : List.of("RECORD", "BLOCK"))
            all.add(new Fixture("randomised-" + type.toLowerCase(Locale.ROOT) + "-bzip2-java", type.equals("BLOCK") ? Data.patterns(2000, 100) : Data.patterns(3, 50_000))
                    .compress(type, "BZip2Codec").conf("io.compression.codec.bzip2.library", "java-builtin").cut(Cut.HADOOP, 1));
    }

    /** Other classes of keys and values, which are served as they are serialised. */
    private static void classes(List<Fixture> all) {
        all.add(new Fixture("long-int", Data.longs()).kinds(Kind.LONG, Kind.INT));
        all.add(new Fixture("long-int-block-snappy", Data.longs()).kinds(Kind.LONG, Kind.INT).compress("BLOCK", "SnappyCodec"));
        all.add(new Fixture("text-null-record-gzip", Data.withValues(Data.text(2), i -> Rec.NOTHING)).kinds(Kind.TEXT, Kind.NULL)
                .compress("RECORD", "GzipCodec"));
        all.add(new Fixture("bytes-text-block-zstandard", Data.withValues(Data.binary(3), i -> Data.utf8("値 " + i))).kinds(Kind.BYTES, Kind.TEXT)
                .compress("BLOCK", "ZStandardCodec"));
        all.add(new Fixture("bytes-every-byte", Data.everyByte()).kinds(Kind.BYTES, Kind.BYTES).cut(Cut.HADOOP, 2));
    }

    /** Shapes of files: many sync markers and blocks, MapFiles, old headers, metadata, unsorted, duplicates, empty files. */
    private static void shapes(List<Fixture> all) {
        String block = "io.seqfile.compress.blocksize";
        all.add(new Fixture("sync-none", Data.text(4)).sync(3));
        all.add(new Fixture("sync-record-snappy", Data.text(4)).sync(1).compress("RECORD", "SnappyCodec"));
        all.add(new Fixture("sync-block-deflate", Data.text(4)).compress("BLOCK", "DeflateCodec").conf(block, "600"));
        all.add(new Fixture("sync-block-lz4", Data.binary(4)).kinds(Kind.BYTES, Kind.BYTES).compress("BLOCK", "Lz4Codec").conf(block, "1500")
                .conf("io.compression.codec.lz4.buffersize", "700"));
        all.add(new Fixture("chunks-block-snappy", Data.binary(5)).kinds(Kind.BYTES, Kind.BYTES).compress("BLOCK", "SnappyCodec")
                .conf("io.compression.codec.snappy.buffersize", "500"));
        all.add(new Fixture("mapfile-none", Data.text(6)).mapFile());
        all.add(new Fixture("mapfile-record-default", Data.text(6)).mapFile().compress("RECORD", "DefaultCodec").conf("io.map.index.interval", "4"));
        all.add(new Fixture("mapfile-block-snappy", Data.binary(6)).kinds(Kind.BYTES, Kind.BYTES).mapFile().compress("BLOCK", "SnappyCodec"));
        for (int v : new int[] {4, 5}) {
            all.add(new Fixture("header" + v + "-none", Data.text(7)).header(v).sync(10));
            all.add(new Fixture("header" + v + "-record-default", Data.text(7)).header(v).compress("RECORD", "DefaultCodec"));
            all.add(new Fixture("header" + v + "-block-default", Data.text(7)).header(v).compress("BLOCK", "DefaultCodec"));
        }
        all.add(new Fixture("header5-block-gzip", Data.text(7)).header(5).compress("BLOCK", "GzipCodec"));
        Fixture meta = new Fixture("metadata-block-default", Data.text(8)).compress("BLOCK", "DefaultCodec");
        meta.metadata.putAll(Map.of("created-by", "a job", "empty", "", "ключ", "значение", "long", "x".repeat(500)));
        all.add(meta);
        all.add(new Fixture("unsorted-dealt", Data.binary(9)).kinds(Kind.BYTES, Kind.BYTES).dealt(4));
        all.add(new Fixture("duplicates-sorted", Data.repeated(40, 4)).cut(Cut.HADOOP, 2));
        all.add(new Fixture("duplicates-within", Data.repeated(40, 4)).dealt(1));
        all.add(new Fixture("duplicates-across", Data.repeated(40, 4)).dealt(3).compress("RECORD", "DefaultCodec"));
        all.add(new Fixture("empty-files", Data.hashed(4, true).subList(0, 3)).cut(Cut.HADOOP, 8));
        all.add(new Fixture("one-record", List.of(Rec.put(Data.utf8("only"), Data.utf8("one")))).cut(Cut.HADOOP, 1));
        all.add(new Fixture("empty-key", List.of(Rec.put(Rec.NOTHING, Data.utf8("the key has no bytes")), Rec.put(Data.utf8("a"), Rec.NOTHING)))
                .cut(Cut.HADOOP, 1));
        Fixture committed = new Fixture("manifest-committer", Data.text(10));
        committed.manifestCommitter = true;
        all.add(committed);
        Fixture crc = new Fixture("hidden-crc", Data.text(11));
        crc.keepCrc = true;
        all.add(crc);
        Fixture bare = new Fixture("no-success", Data.text(12));
        bare.success = false;
        all.add(bare);
    }

    /** Files cut along each function, and along none. */
    private static void cuts(List<Fixture> all) {
        List<Rec> data = Data.hashed(400, false);
        all.add(new Fixture("cut-string-text", data).cut(Cut.STRING, 5));
        all.add(new Fixture("cut-string-bytes", Data.binary(13)).kinds(Kind.BYTES, Kind.BYTES).cut(Cut.STRING, 7).compress("BLOCK", "SnappyCodec"));
        all.add(new Fixture("cut-hadoop-text", data).cut(Cut.HADOOP, 5));
        all.add(new Fixture("cut-hadoop-bytes", Data.binary(14)).kinds(Kind.BYTES, Kind.BYTES).cut(Cut.HADOOP, 7).compress("BLOCK", "SnappyCodec"));
        all.add(new Fixture("cut-hadoop-many", data).cut(Cut.HADOOP, 45).compress("BLOCK", "SnappyCodec"));
        all.add(new Fixture("cut-spark", data).cut(Cut.SPARK, 5).plainNames());
        all.add(new Fixture("cut-cascading", data).cut(Cut.CASCADING, 5).plainNames());
        all.add(new Fixture("cut-none", data).dealt(5));
        // ASCII keys and a power of two: String.hashCode over bytes and over characters, masked or floored, all agree
        all.add(new Fixture("cut-string-or-spark", Data.hashed(200, true)).cut(Cut.SPARK, 8).plainNames());
    }

    /** Values of several MiB, which compress to little. */
    private static void bigs(List<Fixture> all) {
        int mib = 1 << 20;
        all.add(new Fixture("big-record-deflate", Data.bigs(65535, 65536, 65537, 131072, 300_000, 3 * mib)).compress("RECORD", "DeflateCodec").cut(Cut.HADOOP, 2));
        all.add(new Fixture("big-block-gzip", Data.bigs(0, 2 * mib, 1, mib + 1, 5 * mib)).compress("BLOCK", "GzipCodec").cut(Cut.HADOOP, 1));
        all.add(new Fixture("big-block-zstandard", Data.bigs(70_000, 4 * mib, 3, mib)).kinds(Kind.BYTES, Kind.BYTES).compress("BLOCK", "ZStandardCodec")
                .cut(Cut.HADOOP, 2));
        all.add(new Fixture("big-record-lz4", Data.bigs(70_000, 3 * mib, 2)).kinds(Kind.BYTES, Kind.BYTES).compress("RECORD", "Lz4Codec").cut(Cut.HADOOP, 1));
        all.add(new Fixture("big-block-snappy", Data.bigs(mib + 4097, 80_000)).kinds(Kind.BYTES, Kind.BYTES).compress("BLOCK", "SnappyCodec").cut(Cut.HADOOP, 1));
        all.add(new Fixture("big-block-bzip2", Data.bigs(2 * mib, 66_000)).compress("BLOCK", "BZip2Codec").cut(Cut.HADOOP, 1));
    }

    private static void sparkey(List<Fixture> all) {
        all.add(SparkeyLogs.fixture("sparkey-none", Data.binary(20), "NONE", 0));
        all.add(SparkeyLogs.fixture("sparkey-snappy-small", Data.binary(21), "SNAPPY", 64));
        all.add(SparkeyLogs.fixture("sparkey-snappy", Data.binary(22), "SNAPPY", 4096));
        all.add(SparkeyLogs.fixture("sparkey-zstd", Data.binary(23), "ZSTD", 1024));
        all.add(SparkeyLogs.fixture("sparkey-deletes", SparkeyLogs.withDeletes(Data.binary(24)), "NONE", 0));
        all.add(SparkeyLogs.fixture("sparkey-deletes-snappy", SparkeyLogs.withDeletes(Data.binary(25)), "SNAPPY", 512));
        all.add(SparkeyLogs.fixture("sparkey-big", Data.bigs(100_000, 2 << 20, 0, 66_000), "SNAPPY", 8192).cut(Cut.STRING, 1));
        all.add(SparkeyLogs.fixture("sparkey-big-zstd", Data.bigs(100_000, 3 << 20, 7), "ZSTD", 65536).cut(Cut.STRING, 1));
        all.add(SparkeyLogs.fixture("sparkey-several", Data.binary(26), "SNAPPY", 2048).cut(Cut.STRING, 2).perPartition(2));
        all.add(SparkeyLogs.fixture("sparkey-empty", List.of(), "SNAPPY", 4096).cut(Cut.STRING, 2));
    }

    /** Every codec of Avro and Parquet that has all it needs here, and fields as keys and values. */
    private static void records(List<Fixture> all) {
        for (String codec : List.of("null", "deflate", "snappy", "bzip2", "zstandard"))
            all.add(RecordFiles.fixture("avro-" + codec, "avro", codec, "id", ""));
        all.add(RecordFiles.fixture("avro-inner", "avro", "deflate", "inner.name", "inner.maybe"));
        all.add(RecordFiles.fixture("avro-number", "avro", "null", "big", "raw"));
        for (String codec : List.of("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4_RAW"))
            all.add(RecordFiles.fixture("parquet-" + codec.toLowerCase(Locale.ROOT).replace('_', '-'), "parquet", codec, "id", ""));
        all.add(RecordFiles.fixture("parquet-old-lists", "parquet", "SNAPPY", "id", "").oldLists());
        all.add(RecordFiles.fixture("parquet-inner", "parquet", "SNAPPY", "inner.name", "inner.maybe"));
        all.add(RecordFiles.fixture("parquet-groups", "parquet", "SNAPPY", "id", "").groups().cut(Cut.STRING, 1));
        all.add(RecordFiles.fixture("parquet-price", "parquet", "UNCOMPRESSED", "price", "raw"));
    }
}
