package harness;

import cascading.tuple.Tuple;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.*;
import java.util.*;
import org.apache.hadoop.conf.*;
import org.apache.hadoop.io.*;
import org.apache.hadoop.mapreduce.Partitioner;
import org.apache.hadoop.mapreduce.lib.partition.HashPartitioner;

/** The functions that jobs cut their output with, by the names that sequins gives them. */
enum Cut {
    /** String.hashCode's formula over unsigned bytes. */
    STRING {
        int hash(byte[] k) {
            int h = 0;
            for (byte b : k) h = 31 * h + (b & 0xff);
            return h;
        }
    },
    /** Hadoop's HashPartitioner on a Text or BytesWritable, which hash alike. */
    HADOOP {
        int hash(byte[] k) { return new BytesWritable(k).hashCode(); }
        int partition(byte[] k, int n) { return new HashPartitioner<>().getPartition(new BytesWritable(k), null, n); }
    },
    /** Spark's HashPartitioner on a java.lang.String: Utils.nonNegativeMod(key.hashCode, n), restated (Spark's jars are not worth their size here). */
    SPARK {
        int hash(byte[] k) { return string(k).hashCode(); }
        int partition(byte[] k, int n) {
            int raw = hash(k) % n;
            return raw + (raw < 0 ? n : 0);
        }
    },
    /** Cascading before 2.7, and later with its legacy hash: the hash code of a Tuple of one String. */
    CASCADING {
        int hash(byte[] k) { return new Tuple(string(k)).hashCode(); }
    };

    abstract int hash(byte[] key);

    int partition(byte[] key, int n) { return (hash(key) & Integer.MAX_VALUE) % n; }

    String id() { return name().toLowerCase(Locale.ROOT); }

    static String string(byte[] utf8) { return new String(utf8, StandardCharsets.UTF_8); }

    static boolean isString(byte[] k) {
        try {
            StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(k));
            return true;
        } catch (CharacterCodingException e) {
            return false;
        }
    }

    /** The partitioner of a job whose fixture.cut is not HADOOP; that one uses Hadoop's own class. */
    public static final class ByConf extends Partitioner<Writable, Writable> implements Configurable {
        private Configuration conf;
        private Cut cut;
        public void setConf(Configuration c) { conf = c; cut = Cut.valueOf(c.get("fixture.cut")); }
        public Configuration getConf() { return conf; }
        public int getPartition(Writable k, Writable v, int n) {
            try {
                return cut.partition(Kind.bytes(k), n);
            } catch (IOException e) {
                throw new java.io.UncheckedIOException(e);
            }
        }
    }
}
