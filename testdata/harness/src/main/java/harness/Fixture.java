package harness;

import java.util.*;

/** What to write: the records, how they are cut into files, and in which shape. Fields are set once, by the catalogue. */
final class Fixture {
    final String db;
    final List<Rec> records;
    String format = "sequencefile"; // or mapfile, sparkey, avro, parquet
    Kind key = Kind.TEXT, value = Kind.TEXT;
    String compression = "NONE", codec = "";
    /** null: a map-only job that deals the records out in turn, so that files are neither cut along a function nor sorted. */
    Cut cut = Cut.HADOOP;
    int files = 3;
    String base = "part-r-";
    /** A sync marker after so many records; 0 leaves it to Hadoop, which writes one every 100 KB. */
    int syncEvery;
    /** SequenceFile header version; Hadoop writes 6. */
    int header = 6;
    int sparkeyBlock;
    /** Sparkey only: files is then the number of partitions, each in so many logs. */
    int logsPerPartition = 1;
    /** Avro and Parquet only: the fields that are key and value; "" for the value is the whole record. */
    String keyField, valueField;
    /** Parquet only: lists as parquet-mr spells them if nobody says otherwise. */
    boolean oldLists;
    boolean groups;
    boolean manifestCommitter, keepCrc, success = true;
    final Map<String, String> metadata = new TreeMap<>();
    final Map<String, String> conf = new TreeMap<>();

    Fixture(String db, List<Rec> records) {
        this.db = db;
        this.records = records;
    }

    Fixture kinds(Kind key, Kind value) { this.key = key; this.value = value; return this; }
    Fixture compress(String type, String codec) { this.compression = type; this.codec = codec; return this; }
    Fixture cut(Cut c, int files) { this.cut = c; this.files = files; return this; }
    /** Names as the old Hadoop API, Spark and Cascading have them: part-00000. */
    Fixture plainNames() { this.base = "part-"; return this; }
    Fixture dealt(int files) { this.cut = null; this.files = files; this.base = "part-m-"; return this; }
    Fixture mapFile() { this.format = "mapfile"; return this; }
    Fixture sync(int every) { this.syncEvery = every; return this; }
    Fixture header(int version) { this.header = version; return this; }
    Fixture conf(String k, String v) { conf.put(k, v); return this; }

    Fixture perPartition(int logs) { this.logsPerPartition = logs; return this; }

    boolean ofRecords() { return keyField != null; }
    Fixture oldLists() { this.oldLists = true; return this; }
    Fixture groups() { this.groups = true; return this; }

    String codecClass() { return "org.apache.hadoop.io.compress." + codec; }
    String fileName(int i) { return base + String.format("%05d", i); }
}
