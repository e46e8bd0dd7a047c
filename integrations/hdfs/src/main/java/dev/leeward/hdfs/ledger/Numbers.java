package dev.leeward.hdfs.ledger;

/** Numbers of a link by Sinbad's rules, in bit/s. */
public final class Numbers {

    /** Largest counted rate, 140 Tb/s: no link carries more, and sums of such rates stay within 64 bits. */
    private static final double MOST = 1L << 47;

    private Numbers() {
    }

    /**
     * C - min(C, M + pressure): the capacity that Sinbad expects to remain on a link, in bit/s (Sinbad, pseudocode 2,
     * line 30). The result is clamped here and not where pressure is added, so placements may leave in any order.
     */
    public static double expectedCapacity(double capacity, double measured, long pressure) {
        return Math.max(0.0, Math.min(capacity, capacity - (measured + pressure)));
    }

    /** Placement pressure in bit/s of {@code bits} over {@code dt} ns (Sinbad, pseudocode 2, line 23). */
    public static long pressure(double bits, long dt) {
        return rate(bits / Math.max(dt * 1e-9, 1e-9));
    }

    /** A rate as a whole number, at most the largest that counts. */
    static long rate(double bps) {
        return whole(Math.max(-MOST, Math.min(MOST, bps)));
    }

    /** The nearest whole number. */
    static long whole(double value) {
        return (long) (value + Math.copySign(0.5, value));
    }
}
