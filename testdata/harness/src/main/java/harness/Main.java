package harness;

import java.io.*;
import java.nio.file.*;
import java.util.*;

/**
 * Runs real servers and jobs for tests. One command a line on stdin, one reply line a command on stdout: "OK key=value ..." or "ERR message";
 * logs go to stderr. It ends when stdin does or when the process that started it is gone, so nothing outlives the test.
 *
 * <pre>java harness.Main [DIRECTORY]    everything that is written without being told where goes under DIRECTORY</pre>
 */
public final class Main {
    static Path root;
    /** What has to be closed at the end, by name, in the order of opening. */
    static final Map<String, AutoCloseable> open = new LinkedHashMap<>();

    private Main() {}

    public static void main(String[] a) throws Exception {
        root = Paths.get(a.length > 0 ? a[0] : Files.createTempDirectory("harness").toString()).toAbsolutePath();
        Files.createDirectories(root);
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true);
        System.setOut(System.err); // libraries that print must not disturb the protocol
        dieWithParent();
        out.println("OK ready=1 root=" + root + " pid=" + ProcessHandle.current().pid());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null && !line.equals("quit"); ) {
            line = line.trim();
            if (!line.isEmpty() && !line.startsWith("#")) out.println(answer(line));
        }
        closeAll();
        out.println("OK bye=1");
        System.exit(0);
    }

    /** A test that is killed closes stdin too, but that is seen only after the command at hand, and a job can take long. */
    private static void dieWithParent() {
        ProcessHandle.current().parent().ifPresent(p -> p.onExit().thenRun(() -> Runtime.getRuntime().halt(3)));
    }

    private static String answer(String line) {
        String[] w = line.split("\\s+");
        long t = System.nanoTime();
        String r;
        try {
            r = "OK " + run(w[0], options(w));
        } catch (Throwable e) {
            e.printStackTrace();
            r = "ERR " + (e.getClass().getName() + ": " + e.getMessage()).replaceAll("\\s+", " ");
        }
        return r + " ms=" + (System.nanoTime() - t) / 1_000_000;
    }

    private static Map<String, String> options(String[] words) {
        Map<String, String> o = new LinkedHashMap<>();
        for (String w : Arrays.asList(words).subList(1, words.length)) {
            int e = w.indexOf('=');
            o.put(e < 0 ? w : w.substring(0, e), e < 0 ? "" : w.substring(e + 1));
        }
        return o;
    }

    private static String run(String command, Map<String, String> o) throws Exception {
        return switch (command) {
            case "zk" -> Zk.run(o);
            case "dfs" -> Dfs.run(o);
            case "kdc" -> Kdc.run(o);
            case "job" -> Jobs.run(o);
            case "codecs" -> Jobs.codecs();
            case "fixtures" -> Fixtures.run(o);
            case "vectors" -> Vectors.run(o);
            case "read" -> ReadBack.run(o);
            default -> throw new IllegalArgumentException("unknown command " + command);
        };
    }

    private static void closeAll() {
        List<AutoCloseable> c = new ArrayList<>(open.values());
        Collections.reverse(c);
        for (AutoCloseable x : c) {
            try {
                x.close();
            } catch (Throwable e) {
                e.printStackTrace();
            }
        }
    }
}
