import java.util.HexFormat;
import java.util.Random;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorUtils;
import org.apache.hadoop.hive.serde2.objectinspector.primitive.PrimitiveObjectInspectorFactory;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.kafka.common.utils.Utils;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;

/**
 * Prints hashes of keys. Lines are "bytes HEX murmur3 kafka hive hive-murmur3", "long NUMBER murmur3-long hive-long hive-murmur3-long" and
 * "int NUMBER murmur3-int hive-int hive-murmur3-int"; those of Kafka and Hive are without the sign bit, as both use them.
 */
final class Hashes {
    private static final ObjectInspector STRING = PrimitiveObjectInspectorFactory.writableStringObjectInspector;
    private static final ObjectInspector INT = PrimitiveObjectInspectorFactory.writableIntObjectInspector;
    private static final ObjectInspector LONG = PrimitiveObjectInspectorFactory.writableLongObjectInspector;

    public static void main(String[] args) {
        Random random = new Random(1);
        for (int n = 0; n < 200; n++) {
            byte[] key = new byte[n < 40 ? n : random.nextInt(70)];
            random.nextBytes(key);
            if (n % 2 == 0) {
                for (int i = 0; i < key.length; i++) key[i] = (byte) (32 + (key[i] & 63));
            }
            int spark = Murmur3_x86_32.hashUnsafeBytes(key, Platform.BYTE_ARRAY_OFFSET, key.length, 42);
            int kafka = Utils.toPositive(Utils.murmur2(key));
            System.out.println("bytes x" + HexFormat.of().formatHex(key) + " " + spark + " " + kafka + " " + hive(new Text(key), STRING));
        }
        for (int n = 0; n < 200; n++) {
            long v = n < 20 ? n - 10 : n < 24 ? Long.MIN_VALUE + n - 20 : n < 28 ? Long.MAX_VALUE - n + 24 : random.nextLong() >> random.nextInt(64);
            int w = n >= 20 && n < 24 ? Integer.MIN_VALUE + n - 20 : n >= 24 && n < 28 ? Integer.MAX_VALUE - n + 24 : (int) v;
            System.out.println("long " + v + " " + Murmur3_x86_32.hashLong(v, 42) + " " + hive(new LongWritable(v), LONG));
            System.out.println("int " + w + " " + Murmur3_x86_32.hashInt(w, 42) + " " + hive(new IntWritable(w), INT));
        }
    }

    private static String hive(Object key, ObjectInspector inspector) {
        Object[] keys = {key};
        ObjectInspector[] inspectors = {inspector};
        int first = ObjectInspectorUtils.getBucketHashCodeOld(keys, inspectors);
        int second = ObjectInspectorUtils.getBucketHashCode(keys, inspectors);
        int all = Integer.MAX_VALUE; // of so many buckets, the number is the hash
        if (ObjectInspectorUtils.getBucketNumber(first, 1000) != (first & all) % 1000) throw new IllegalStateException();
        return (first & all) + " " + (second & all);
    }
}
