package harness;

import java.io.*;
import java.util.*;
import org.apache.avro.Schema;
import org.apache.avro.generic.*;
import org.apache.avro.mapred.AvroKey;
import org.apache.avro.mapreduce.*;
import org.apache.hadoop.conf.*;
import org.apache.hadoop.fs.*;
import org.apache.hadoop.io.*;
import org.apache.hadoop.io.SequenceFile.CompressionType;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.mapreduce.*;
import org.apache.hadoop.mapreduce.lib.output.*;
import org.apache.hadoop.util.*;
import org.apache.parquet.avro.AvroParquetOutputFormat;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;

/**
 * "job out=URI [format=seq|map|parquet|avro] [type=text|bytes] [compression=NONE|RECORD|BLOCK] [codec=class]
 *  [records=1000] [reducers=3] [size=100] [tag=value-] [maps=2] [any.hadoop.property=…]": a real MapReduce job under LocalJobRunner with the
 *  stock HashPartitioner. Record i: key "key-%09d", value the tag, i and letters that depend on i, size characters of it.
 */
public final class Jobs {
    static final List<String> CODECS = List.of("DefaultCodec", "DeflateCodec", "GzipCodec", "SnappyCodec", "Lz4Codec", "ZStandardCodec", "BZip2Codec");

    /** Makes records out of nothing, so a job needs no input files. */
    public static class GenInput extends InputFormat<LongWritable, NullWritable> {
        public static class Split extends InputSplit implements Writable {
            long from, to;
            public Split() {}
            Split(long f, long t) { from = f; to = t; }
            public long getLength() { return to - from; }
            public String[] getLocations() { return new String[0]; }
            public void write(DataOutput o) throws IOException { o.writeLong(from); o.writeLong(to); }
            public void readFields(DataInput i) throws IOException { from = i.readLong(); to = i.readLong(); }
        }
        public List<InputSplit> getSplits(JobContext c) {
            long n = c.getConfiguration().getLong("gen.records", 0);
            int m = c.getConfiguration().getInt("gen.maps", 2);
            List<InputSplit> r = new ArrayList<>();
            for (int i = 0; i < m; i++) r.add(new Split(n * i / m, n * (i + 1) / m));
            return r;
        }
        public RecordReader<LongWritable, NullWritable> createRecordReader(InputSplit s, TaskAttemptContext c) {
            Split p = (Split) s;
            return new RecordReader<>() {
                long i = p.from - 1;
                public void initialize(InputSplit x, TaskAttemptContext y) {}
                public boolean nextKeyValue() { return ++i < p.to; }
                public LongWritable getCurrentKey() { return new LongWritable(i); }
                public NullWritable getCurrentValue() { return NullWritable.get(); }
                public float getProgress() { return p.to == p.from ? 1 : (float) (i - p.from) / (p.to - p.from); }
                public void close() {}
            };
        }
    }

    static String key(long i) { return String.format("key-%09d", i); }
    static String value(long i, int size, String tag) {
        StringBuilder b = new StringBuilder(size).append(tag).append(i).append('-');
        while (b.length() < size) b.append((char) ('a' + (i * 7 + b.length() * 13L) % 26));
        return b.toString();
    }

    public static class M extends Mapper<LongWritable, NullWritable, Writable, Writable> {
        protected void map(LongWritable k, NullWritable n, Context c) throws IOException, InterruptedException {
            Configuration f = c.getConfiguration();
            String ks = key(k.get()), v = value(k.get(), f.getInt("gen.size", 100), f.get("gen.tag", "value-"));
            if (f.get("gen.type").equals("bytes")) c.write(new BytesWritable(ks.getBytes()), new BytesWritable(v.getBytes()));
            else c.write(new Text(ks), new Text(v));
        }
    }

    static final Schema AVRO = new Schema.Parser().parse(
            "{\"type\":\"record\",\"name\":\"KV\",\"fields\":[{\"name\":\"key\",\"type\":\"string\"},{\"name\":\"value\",\"type\":\"string\"}]}");

    public static class RecordReducer extends Reducer<Text, Text, Object, Object> {
        protected void reduce(Text k, Iterable<Text> vs, Context c) throws IOException, InterruptedException {
            for (Text v : vs) {
                GenericRecord r = new GenericData.Record(AVRO);
                r.put("key", k.toString());
                r.put("value", v.toString());
                if (c.getConfiguration().get("gen.format").equals("avro")) c.write(new AvroKey<>(r), NullWritable.get());
                else c.write(null, r);
            }
        }
    }

    static String codecs() {
        StringBuilder b = new StringBuilder("native=" + NativeCodeLoader.isNativeCodeLoaded());
        for (String n : CODECS) {
            String r;
            try {
                CompressionCodec c = (CompressionCodec) ReflectionUtils.newInstance(Class.forName("org.apache.hadoop.io.compress." + n), new Configuration());
                ByteArrayOutputStream o = new ByteArrayOutputStream();
                try (OutputStream s = c.createOutputStream(o)) { s.write(new byte[100000]); }
                r = "ok:" + o.size();
            } catch (Throwable e) { r = ("FAIL:" + e).replace(' ', '_'); }
            b.append(' ').append(n).append('=').append(r);
        }
        return b.toString();
    }

