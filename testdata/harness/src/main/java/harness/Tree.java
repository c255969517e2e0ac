package harness;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.*;
import java.util.*;
import java.util.stream.*;

/** What jobs leave in a directory, put in order. */
final class Tree {
    private Tree() {}

    static List<Path> files(Path dir) throws IOException {
        try (Stream<Path> s = Files.walk(dir)) {
            return s.filter(Files::isRegularFile).sorted().collect(Collectors.toList());
        }
    }

    static void delete(Path dir) throws IOException {
        if (!Files.exists(dir)) return;
        try (Stream<Path> s = Files.walk(dir)) {
            for (Path p : s.sorted(Comparator.reverseOrder()).toList()) Files.delete(p);
        }
    }

    /** The checksum files that Hadoop's local file system keeps beside each file. */
    static void deleteCrc(Path dir) throws IOException {
        for (Path p : files(dir)) if (p.getFileName().toString().endsWith(".crc")) Files.delete(p);
    }

    /** The manifest committer writes this machine's name, user and paths into _SUCCESS; the form of the file is what matters here. */
    static void anonymise(Path dir) throws IOException {
        Path p = dir.resolve("_SUCCESS");
        String s = Files.readString(p).replace(dir.toString(), "/warehouse/manifest-committer/1")
                .replace("\"" + System.getProperty("user.name") + "\"", "\"hadoop\"").replace(InetAddress.getLocalHost().getHostName(), "worker")
                .replaceAll("\"hostname\" : \"[^\"]*\"", "\"hostname\" : \"worker\"");
        Files.writeString(p, s);
    }
}
