import java.io.File;
import java.io.Writer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.time.*;
import java.time.format.DateTimeFormatter;
import java.util.*;
import java.util.stream.Collectors;
import org.apache.avro.*;
import org.apache.avro.data.TimeConversions;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.generic.*;

/**
 * Reads files with Avro for Java: Judge DIR FILE... The records of file i are the lines of DIR/i.ndjson, as docs/DATA.md says that they are
 * served; DIR/i.error is why it cannot be read, and is empty otherwise.
 */
public class Judge {
    private static final GenericData DATA = new GenericData();

    public static void main(String[] args) throws Exception {
        DATA.addLogicalTypeConversion(new Conversions.DecimalConversion());
        DATA.addLogicalTypeConversion(new TimeConversions.DateConversion());
        DATA.addLogicalTypeConversion(new TimeConversions.TimeMillisConversion());
        DATA.addLogicalTypeConversion(new TimeConversions.TimeMicrosConversion());
        DATA.addLogicalTypeConversion(new TimeConversions.TimestampMillisConversion());
        DATA.addLogicalTypeConversion(new TimeConversions.TimestampMicrosConversion());
        DATA.addLogicalTypeConversion(new TimeConversions.TimestampNanosConversion());
        DATA.addLogicalTypeConversion(new TimeConversions.LocalTimestampMillisConversion());
        DATA.addLogicalTypeConversion(new TimeConversions.LocalTimestampMicrosConversion());
        DATA.addLogicalTypeConversion(new TimeConversions.LocalTimestampNanosConversion());
        for (int i = 1; i < args.length; i++) {
            String error = "";
            try (DataFileReader<Object> in = new DataFileReader<>(new File(args[i]), new Ordered());
                    Writer out = Files.newBufferedWriter(Path.of(args[0], i - 1 + ".ndjson"))) {
                while (in.hasNext()) out.write(json(in.next(), in.getSchema()) + "\n");
            } catch (Throwable e) {
                error = (e + " ").replaceAll("\\s+", " ");
            }
            Files.writeString(Path.of(args[0], i - 1 + ".error"), error);
        }
    }

    /** Keeps the order of the entries of a map. */
    private static class Ordered extends GenericDatumReader<Object> {
        Ordered() {
            super(null, null, DATA);
        }

        @Override
        protected Object newMap(Object old, int size) {
            return new LinkedHashMap<Object, Object>();
        }
    }

    private static String json(Object v, Schema s) {
        switch (s.getType()) {
            case NULL: return "null";
            case UNION: return json(v, s.getTypes().get(DATA.resolveUnion(s, v)));
            case RECORD:
                IndexedRecord r = (IndexedRecord) v;
                return s.getFields().stream().map(f -> text(f.name()) + ":" + json(r.get(f.pos()), f.schema())).collect(Collectors.joining(",", "{", "}"));
            case ARRAY:
                return ((Collection<?>) v).stream().map(e -> json(e, s.getElementType())).collect(Collectors.joining(",", "[", "]"));
            case MAP:
                return ((Map<?, ?>) v).entrySet().stream().map(e -> text(e.getKey().toString()) + ":" + json(e.getValue(), s.getValueType())).collect(Collectors.joining(",", "{", "}"));
            case BYTES:
            case FIXED:
                return bytes(v, s);
            case INT:
            case LONG:
                return v instanceof Number ? v.toString() : text(time(v, s.getLogicalType().getName()));
            case FLOAT:
            case DOUBLE:
                double d = ((Number) v).doubleValue();
                return Double.isNaN(d) || Double.isInfinite(d) ? text(v.toString()) : v.toString();
            case BOOLEAN: return v.toString();
            default: return text(v.toString());
        }
    }

    private static String bytes(Object v, Schema s) {
        if (v instanceof java.math.BigDecimal) return text(((java.math.BigDecimal) v).toPlainString());
        ByteBuffer b = v instanceof GenericFixed ? ByteBuffer.wrap(((GenericFixed) v).bytes()) : ((ByteBuffer) v).duplicate();
        byte[] raw = new byte[b.remaining()];
        b.get(raw);
        String logical = s.getType() == Schema.Type.FIXED ? String.valueOf(s.getProp("logicalType")) : "";
        if (logical.equals("uuid") && raw.length == 16) {
            ByteBuffer u = ByteBuffer.wrap(raw);
            return text(new UUID(u.getLong(), u.getLong()).toString());
        }
        if (logical.equals("duration") && raw.length == 12) {
            ByteBuffer u = ByteBuffer.wrap(raw).order(ByteOrder.LITTLE_ENDIAN);
            long months = u.getInt() & 0xffffffffL, days = u.getInt() & 0xffffffffL, ms = u.getInt() & 0xffffffffL;
            return text(String.format("P%dM%dDT%d.%03dS", months, days, ms / 1000, ms % 1000));
        }
        return text(Base64.getEncoder().encodeToString(raw));
    }

    private static String time(Object v, String logical) {
        String fraction = logical.endsWith("millis") ? "SSS" : logical.endsWith("micros") ? "SSSSSS" : "SSSSSSSSS";
        if (v instanceof LocalDate) return v.toString();
        if (v instanceof LocalTime) return DateTimeFormatter.ofPattern("HH:mm:ss." + fraction).format((LocalTime) v);
        String zone = v instanceof Instant ? "'Z'" : "";
        LocalDateTime at = v instanceof Instant ? LocalDateTime.ofInstant((Instant) v, ZoneOffset.UTC) : (LocalDateTime) v;
        return DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss." + fraction + zone).format(at);
    }

    private static String text(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            if (c == '"' || c == '\\') b.append('\\').append(c);
            else if (c < ' ') b.append(String.format("\\u%04x", (int) c));
            else b.append(c);
        }
        return b.append('"').toString();
    }
}
