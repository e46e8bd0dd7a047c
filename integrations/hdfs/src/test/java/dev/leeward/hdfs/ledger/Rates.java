package dev.leeward.hdfs.ledger;

import java.util.function.ToDoubleBiFunction;

/**
 * The rates at which an entry's work counts as pending, in payload bytes per second.
 *
 * @param face the whole rate, negative if the entry relieves
 * @param lasting the part that does not fade after the start
 */
record Rates(double face, double lasting) {

    static final double BITS_PER_BYTE = 8.0;

    /**
     * The requested rate of an entry. For elastic work it is the rate on its whole path; {@code share} returns the rate
     * in bit/s of a number of flows at one link.
     */
    static Rates of(Entry entry, boolean holdPeak, ToDoubleBiFunction<Integer, Integer> share) {
        double face;
        double lasting = 0.0;
        if (entry.demand() instanceof Entry.Demand.Stream stream) {
            face = stream.peakBps() / BITS_PER_BYTE;
            if (holdPeak) {
                lasting = Math.max(0, stream.peakBps() - stream.meanBps()) / BITS_PER_BYTE;
            }
        } else if (entry.demand() instanceof Entry.Demand.Envelope envelope) {
            face = envelope.meanBps() / BITS_PER_BYTE;
        } else {
            face = elastic(entry, (Entry.Demand.Elastic) entry.demand(), share);
        }
        return entry.relieves() ? new Rates(-face, 0.0) : new Rates(face, lasting);
    }

    private static double elastic(
            Entry entry, Entry.Demand.Elastic demand, ToDoubleBiFunction<Integer, Integer> share) {
        double least = demand.capBps() == null ? Double.POSITIVE_INFINITY : demand.capBps() / BITS_PER_BYTE;
        for (Entry.Hop hop : entry.hops()) {
            if (hop.work() > 0.0) {
                least = Math.min(least, share.applyAsDouble(hop.resource(), demand.flows()) / hop.work());
            }
        }
        return Double.isFinite(least) ? least : 0.0;
    }

    long lastingPart(double work) {
        return Numbers.rate(lasting * work);
    }

    long fadingPart(double work) {
        return Numbers.rate(face * work) - lastingPart(work);
    }
}
