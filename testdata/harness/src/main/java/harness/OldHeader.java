package harness;

import java.io.*;
import java.nio.file.*;
import org.apache.hadoop.io.Text;

/**
 * Gives SequenceFiles the headers of older Hadoops, which a Hadoop of today reads but cannot write. Version 5 is version 6 without the
 * metadata; version 4 also lacks the name of the codec, which is DefaultCodec (SequenceFile.Reader.init). The rest of the file is the same.
 */
final class OldHeader {
    private OldHeader() {}

    static void rewrite(Path dir, int version) throws IOException {
        for (Path p : Tree.files(dir)) {
            if (p.getFileName().toString().startsWith("_") || p.getFileName().toString().startsWith(".")) continue;
            byte[] old = Files.readAllBytes(p);
            Files.deleteIfExists(p.resolveSibling("." + p.getFileName() + ".crc"));
            Files.write(p, rewrite(old, version));
        }
    }

    private static byte[] rewrite(byte[] old, int version) throws IOException {
        ByteArrayInputStream raw = new ByteArrayInputStream(old);
        DataInputStream in = new DataInputStream(raw);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        int head = in.readInt();
        if ((head & 0xff) != 6) throw new IOException("not a header of version 6");
        out.writeInt((head & ~0xff) | version);
        Text.writeString(out, Text.readString(in)); // key class
        Text.writeString(out, Text.readString(in)); // value class
        boolean compressed = in.readBoolean(), blocks = in.readBoolean();
        out.writeBoolean(compressed);
        out.writeBoolean(blocks);
        if (compressed) {
            String codec = Text.readString(in);
            if (version >= 5) Text.writeString(out, codec);
            else if (!codec.endsWith(".DefaultCodec")) throw new IOException("version 4 knows DefaultCodec only, not " + codec);
        }
        if (in.readInt() != 0) throw new IOException("version " + version + " has no metadata");
        out.write(raw.readAllBytes());
        return bytes.toByteArray();
    }
}
