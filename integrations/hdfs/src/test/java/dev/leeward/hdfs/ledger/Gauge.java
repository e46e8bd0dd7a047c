package dev.leeward.hdfs.ledger;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;
import java.util.function.Predicate;

/** State of one link: its estimate, and what is committed to it. */
final class Gauge {

    /** Source of an estimate. */
    enum Source {
        /** No report yet. */
        NONE,
        /** The link's own counter. */
        DIRECT,
        /** The sum of the links below. */
        DERIVED,
        /** A host that is known to be down: it carries nothing. */
        DOWN
    }

    /** Pressure or a rate that the report of the next window removes. */
    record UntilWindow(long entry, long committed, long awaited, long pressure, long rate, boolean promised) {
    }

    /** Capacity at the start; a silent host counts with it. */
    final long full;
    long capacity;
    double measured;
    /** End of the last window, or the time at which the host came up, if later. */
    long until;
    Source source = Source.NONE;
    /** Sum of bits / time to the next report over the blocks placed since the last report; not clamped. */
    long pressure;

    final Pending pending = new Pending();
    final Pending pendingGuaranteed = new Pending();
    final Deque<UntilWindow> untilWindow = new ArrayDeque<>();
    long flows;
    long inelastic;
    long reservedMean;
    long reservedRate;
    /** The part of the estimate in guaranteed classes; NaN without counters of classes. */
    double measuredGuaranteed = Double.NaN;
    /** Start of the last window. */
    long from;
    /** The last sample, without the filter. */
    long latest;
    /** Start of the series of hot windows; null if the last window was not hot. */
    Long hotSince;
    long hotUntil;

    Gauge(long capacity) {
        this.full = Math.max(0, capacity);
        this.capacity = this.full;
    }

    Pending pending(boolean promised) {
        return promised ? pendingGuaranteed : pending;
    }

    void dropUntilWindow(Predicate<UntilWindow> leaves) {
        for (Iterator<UntilWindow> items = untilWindow.iterator(); items.hasNext(); ) {
            UntilWindow item = items.next();
            if (leaves.test(item)) {
                pressure -= item.pressure;
                pending(item.promised).cancelHold(item.rate);
                items.remove();
            }
        }
    }

    /** Adds (1) or removes (-1) the sums that stay until release. */
    void count(Share share, int times) {
        flows += share.flows() * times;
        inelastic += share.inelastic() * times;
        reservedMean += share.reservedMean() * times;
        reservedRate += share.reservedRate() * times;
    }
}
