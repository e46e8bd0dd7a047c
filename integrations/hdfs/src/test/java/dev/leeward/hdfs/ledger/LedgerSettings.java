package dev.leeward.hdfs.ledger;

/**
 * Settings for turning samples into estimates.
 *
 * @param intervalNs time between reports; 1 s in Sinbad, section 6.2
 * @param alpha weight of a report that covers one interval; 0.2 in Sinbad, section 6.2
 * @param missing meaning of a missing report
 * @param initial estimate before the first report
 * @param graceNs time that a report may be late before it counts as missing
 * @param unknownAfter under {@link Missing#STRICT}, intervals without a report after which a link is unknown
 * @param holdPeak whether the excess of a stream's peak over its mean stays pending until release
 * @param limit share of a link's capacity that best-effort work may fill
 * @param reservable share of a link's capacity that may be reserved
 * @param hot utilization above which a link is hot; 0.75 in Hotspots, section 3.1
 */
public record LedgerSettings(
        long intervalNs,
        double alpha,
        Missing missing,
        Initial initial,
        long graceNs,
        double unknownAfter,
        boolean holdPeak,
        double limit,
        double reservable,
        double hot) {

    /** Meaning of a missing report. */
    public enum Missing {
        /** The link becomes unknown. */
        STRICT,
        /** A missing report counts as a report of a full link (Sinbad, section 6.2). */
        SINBAD
    }

    /** Start of an estimate. */
    public enum Initial {
        /** At the first report. */
        FIRST,
        /** At zero (Sinbad, section 6.2). */
        ZERO
    }

    /** Default settings: those of the controller. */
    public static final LedgerSettings DEFAULT = new LedgerSettings(
            1_000_000_000L, 0.2, Missing.STRICT, Initial.FIRST, 500_000_000L, 3.0, false, 1.0, 1.0, 0.75);

    /**
     * Checks that an estimator works with these settings.
     *
     * @throws IllegalArgumentException if a setting is out of its range; the message names it
     */
    public LedgerSettings {
        if (intervalNs <= 0) {
            throw new IllegalArgumentException("interval: " + intervalNs + " ns: expected a positive time");
        }
        if (graceNs < 0) {
            throw new IllegalArgumentException("grace: " + graceNs + " ns: expected a time of at least 0");
        }
        checkShare("alpha", alpha);
        checkShare("limit", limit);
        checkShare("reservable", reservable);
        checkShare("hot", hot);
        if (!(unknownAfter >= 1.0 && unknownAfter <= 1e9)) {
            throw new IllegalArgumentException("unknown_after: " + unknownAfter + ": expected at least 1 interval");
        }
    }

    private static void checkShare(String name, double value) {
        if (!(value > 0.0 && value <= 1.0)) {
            throw new IllegalArgumentException(name + ": " + value + ": expected a share above 0, at most 1");
        }
    }

    /** Time for which a report counts under {@link Missing#STRICT}, in nanoseconds. */
    public long knownForNs() {
        return (long) (unknownAfter * intervalNs);
    }

    /** Weight of a report that ends {@code dt} ns after the last one. Gaps do not slow the filter. */
    public double weight(long dt) {
        return dt == intervalNs ? alpha : 1.0 - Math.pow(1.0 - alpha, (double) dt / intervalNs);
    }

    /** Windows without a report since {@code until}, at {@code now}; null if none counts as missing yet. */
    public MissedReports missedAt(long until, long now) {
        return MissedReports.at(now, until, intervalNs, graceNs, alpha);
    }

    MissedReports missed(long since, long count) {
        return MissedReports.of(since, count, intervalNs, alpha);
    }
}