    /** LocalJobRunner in this process, with everything it leaves behind under the harness's directory. */
    static Configuration local(Configuration f) {
        f.set("mapreduce.framework.name", "local");
        f.set("hadoop.tmp.dir", Main.root.resolve("tmp").toString());
        f.set("mapreduce.cluster.local.dir", Main.root.resolve("mr").toString());
        f.set("mapreduce.jobtracker.staging.root.dir", "file://" + Main.root.resolve("staging"));
        f.setInt("mapreduce.task.io.sort.mb", 32);
        f.setInt("mapreduce.local.map.tasks.maximum", 2);
        f.setInt("mapreduce.local.reduce.tasks.maximum", 2);
        f.setInt("mapreduce.client.completion.pollinterval", 50);
        f.setInt("mapreduce.client.progressmonitor.pollinterval", 50);
        String namenode = f.get("dfs.namenode.kerberos.principal"); // whoever may renew a job's tokens for HDFS
        if (namenode != null) f.set("yarn.resourcemanager.principal", namenode);
        return f;
    }

    static String run(Map<String, String> o) throws Exception {
        Configuration f = local(Dfs.conf != null ? new Configuration(Dfs.conf) : new Configuration());
        f.set("gen.format", o.getOrDefault("format", "seq"));
        f.set("gen.type", o.getOrDefault("type", "text"));
        f.set("gen.records", o.getOrDefault("records", "1000"));
        f.set("gen.maps", o.getOrDefault("maps", "2"));
        f.set("gen.size", o.getOrDefault("size", "100"));
        f.set("gen.tag", o.getOrDefault("tag", "value-"));
        o.forEach((k, v) -> { if (k.contains(".")) f.set(k, v); });
        Job j = Job.getInstance(f, "gen");
        j.setJarByClass(Jobs.class);
        j.setInputFormatClass(GenInput.class);
        j.setMapperClass(M.class);
        j.setNumReduceTasks(Integer.parseInt(o.getOrDefault("reducers", "3")));
        Path out = new Path(o.get("out"));
        FileOutputFormat.setOutputPath(j, out);
        types(j);
        compression(j, o.getOrDefault("compression", "NONE"), o.getOrDefault("codec", "DefaultCodec"));
        format(j, o.getOrDefault("codec", "UNCOMPRESSED"));
        if (!j.waitForCompletion(false)) throw new IOException("job failed: " + j.getStatus().getFailureInfo());
        return written(out.getFileSystem(f), out);
    }

    private static void types(Job j) {
        Class<? extends Writable> t = j.getConfiguration().get("gen.type").equals("bytes") ? BytesWritable.class : Text.class;
        j.setMapOutputKeyClass(t);
        j.setMapOutputValueClass(t);
        j.setOutputKeyClass(t);
        j.setOutputValueClass(t);
    }

    private static void compression(Job j, String type, String codec) throws ClassNotFoundException {
        if (type.equals("NONE")) return;
        FileOutputFormat.setCompressOutput(j, true);
        SequenceFileOutputFormat.setOutputCompressionType(j, CompressionType.valueOf(type));
        String name = codec.contains(".") ? codec : "org.apache.hadoop.io.compress." + codec;
        FileOutputFormat.setOutputCompressorClass(j, Class.forName(name).asSubclass(CompressionCodec.class));
    }

    private static void format(Job j, String codec) {
        switch (j.getConfiguration().get("gen.format")) {
            case "seq" -> j.setOutputFormatClass(SequenceFileOutputFormat.class);
            case "map" -> j.setOutputFormatClass(MapFileOutputFormat.class);
            case "avro" -> {
                j.setReducerClass(RecordReducer.class);
                j.setOutputFormatClass(AvroKeyOutputFormat.class);
                AvroJob.setOutputKeySchema(j, AVRO);
                j.setOutputKeyClass(AvroKey.class);
                j.setOutputValueClass(NullWritable.class);
            }
            case "parquet" -> {
                j.setReducerClass(RecordReducer.class);
                j.setOutputFormatClass(AvroParquetOutputFormat.class);
                AvroParquetOutputFormat.setSchema(j, AVRO);
                AvroParquetOutputFormat.setCompression(j, CompressionCodecName.valueOf(codec));
                j.setOutputKeyClass(Void.class);
                j.setOutputValueClass(GenericRecord.class);
            }
            default -> throw new IllegalArgumentException("format " + j.getConfiguration().get("gen.format"));
        }
    }

    private static String written(FileSystem fs, Path out) throws IOException {
        long bytes = 0;
        int files = 0;
        for (RemoteIterator<LocatedFileStatus> it = fs.listFiles(out, true); it.hasNext(); ) {
            LocatedFileStatus s = it.next();
            if (s.getPath().getName().startsWith("_")) continue;
            bytes += s.getLen();
            files++;
        }
        return "out=" + out + " files=" + files + " bytes=" + bytes;
    }
}
