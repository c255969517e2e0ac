package harness;

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.security.*;
import java.util.*;
import java.util.zip.GZIPOutputStream;

/** Writes what a fixture holds: DB.jsonl (or .jsonl.gz), one record a line in the order of files and of records in them, and DB.meta.json. */
final class Expected {
    private Expected() {}

    /** Values over this are given by length and hash. */
    private static final int LARGE = 1 << 20;
    /** Lists over this are compressed. */
    private static final int PLAIN = 4096;

    static void write(Fixture f, String version, Map<String, List<Rec>> files, Path dir) throws Exception {
        Files.createDirectories(dir);
        StringBuilder b = new StringBuilder();
        for (Map.Entry<String, List<Rec>> e : files.entrySet()) for (Rec r : e.getValue()) line(b, e.getKey(), r);
        byte[] lines = b.toString().getBytes(StandardCharsets.UTF_8);
        Path plain = dir.resolve(f.db + ".jsonl"), gz = dir.resolve(f.db + ".jsonl.gz");
        Files.deleteIfExists(plain);
        Files.deleteIfExists(gz);
        if (lines.length <= PLAIN) Files.write(plain, lines);
        else try (OutputStream o = new GZIPOutputStream(Files.newOutputStream(gz))) { o.write(lines); }
        Files.writeString(dir.resolve(f.db + ".meta.json"), meta(f, version, files));
    }

    private static void line(StringBuilder b, String file, Rec r) throws GeneralSecurityException {
        b.append("{\"file\":\"").append(file).append("\",\"key\":\"").append(base64(r.key())).append('"');
        if (r.deleted()) b.append(",\"deleted\":true");
        else if (r.value().length <= LARGE) b.append(",\"value\":\"").append(base64(r.value())).append('"');
        else b.append(",\"valueLen\":").append(r.value().length).append(",\"valueSHA256\":\"")
                .append(HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(r.value()))).append('"');
        b.append("}\n");
    }

    private static String meta(Fixture f, String version, Map<String, List<Rec>> files) {
        StringBuilder b = new StringBuilder("{\n");
        field(b, "version", quote(version));
        field(b, "format", quote(f.format));
        field(b, "partitioner", quote(f.cut == null ? "none" : f.cut.id()));
        field(b, "partitions", Integer.toString(f.cut == null ? files.size() : f.files));
        field(b, "fits", list(fits(files, f.logsPerPartition)));
        field(b, "compression", quote(f.compression));
        field(b, "codec", quote(f.codec.isEmpty() ? f.codec : f.codecClass()));
        field(b, "keyClass", quote(f.format.equals("sparkey") || f.ofRecords() ? "" : f.key.type.getName()));
        field(b, "valueClass", quote(f.format.equals("sparkey") || f.ofRecords() ? "" : f.value.type.getName()));
        if (f.ofRecords()) {
            field(b, "keyField", quote(f.keyField));
            field(b, "valueField", quote(f.valueField));
        }
        field(b, "files", Integer.toString(files.size()));
        field(b, "names", list(new ArrayList<>(files.keySet())));
        field(b, "records", Integer.toString(files.values().stream().mapToInt(List::size).sum()));
        field(b, "sorted", Boolean.toString(files.values().stream().allMatch(Expected::sorted)));
        field(b, "duplicates", Boolean.toString(duplicates(files)));
        field(b, "success", Boolean.toString(f.success));
        b.setLength(b.length() - 2);
        return b.append("\n}\n").toString();
    }

    /** The functions under which every record lies in the partition of its file, where files i*per to i*per + per-1 are partition i. */
    private static List<String> fits(Map<String, List<Rec>> files, int per) {
        List<List<Rec>> all = new ArrayList<>(files.values());
        List<String> out = new ArrayList<>();
        for (Cut c : Cut.values()) {
            boolean ok = true;
            for (int i = 0; i < all.size() && ok; i++)
                for (Rec r : all.get(i)) ok &= c.partition(r.key(), all.size() / per) == i / per;
            if (ok) out.add(c.id());
        }
        return out;
    }

    private static boolean sorted(List<Rec> l) {
        for (int i = 1; i < l.size(); i++) if (Arrays.compareUnsigned(l.get(i - 1).key(), l.get(i).key()) > 0) return false;
        return true;
    }

    private static boolean duplicates(Map<String, List<Rec>> files) {
        Set<Object> seen = new HashSet<>();
        for (List<Rec> l : files.values()) for (Rec r : l) if (!seen.add(r.id())) return true;
        return false;
    }

    private static void field(StringBuilder b, String name, String json) { b.append("  ").append(quote(name)).append(": ").append(json).append(",\n"); }

    /** Names and classes only: nothing in them needs escaping. */
    private static String quote(String s) { return '"' + s + '"'; }

    private static String list(List<String> l) { return l.isEmpty() ? "[]" : "[\"" + String.join("\", \"", l) + "\"]"; }

    private static String base64(byte[] b) { return Base64.getEncoder().encodeToString(b); }
}
