package harness;

import java.io.*;
import java.util.*;
import java.util.concurrent.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.*;
import org.apache.hadoop.io.SequenceFile.CompressionType;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.mapreduce.*;
import org.apache.hadoop.mapreduce.lib.output.*;
import org.apache.hadoop.mapreduce.lib.partition.HashPartitioner;
import org.apache.hadoop.util.ReflectionUtils;

/**
 * Writes a fixture by a real MapReduce job under LocalJobRunner. What is handed to each file's writer is noted down on the way:
 * that, and not what a reader makes of the file, is what the fixture is expected to hold.
 */
public final class FixtureJob {
    private static volatile Fixture now;
    private static final Map<String, List<Rec>> written = new ConcurrentSkipListMap<>();

    /** Runs the job; returns the records of each file by its name relative to dir. */
    static Map<String, List<Rec>> run(Fixture f, java.nio.file.Path dir) throws Exception {
        now = f;
        written.clear();
        Job j = job(f, dir);
        if (!j.waitForCompletion(false)) throw new IOException(f.db + ": " + j.getStatus().getFailureInfo());
        return new TreeMap<>(written);
    }

    private static Job job(Fixture f, java.nio.file.Path dir) throws Exception {
        Configuration c = Jobs.local(new Configuration());
        f.conf.forEach(c::set);
        if (f.cut != null) c.set("fixture.cut", f.cut.name());
        if (f.manifestCommitter) c.set("mapreduce.outputcommitter.factory.scheme.file",
                "org.apache.hadoop.mapreduce.lib.output.committer.manifest.ManifestCommitterFactory");
        Job j = Job.getInstance(c, f.db);
        j.setJarByClass(FixtureJob.class);
        j.setInputFormatClass(Input.class);
        j.setMapperClass(Mapper.class);
        j.setReducerClass(Reducer.class);
        j.setNumReduceTasks(f.cut == null ? 0 : f.files);
        j.setPartitionerClass(f.cut == Cut.HADOOP ? HashPartitioner.class : Cut.ByConf.class);
        j.setMapOutputKeyClass(f.key.type);
        j.setMapOutputValueClass(f.value.type);
        j.setOutputKeyClass(f.key.type);
        j.setOutputValueClass(f.value.type);
        j.setOutputFormatClass(f.format.equals("mapfile") ? MapOutput.class : SequenceOutput.class);
        FileOutputFormat.setOutputPath(j, new Path(dir.toUri()));
        if (!f.compression.equals("NONE")) {
            FileOutputFormat.setCompressOutput(j, true);
            SequenceFileOutputFormat.setOutputCompressionType(j, CompressionType.valueOf(f.compression));
            FileOutputFormat.setOutputCompressorClass(j, Class.forName(f.codecClass()).asSubclass(CompressionCodec.class));
        }
        return j;
    }

    private static List<Rec> note(String file) {
        return written.computeIfAbsent(file, x -> Collections.synchronizedList(new ArrayList<>()));
    }

    /** Deals the fixture's records out to the maps in turn. */
    public static final class Input extends InputFormat<Writable, Writable> {
        public List<InputSplit> getSplits(JobContext c) {
            List<InputSplit> r = new ArrayList<>();
            int n = now.cut == null ? now.files : 2;
            for (int i = 0; i < n; i++) r.add(new Split(i, n));
            return r;
        }
        public RecordReader<Writable, Writable> createRecordReader(InputSplit s, TaskAttemptContext c) {
            return new Source((Split) s);
        }
    }

    public static final class Split extends InputSplit implements Writable {
        int first, step;
        public Split() {}
        Split(int first, int step) { this.first = first; this.step = step; }
        public long getLength() { return (now.records.size() - first + step - 1) / step; }
        public String[] getLocations() { return new String[0]; }
        public void write(DataOutput o) throws IOException { o.writeInt(first); o.writeInt(step); }
        public void readFields(DataInput i) throws IOException { first = i.readInt(); step = i.readInt(); }
    }

    private static final class Source extends RecordReader<Writable, Writable> {
        private final Split split;
        private int i;
        Source(Split s) { split = s; i = s.first - s.step; }
        public void initialize(InputSplit s, TaskAttemptContext c) {}
        public boolean nextKeyValue() { return (i += split.step) < now.records.size(); }
        public Writable getCurrentKey() throws IOException { return now.key.of(now.records.get(i).key()); }
        public Writable getCurrentValue() throws IOException { return now.value.of(now.records.get(i).value()); }
        public float getProgress() { return 0; }
        public void close() {}
    }

    /** SequenceFileOutputFormat, noting what is written, with the fixture's names, sync markers and header metadata. */
    public static final class SequenceOutput extends SequenceFileOutputFormat<Writable, Writable> {
        @Override public Path getDefaultWorkFile(TaskAttemptContext c, String ext) throws IOException {
            PathOutputCommitter pc = (PathOutputCommitter) getOutputCommitter(c);
            return new Path(pc.getWorkPath(), now.fileName(c.getTaskAttemptID().getTaskID().getId()));
        }

        @Override public RecordWriter<Writable, Writable> getRecordWriter(TaskAttemptContext c) throws IOException {
            Path p = getDefaultWorkFile(c, "");
            SequenceFile.Writer w = now.metadata.isEmpty() ? getSequenceWriter(c, now.key.type, now.value.type) : withMetadata(c, p);
            List<Rec> log = note(p.getName());
            return new RecordWriter<>() {
                public void write(Writable k, Writable v) throws IOException {
                    w.append(k, v);
                    log.add(Rec.put(Kind.bytes(k), Kind.bytes(v)));
                    if (now.syncEvery > 0 && log.size() % now.syncEvery == 0) w.sync();
                }
                public void close(TaskAttemptContext x) throws IOException { w.close(); }
            };
        }

        private static SequenceFile.Writer withMetadata(TaskAttemptContext c, Path p) throws IOException {
            SequenceFile.Metadata m = new SequenceFile.Metadata();
            now.metadata.forEach((k, v) -> m.set(new Text(k), new Text(v)));
            CompressionCodec codec = now.compression.equals("NONE") ? null
                    : (CompressionCodec) ReflectionUtils.newInstance(c.getConfiguration().getClassByNameOrNull(now.codecClass()), c.getConfiguration());
            return SequenceFile.createWriter(c.getConfiguration(), SequenceFile.Writer.file(p), SequenceFile.Writer.keyClass(now.key.type),
                    SequenceFile.Writer.valueClass(now.value.type), SequenceFile.Writer.metadata(m),
                    SequenceFile.Writer.compression(CompressionType.valueOf(now.compression), codec));
        }
    }

    /** MapFileOutputFormat, noting what is written. */
    public static final class MapOutput extends FileOutputFormat<WritableComparable<?>, Writable> {
        private final MapFileOutputFormat real = new MapFileOutputFormat();
        @Override public RecordWriter<WritableComparable<?>, Writable> getRecordWriter(TaskAttemptContext c) throws IOException {
            RecordWriter<WritableComparable<?>, Writable> w = real.getRecordWriter(c);
            List<Rec> log = note(getUniqueFile(c, "part", "") + "/data");
            return new RecordWriter<>() {
                public void write(WritableComparable<?> k, Writable v) throws IOException, InterruptedException {
                    w.write(k, v);
                    log.add(Rec.put(Kind.bytes(k), Kind.bytes(v)));
                }
                public void close(TaskAttemptContext x) throws IOException, InterruptedException { w.close(x); }
            };
        }
    }
}
