package harness;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;

/** The records of the fixtures. Everything is made from fixed seeds, so two runs give the same records. */
final class Data {
    private Data() {}

    /** Keys that are awkward in a URL, in a path, in UTF-8 or in Java's strings. All are valid UTF-8. */
    static final List<String> AWKWARD = List.of("a", " ", "/", "//", "a/b", "a//b", "/a", "a/", "..", "../a", "a/../b", ".", "./a", "%", "%2F",
            "%2f", "%00", "100%", "a%zz", "+", "a+b", "a b", " a ", "?", "a?b=c", "a?proxy=1", "#", "a#b", "a&b=c", ";", "a;b", ":", "a\\b", "\"a\"", "'",
            "<b>&amp;</b>", "a\tb", "a\nb", "\r\n", "\0", "a\0b", "\0\0", "healthz", "_SUCCESS", ".hidden", "~", "é", "ñandú", "e\u0301", "Ω≈ç√∫",
            "日本語", "キー/値", "עברית", "العربية", "😀", "👨\u200d👩\u200d👧", "\uD835\uDD4A", "\u0001", "\u007f", "\u0080", "\u07ff", "\u0800",
            "\ufeffbom", "\ufffd", "\uffff", "\uD800\uDC00", "\uDBFF\uDFFF");

    /** Around the edges of Hadoop's and Sparkey's variable-length integers and of buffers. */
    static final int[] LENGTHS = {2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100, 111, 112, 113, 126, 127, 128, 129, 200, 254, 255, 256, 257, 300, 384};

    private static final String[] WORDS = ("lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore et dolore magna"
            + " aliqua été naïve 日本 данные 😀 0 1 42 1000 -7 3.14 {\"id\": } [] , ;").split(" ");

    static byte[] utf8(String s) { return s.getBytes(StandardCharsets.UTF_8); }

    /** About n bytes of words: text that compresses as text does. */
    static byte[] words(Random r, int n) {
        StringBuilder b = new StringBuilder(n);
        while (b.length() < n) b.append(WORDS[r.nextInt(WORDS.length)]).append(' ');
        b.setLength(n);
        if (n > 0 && Character.isHighSurrogate(b.charAt(n - 1))) b.setCharAt(n - 1, '.');
        return utf8(b.toString());
    }

    static byte[] noise(Random r, int n) {
        byte[] b = new byte[n];
        r.nextBytes(b);
        return b;
    }

    /** n bytes that compress a few hundred to one, but differ from place to place so that a shifted or repeated piece shows. */
    static byte[] big(int n, int seed) {
        byte[] b = new byte[n];
        for (int i = 0; i < n; i++) b[i] = (byte) (i % 4096 == 0 ? i >> 12 : 'a' + (i + seed) % 16);
        return b;
    }

    /** Text keys: the awkward ones, one of each length, and plain ones; values from no bytes to a few hundred. */
    static List<Rec> text(int seed) {
        Set<ByteBuffer> seen = new HashSet<>();
        List<Rec> out = new ArrayList<>();
        Random r = new Random(seed);
        for (String k : AWKWARD) add(out, seen, Rec.put(utf8(k), words(r, valueLength(out.size()))));
        for (int n : LENGTHS) add(out, seen, Rec.put(words(r, n), words(r, valueLength(out.size()))));
        for (int i = 0; i < 40; i++) add(out, seen, Rec.put(utf8(String.format("key-%05d", i * 7919 % 10007)), words(r, valueLength(i))));
        return out;
    }

    /** The text keys and, among them, binary ones: NULs, broken UTF-8, every byte value; noise for every other value. */
    static List<Rec> binary(int seed) {
        List<Rec> out = new ArrayList<>(text(seed));
        Set<ByteBuffer> seen = new HashSet<>();
        for (Rec x : out) seen.add(x.id());
        Random r = new Random(seed + 1);
        byte[] all = new byte[256];
        for (int i = 0; i < 256; i++) all[i] = (byte) i;
        add(out, seen, Rec.put(all, all));
        int[][] odd = {{0x80}, {0xff}, {0xfe}, {0xc0, 0x80}, {0xc3}, {0xc3, 0x28}, {0xed, 0xa0, 0x80}, {0xf8, 0x88, 0x80, 0x80, 0x80}, {0xff, 0xff},
                {0, 0xff}, {0xff, 0}, {'a', 0}, {'a', 0xff}, {'a', 'b', 0x80}};
        for (int[] o : odd) add(out, seen, Rec.put(raw(o), noise(r, valueLength(out.size()))));
        for (int i = 0; i < 20; i++) add(out, seen, Rec.put(noise(r, 1 + i * i), noise(r, valueLength(i))));
        return out;
    }

