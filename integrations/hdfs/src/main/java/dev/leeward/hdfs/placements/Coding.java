package dev.leeward.hdfs.placements;

/**
 * An erasure code: a block is split into data chunks, and parity chunks can replace lost ones. All have one size.
 *
 * @param data number of data chunks of a stripe
 * @param parity number of parity chunks
 */
public record Coding(int data, int parity) {

    /** Number of chunks of a stripe. */
    public int chunks() {
        return data + parity;
    }

    /** Size of each chunk of a block, in bytes; the last data chunk is padded. */
    public long chunkOf(long block) {
        return block / data + (block % data == 0 ? 0 : 1);
    }

    /** Size of a block with chunks of this size, in bytes. */
    long blockOf(long chunk) {
        return chunk > Long.MAX_VALUE / data ? Long.MAX_VALUE : chunk * data;
    }

    /** Name in the API, such as {@code 6+3}. */
    String text() {
        return data + "+" + parity;
    }
}
