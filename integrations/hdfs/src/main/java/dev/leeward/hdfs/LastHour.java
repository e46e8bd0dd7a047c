package dev.leeward.hdfs;

/**
 * Increase of counts over the last hour. A daemon stores the totals of each minute, so counting itself has no further
 * cost. The hour is exact to a minute.
 */
final class LastHour {

    private static final int MINUTES = 60;
    private static final long MINUTE_NS = 60_000_000_000L;

    private final long[][] totals = new long[MINUTES][];
    private int stored;
    private long storedNano;

    /**
     * No counts yet.
     *
     * @param counts number of counts
     * @param nano monotonic time in ns
     */
    LastHour(int counts, long nano) {
        store(new long[counts], nano);
    }

    /** True if a minute has passed since the last {@link #store}. */
    synchronized boolean isDue(long nano) {
        return nano - storedNano >= MINUTE_NS;
    }

    /** Stores the totals of a minute, in place of those of an hour ago. */
    synchronized void store(long[] now, long nano) {
        totals[stored % MINUTES] = now;
        stored++;
        storedNano = nano;
    }

    /** Increase of each total up to {@code now}. */
    synchronized long[] increase(long[] now) {
        long[] oldest = totals[stored < MINUTES ? 0 : stored % MINUTES];
        long[] increase = new long[now.length];
        for (int i = 0; i < now.length; i++) {
            increase[i] = now[i] - oldest[i];
        }
        return increase;
    }
}
