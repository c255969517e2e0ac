package harness;

import java.io.*;
import java.util.Arrays;
import org.apache.hadoop.io.*;

/** The Writable classes that fixtures use, and the way between them and the bytes that sequins serves. */
enum Kind {
    TEXT(Text.class), BYTES(BytesWritable.class), LONG(LongWritable.class), INT(IntWritable.class), NULL(NullWritable.class);

    final Class<? extends Writable> type;

    Kind(Class<? extends Writable> type) { this.type = type; }

    Writable of(byte[] b) throws IOException {
        switch (this) {
            case TEXT: return new Text(b);
            case BYTES: return new BytesWritable(b);
            case NULL: return NullWritable.get();
            default:
                Writable w = this == LONG ? new LongWritable() : new IntWritable();
                w.readFields(new DataInputStream(new ByteArrayInputStream(b)));
                return w;
        }
    }

    /** Text and BytesWritable unwrapped, anything else as it is serialised. */
    static byte[] bytes(Writable w) throws IOException {
        if (w instanceof Text t) return Arrays.copyOf(t.getBytes(), t.getLength());
        if (w instanceof BytesWritable b) return b.copyBytes();
        ByteArrayOutputStream o = new ByteArrayOutputStream();
        w.write(new DataOutputStream(o));
        return o.toByteArray();
    }
}
