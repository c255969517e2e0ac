package harness;

import java.io.*;
import java.nio.file.*;
import java.util.*;

/**
 * Line protocol: one command a line on stdin, one reply line a command on stdout
 * ("OK key=value ..." or "ERR message"); logs go to stderr. EOF on stdin ends the process,
 * so the servers die with the Go test that started it.
 */
public final class Main {
    static Path root;
    static final Map<String, AutoCloseable> open = new LinkedHashMap<>();

    public static void main(String[] a) throws Exception {
        long t0 = System.nanoTime();
        root = Paths.get(a.length > 0 ? a[0] : Files.createTempDirectory("harness").toString()).toAbsolutePath();
        Files.createDirectories(root);
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true);
        System.setOut(System.err); // libraries that print must not disturb the protocol
        out.println("OK ready=1 root=" + root + " pid=" + ProcessHandle.current().pid());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            line = line.trim();
            if (line.isEmpty() || line.startsWith("#")) continue;
            if (line.equals("quit")) break;
            String[] w = line.split("\\s+");
            Map<String, String> o = new LinkedHashMap<>();
            for (int i = 1; i < w.length; i++) {
                int e = w[i].indexOf('=');
                if (e < 0) o.put(w[i], ""); else o.put(w[i].substring(0, e), w[i].substring(e + 1));
            }
            long t = System.nanoTime();
            String r;
            try {
                r = "OK " + run(w[0], o);
            } catch (Throwable e) {
                StringWriter sw = new StringWriter();
                e.printStackTrace(new PrintWriter(sw));
                System.err.println(sw);
                r = "ERR " + (e.getClass().getName() + ": " + e.getMessage()).replace('\n', ' ');
            }
            out.println(r + " ms=" + (System.nanoTime() - t) / 1_000_000);
        }
        List<AutoCloseable> c = new ArrayList<>(open.values());
        Collections.reverse(c);
        for (AutoCloseable x : c) try { x.close(); } catch (Throwable e) { e.printStackTrace(); }
        out.println("OK bye uptime_ms=" + (System.nanoTime() - t0) / 1_000_000);
        System.exit(0);
    }

    static String run(String cmd, Map<String, String> o) throws Exception {
        return switch (cmd) {
            case "zk" -> Zk.run(o);
            case "dfs" -> Dfs.run(o);
            case "kdc" -> Kdc.run(o);
            case "job" -> Jobs.run(o);
            case "codecs" -> Jobs.codecs();
            case "fixtures" -> Fixtures.run(o);
            case "vectors" -> Vectors.run(o);
            default -> throw new IllegalArgumentException("unknown command " + cmd);
        };
    }
}
