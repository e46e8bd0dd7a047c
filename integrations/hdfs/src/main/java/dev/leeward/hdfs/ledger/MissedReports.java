package dev.leeward.hdfs.ledger;

/**
 * Consecutive windows without a report. Each counts as a report of weight {@code alpha}.
 *
 * @param since start of the first window, in ns
 * @param count number of windows, at least one
 * @param interval length of each window, in ns
 * @param alpha weight of each window
 */
public record MissedReports(long since, int count, long interval, double alpha) {

    /** Number of consecutive missing reports after which another one changes nothing. */
    static final long MOST = 1 << 12;

    /**
     * Windows without a report since {@code until}, at {@code now}; null if none counts as missing yet.
     *
     * @param grace time that a report may be late before it counts as missing, in ns
     */
    public static MissedReports at(long now, long until, long interval, long grace, double alpha) {
        return of(until, Times.since(now, Times.plus(until, grace)) / interval, interval, alpha);
    }

    /** A number of windows; null for none. */
    static MissedReports of(long since, long count, long interval, double alpha) {
        long counted = Math.min(count, MOST);
        return counted > 0 ? new MissedReports(since, (int) counted, interval, alpha) : null;
    }

    /** Estimate after reports that each counted as full: C - (C - v)(1 - alpha)^count (Sinbad, section 6.2). */
    public double afterFull(double measured, double full) {
        return full - (full - measured) * Math.pow(1.0 - alpha, count);
    }
}