    /** Every one-byte key, with no value at all for every other; and keys that are prefixes of each other. */
    static List<Rec> everyByte() {
        List<Rec> out = new ArrayList<>();
        for (int i = 0; i < 256; i++) out.add(Rec.put(raw(i), i % 2 == 0 ? Rec.NOTHING : raw(i, 255 - i)));
        for (int n = 2; n <= 64; n++) {
            out.add(Rec.put(new byte[n], raw(n)));
            byte[] ff = new byte[n];
            Arrays.fill(ff, (byte) 0xff);
            out.add(Rec.put(ff, raw(n, n)));
        }
        Collections.shuffle(out, new Random(5));
        return out;
    }

    /** Keys for the partitioning functions: plain, with and without non-ASCII characters, and those whose hashes lie at the edges of an int. */
    static List<Rec> hashed(int n, boolean ascii) {
        List<Rec> out = new ArrayList<>();
        String[] form = ascii ? new String[] {"user-%05d"} : new String[] {"user-%05d", "ключ-%d", "naïve/%d", "😀%d", "日本語%d"};
        for (int i = 0; i < n; i++) out.add(Rec.put(utf8(String.format(form[i % form.length], i)), utf8("v" + i)));
        for (String s : edges()) out.add(Rec.put(utf8(s), utf8(Integer.toString(s.hashCode()))));
        Collections.shuffle(out, new Random(n));
        return out;
    }

    /** ASCII strings with hash codes within 40 of Integer.MIN_VALUE, Integer.MAX_VALUE and 0, where signs and Cascading's + 31 matter. */
    static List<String> edges() {
        List<String> out = new ArrayList<>();
        for (String s : List.of("polygenelubricants", "f5a5a608")) // Integer.MIN_VALUE and 0
            for (int d = -40; d <= 40; d++) {
                char last = (char) (s.charAt(s.length() - 1) + d);
                if (last > ' ' && last < 127) out.add(s.substring(0, s.length() - 1) + last);
            }
        return out;
    }

    /** Each of n keys several times, with different values. */
    static List<Rec> repeated(int n, int times) {
        List<Rec> out = new ArrayList<>();
        for (int t = 0; t < times; t++)
            for (int i = 0; i < n; i++)
                if (i % (t + 1) == 0) out.add(Rec.put(utf8("dup-" + i), utf8("value " + t + " of " + i)));
        return out;
    }

    static List<Rec> longs() {
        List<Rec> out = new ArrayList<>();
        List<Long> edge = List.of(0L, 1L, -1L, 42L, 255L, 256L, Long.MIN_VALUE, Long.MAX_VALUE, (long) Integer.MIN_VALUE, 1L << 32, -(1L << 32));
        for (long k : edge) out.add(Rec.put(ByteBuffer.allocate(8).putLong(k).array(), ByteBuffer.allocate(4).putInt((int) k).array()));
        for (int i = 1000; i < 1100; i++) out.add(Rec.put(ByteBuffer.allocate(8).putLong(i * 31L).array(), ByteBuffer.allocate(4).putInt(i).array()));
        return out;
    }

    /** The records with their values cut away or replaced, for classes of values that have a fixed form. */
    static List<Rec> withValues(List<Rec> in, java.util.function.IntFunction<byte[]> value) {
        List<Rec> out = new ArrayList<>();
        for (int i = 0; i < in.size(); i++) out.add(Rec.put(in.get(i).key(), value.apply(i)));
        return out;
    }

    static List<Rec> bigs(int... sizes) {
        List<Rec> out = new ArrayList<>();
        for (int i = 0; i < sizes.length; i++) out.add(Rec.put(utf8("big-" + i), big(sizes[i], i)));
        return out;
    }

    /** Keys in order, and values that repeat a pattern of a few bytes. */
    static List<Rec> patterns(int n, int length) {
        List<Rec> out = new ArrayList<>();
        for (int i = 0; i < n; i++) out.add(Rec.put(utf8(String.format("key-%05d", i)), utf8("abcd".repeat(length / 4))));
        return out;
    }

    private static int valueLength(int i) {
        int[] n = {0, 1, 17, 60, 126, 127, 128, 129, 240, 255, 256, 30, 5, 90, 40};
        return i == 0 ? 0 : n[i % n.length]; // the first key has one byte, and no value
    }

    private static void add(List<Rec> out, Set<ByteBuffer> seen, Rec r) {
        if (seen.add(r.id())) out.add(r);
    }

    static byte[] raw(int... b) {
        byte[] r = new byte[b.length];
        for (int i = 0; i < b.length; i++) r[i] = (byte) b[i];
        return r;
    }
}
