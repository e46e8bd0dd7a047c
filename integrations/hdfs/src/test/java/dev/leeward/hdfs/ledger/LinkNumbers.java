package dev.leeward.hdfs.ledger;

/**
 * All sums of one link at one time, and the numbers that readers derive from them. There is no single "headroom":
 * best effort, admission and each paper's estimator need different numbers.
 */
final class LinkNumbers {

    /** C: capacity. */
    double capacity;
    /** M: measured load; NaN where it is unknown. */
    double measured = Double.NaN;
    /** M_g: the part of M in guaranteed classes; NaN where counters do not separate classes. */
    double measuredGuaranteed = Double.NaN;
    /** Best-effort work that has not started or is held, and work that starts or ends. */
    double held;
    double settling;
    /** The same of promised work. */
    double heldGuaranteed;
    double settlingGuaranteed;
    /** N: elastic flows. */
    double flows;
    /** Rates committed to streams and envelopes. */
    long inelastic;
    /** G: mean rates of reservations. */
    long reservedMean;
    /** R: rates of reservations. */
    long reservedRate;

    /** L: current or expected load; NaN where M is unknown. */
    double load() {
        if (Double.isNaN(measuredGuaranteed)) {
            return on(measured, held + heldGuaranteed, settling + settlingGuaranteed);
        }
        double guaranteed = Math.min(measuredGuaranteed, measured);
        double promised = Math.max(on(guaranteed, heldGuaranteed, settlingGuaranteed), reservedMean);
        return on(measured - guaranteed, held, settling) + promised;
    }

    private static double on(double measured, double held, double settling) {
        return Math.max(measured + settling, 0.0) + held;
    }

    /** max(0, limit C - L): the rate left for best-effort work; 0 where L is unknown. */
    double residual(double limit) {
        double load = load();
        return Double.isNaN(load) ? 0.0 : Math.max(limit * capacity - load, 0.0);
    }

    /** max(residual, n/(N+n) (C - inelastic)): rate of {@code n} new elastic flows (Choreo, section 3.2). */
    double share(int n, double limit) {
        double fresh = Math.max(n, 1);
        double elastic = Math.max(capacity - inelastic, 0.0);
        return Math.max(residual(limit), fresh / (Math.max(flows, 0.0) + fresh) * elastic);
    }

    /** (L + x) / C; NaN where L is unknown, infinite without capacity. */
    double utilizationWith(double extra) {
        double load = load();
        if (Double.isNaN(load)) {
            return Double.NaN;
        }
        return capacity > 0.0 ? Math.max(load + extra, 0.0) / capacity : Double.POSITIVE_INFINITY;
    }

    double unreserved(double reservable) {
        return reservable * capacity - reservedRate;
    }
}
