package dev.leeward.hdfs.ledger;

import java.util.List;

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

    /** Estimate after reports that each counted as full: C - (C - v)(1 - alpha)^count (Sinbad, section 6.2). */
    public double afterFull(double measured, double full) {
        return full - (full - measured) * Math.pow(1.0 - alpha, count);
    }

    /** Start of the last window. */
    long lastFrom() {
        return after(count - 1);
    }

    /** End of the last window. */
    long lastUntil() {
        return after(count);
    }

    private long after(int windows) {
        return Times.plus(since, Times.times(interval, windows));
    }

    /**
     * Fading sum after the missed windows. {@code sum} includes {@code young}; work that starts within the windows
     * fades only from its start.
     */
    double remainder(double sum, List<Pending.Start> young) {
        double stays = 1.0 - alpha;
        double all = Math.pow(stays, count);
        double unseen = 0.0;
        for (Pending.Start start : young) {
            // Start of the work, in windows after the first began.
            double position = (double) Times.since(start.at(), since) / interval;
            if (position >= count) {
                unseen += start.rate() * (1.0 - all);
                continue;
            }
            // Windows before the start show nothing of the work; the window that contains the start shows a part.
            int before = (int) position;
            double after = Math.pow(stays, count - 1 - before);
            double part = position - before;
            unseen += start.rate() * (after * stays * (1.0 - Math.pow(stays, before)) + after * alpha * part);
        }
        return all * sum + unseen;
    }
}
