package harness;

import java.nio.ByteBuffer;

/** One record as sequins should see it: key and value unwrapped. A deleted one (Sparkey only) has no value. */
record Rec(byte[] key, byte[] value, boolean deleted) {
    static final byte[] NOTHING = new byte[0];

    static Rec put(byte[] key, byte[] value) { return new Rec(key, value, false); }
    static Rec delete(byte[] key) { return new Rec(key, NOTHING, true); }

    /** The key as something that can stand in a map. */
    ByteBuffer id() { return ByteBuffer.wrap(key); }
}
