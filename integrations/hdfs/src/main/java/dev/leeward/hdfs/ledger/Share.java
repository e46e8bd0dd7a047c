package dev.leeward.hdfs.ledger;

/**
 * Contribution of one entry to one link's sums, in bit/s.
 *
 * @param rate rate that counts as pending; negative for an entry that relieves
 * @param flows elastic flows
 * @param inelastic rate of streams and envelopes
 * @param reservedMean mean rate of an envelope
 * @param reservedRate reserved rate of an envelope
 * @param pressing bits that Sinbad's pressure spreads over the time to the next report
 */
public record Share(long rate, long flows, long inelastic, long reservedMean, long reservedRate, double pressing) {

    /** Largest counted rate, 140 Tb/s: no link carries more, and sums of such rates stay within 64 bits. */
    private static final double MOST = 1L << 47;

    /** The share of an entry at a hop with {@code work} bits per byte. */
    static Share of(Entry entry, Rates rates, double work) {
        long rate = units(rates.face() * work);
        if (entry.relieves()) {
            // Flows and reservations leave with the entry that added them.
            return new Share(rate, 0, 0, 0, 0, 0.0);
        }
        if (entry.demand() instanceof Entry.Demand.Elastic elastic) {
            return new Share(rate, elastic.flows(), 0, 0, 0, elastic.bytes() * work);
        }
        if (entry.demand() instanceof Entry.Demand.Envelope envelope) {
            return new Share(rate, 0, rate, rate, units(envelope.rateBps() / Rates.BITS_PER_BYTE * work), 0.0);
        }
        return new Share(rate, 0, rate, 0, 0, 0.0);
    }

    /** Placement pressure in bit/s: the work spread over the time {@code dt} in ns to the next report. */
    long pressure(long dt) {
        return pressure(pressing, dt);
    }

    /** Placement pressure in bit/s of {@code bits} over {@code dt} ns (Sinbad, pseudocode 2, line 23). */
    public static long pressure(double bits, long dt) {
        return units(bits / Math.max(dt * 1e-9, 1e-9));
    }

    static long units(double rate) {
        return Numbers.whole(Math.max(-MOST, Math.min(MOST, rate)));
    }
}
