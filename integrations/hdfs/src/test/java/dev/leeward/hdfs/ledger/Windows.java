package dev.leeward.hdfs.ledger;

import java.util.List;

/** Times of missed windows, and the work that they do not show. */
final class Windows {

    private Windows() {
    }

    /** Length of a number of windows; neither is negative. */
    static long length(long interval, long count) {
        return Math.multiplyHigh(interval, count) != 0 || interval * count < 0 ? Long.MAX_VALUE : interval * count;
    }

    /** Start of the last window. */
    static long lastFrom(MissedReports missed) {
        return after(missed, missed.count() - 1);
    }

    /** End of the last window. */
    static long lastUntil(MissedReports missed) {
        return after(missed, missed.count());
    }

    private static long after(MissedReports missed, int windows) {
        return Times.plus(missed.since(), length(missed.interval(), windows));
    }

    /**
     * Fading sum after the missed windows. {@code sum} includes {@code young}; work that starts within the windows
     * fades only from its start.
     */
    static double remainder(MissedReports missed, double sum, List<Pending.Start> young) {
        int count = missed.count();
        double alpha = missed.alpha();
        double stays = 1.0 - alpha;
        double all = Math.pow(stays, count);
        double unseen = 0.0;
        for (Pending.Start start : young) {
            // Start of the work, in windows after the first began.
            double position = (double) Times.since(start.at(), missed.since()) / missed.interval();
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
