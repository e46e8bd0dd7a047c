package dev.leeward.hdfs.policies;

/**
 * Seeded tie-breaking by Splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). Ties
 * are never broken by index: otherwise all blocks would go to the first rack.
 *
 * @param seed seed of one decision
 */
public record Ties(long seed) {

    /** Rank of an item among equals. */
    public long rank(long item) {
        return mix(seed ^ item);
    }

    /** The draw with a number: a position below {@code n}. */
    public int draw(long number, int n) {
        return (int) (((mix(seed + number * 0x9E3779B97F4A7C15L) >>> 32) * n) >>> 32);
    }

    private static long mix(long value) {
        long z = value + 0x9E3779B97F4A7C15L;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }
}
