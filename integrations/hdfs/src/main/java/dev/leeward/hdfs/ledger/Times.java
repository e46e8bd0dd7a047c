package dev.leeward.hdfs.ledger;

/** Arithmetic on times in nanoseconds that stops at its limits instead of turning over. */
public final class Times {

    private Times() {
    }

    /** Time from {@code earlier} to {@code later}; 0 if {@code earlier} is later. */
    public static long since(long later, long earlier) {
        return later <= earlier ? 0 : later - earlier;
    }

    /** Sum of two times that are not negative. */
    public static long plus(long a, long b) {
        long sum = a + b;
        return sum < 0 ? Long.MAX_VALUE : sum;
    }
}
