import java.io.File;
import java.util.*;
import org.apache.avro.*;
import org.apache.avro.file.DataFileWriter;
import org.apache.avro.generic.*;
import org.apache.avro.reflect.*;

/** Writes files with names that the specification of Avro does not allow, as programs write them with Avro for Java: Names DIR. */
public class Names {
    enum Colour { $RED, GRÜN }

    static class Inner$ {
        String größe;
        Colour $colour;
        @AvroName("user-id") String id;
        @Nullable Inner$ inner;
    }

    public static void main(String[] args) throws Exception {
        Schema.setNameValidator(NameValidator.NO_VALIDATION);
        Schema.setValidateDefaults(false);
        reflection(new File(args[0], "reflection.avro"));
        // A class within another one, as reflection named it before Avro 1.9.
        generic(new File(args[0], "nested.avro"), "com.example.Outer$", "Inner", "id", "RED");
        // A table of BigQuery with flexible names.
        generic(new File(args[0], "bigquery.avro"), "my-project.data-set", "Root", "user-id", "RED-ISH");
        // A namespace of spark-avro without a recordNamespace.
        generic(new File(args[0], "spark.avro"), ".topLevelRecord", "items", "1st key", "größer als");
        generic(new File(args[0], "plain.avro"), null, "two words", "ключ", "1");
    }

    private static void reflection(File file) throws Exception {
        Schema schema = ReflectData.get().getSchema(Inner$.class);
        try (DataFileWriter<Inner$> out = new DataFileWriter<>(new ReflectDatumWriter<>(schema))) {
            out.create(schema, file);
            for (int i = 0; i < 100; i++) {
                Inner$ r = new Inner$();
                r.größe = "größe " + i;
                r.$colour = Colour.values()[i % 2];
                r.id = "id " + i;
                if (i % 3 == 0) {
                    r.inner = new Inner$();
                    r.inner.größe = r.inner.id = "within";
                    r.inner.$colour = Colour.GRÜN;
                }
                out.append(r);
            }
        }
    }

    private static void generic(File file, String namespace, String name, String key, String symbol) throws Exception {
        Schema e = Schema.createEnum("E-1", "// no comment", namespace, List.of("OTHER", symbol));
        Schema leaf = Schema.createRecord("Leaf " + name, null, namespace, false, List.of(new Schema.Field("e", e), new Schema.Field("x.y", Schema.create(Schema.Type.LONG))));
        Schema string = Schema.create(Schema.Type.STRING);
        Schema schema = Schema.createRecord(name, null, namespace, false, List.of(
            new Schema.Field(key, string, null, 7), // a default of another type
            new Schema.Field("e", e),
            new Schema.Field("leaves", Schema.createArray(Schema.createUnion(Schema.create(Schema.Type.NULL), leaf)))));
        try (DataFileWriter<GenericRecord> out = new DataFileWriter<>(new GenericDatumWriter<>(schema))) {
            out.create(schema, file);
            for (int i = 0; i < 100; i++) {
                GenericRecord r = new GenericData.Record(schema), l = new GenericData.Record(leaf);
                l.put("e", new GenericData.EnumSymbol(e, symbol));
                l.put("x.y", (long) i);
                r.put(key, "id " + i);
                r.put("e", new GenericData.EnumSymbol(e, i % 2 == 0 ? symbol : "OTHER"));
                r.put("leaves", Arrays.asList(null, l));
                out.append(r);
            }
        }
    }
}
