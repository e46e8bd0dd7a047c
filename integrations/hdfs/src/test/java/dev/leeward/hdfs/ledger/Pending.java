package dev.leeward.hdfs.ledger;

import java.util.ArrayList;
import java.util.List;

/**
 * Rates committed to one link that its telemetry does not show yet.
 *
 * <p>Work of rate x starts at a link whose other load is v. A report of weight a covers a window, and a share phi of
 * the window lies after the start. The report moves the estimate M to (1 - a) M + a (v + phi x), and the pending rate p
 * to (1 - a) p + a (1 - phi) x. So M + p = v + x at every step. The end of work is a start of rate -x.
 *
 * <p>Between two windows all changes are sums of integers, so the order of commits and releases does not matter.
 */
final class Pending {

    /** A fading sum below this rate counts as zero. */
    private static final double NEGLIGIBLE = 1e-6;

    /** A start (or an end, with a negative rate) that a window may still cover in part. */
    record Start(long at, long rate) {
    }

    /** Rates that do not fade: of work that has not started, of held work, and the lasting part of started work. */
    private long held;
    /** Rates, as negative numbers, of work that runs and will leave. */
    private long leaving;
    /** Part of the started and ended rates that the estimate lacked after the last report. */
    private double fading;
    /** Starts and ends recorded since the last report. */
    private long fresh;
    /** In order of time; no rate is zero. */
    private final List<Start> young = new ArrayList<>();

    long held() {
        return held;
    }

    /** Correction of the measured load for starts and ends that telemetry does not show yet. */
    double settling() {
        return fading + (fresh + leaving);
    }

    double settlingAfter(MissedReports missed) {
        return Windows.remainder(missed, fading + fresh, young) + leaving;
    }

    /** Adds work of rate {@code rate} that will start (positive) or leave (negative). */
    void hold(long rate) {
        if (rate < 0) {
            leaving += rate;
        } else {
            held += rate;
        }
    }

    void cancelHold(long rate) {
        if (rate < 0) {
            leaving -= rate;
        } else {
            held -= rate;
        }
    }

    void addLasting(long rate) {
        held += rate;
    }

    /** Starts work of rate {@code rate} at {@code at}, or ends work of rate {@code -rate}. */
    void start(long at, long rate) {
        fresh += rate;
        int index = firstFrom(at);
        if (index < young.size() && young.get(index).at == at) {
            long sum = young.get(index).rate + rate;
            if (sum == 0) {
                young.remove(index);
            } else {
                young.set(index, new Start(at, sum));
            }
        } else if (rate != 0) {
            young.add(index, new Start(at, rate));
        }
    }

    private int firstFrom(long at) {
        int index = 0;
        while (index < young.size() && young.get(index).at < at) {
            index++;
        }
        return index;
    }

    /** Applies a report of a weight over a window. */
    void fade(long from, long until, double weight) {
        if (fading == 0.0 && fresh == 0 && young.isEmpty()) {
            return;
        }
        double unseen = 0.0;
        for (Start start : young) {
            // Rate times the part of the window before the start, which the window could not show.
            unseen += (double) start.rate * Times.since(Math.min(start.at, until), from);
        }
        unseen /= Times.since(until, from);
        settle((1.0 - weight) * (fading + fresh) + weight * unseen, from);
    }

    /** Applies missed reports. */
    void miss(MissedReports missed) {
        settle(Windows.remainder(missed, fading + fresh, young), Windows.lastFrom(missed));
    }

    /** Drops all starts and ends up to {@code now}. The estimate restarts at zero and contains none of that work. */
    void forget(long now) {
        young.removeIf(start -> start.at <= now);
        fading = 0.0;
        fresh = young.stream().mapToLong(Start::rate).sum();
    }

    private void settle(double remaining, long from) {
        fading = remaining;
        fresh = 0;
        // If a later window reaches farther back, this work still counts as fully covered.
        young.removeIf(start -> start.at <= from);
        if (young.isEmpty() && Math.abs(fading) < NEGLIGIBLE) {
            fading = 0.0;
        }
    }
}
