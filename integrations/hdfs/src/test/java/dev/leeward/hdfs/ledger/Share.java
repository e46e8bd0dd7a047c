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
record Share(long rate, long flows, long inelastic, long reservedMean, long reservedRate, double pressing) {

    /** The share of an entry at a hop with {@code work} bits per byte. */
    static Share of(Entry entry, Rates rates, double work) {
        long rate = Numbers.rate(rates.face() * work);
        if (entry.relieves()) {
            // Flows and reservations leave with the entry that added them.
            return new Share(rate, 0, 0, 0, 0, 0.0);
        }
        if (entry.demand() instanceof Entry.Demand.Elastic elastic) {
            return new Share(rate, elastic.flows(), 0, 0, 0, elastic.bytes() * work);
        }
        if (entry.demand() instanceof Entry.Demand.Envelope envelope) {
            return new Share(rate, 0, rate, rate, Numbers.rate(envelope.rateBps() / Rates.BITS_PER_BYTE * work), 0.0);
        }
        return new Share(rate, 0, rate, 0, 0, 0.0);
    }

    /** Placement pressure in bit/s: the work spread over the time {@code dt} in ns to the next report. */
    long pressure(long dt) {
        return Numbers.pressure(pressing, dt);
    }
}
