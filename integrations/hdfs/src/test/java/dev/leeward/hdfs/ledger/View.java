package dev.leeward.hdfs.ledger;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.Set;

/** The ledger at one time, with a private what-if. */
public final class View {

    /** Change of one link's sums by the what-if. */
    private static final class Delta {
        long pressure;
        final long[] held = new long[2];
        final long[] settling = new long[2];
        long flows;
        long inelastic;
        long reservedMean;
        long reservedRate;

        void count(Share share, int times) {
            flows += share.flows() * times;
            inelastic += share.inelastic() * times;
            reservedMean += share.reservedMean() * times;
            reservedRate += share.reservedRate() * times;
        }

        void hold(int kind, long rate, int times) {
            // Leaving rates count at once.
            (rate < 0 ? settling : held)[kind] += rate * times;
        }

        void start(int kind, long fading, long lasting, int times) {
            settling[kind] += fading * times;
            held[kind] += lasting * times;
        }
    }

    private final State state;
    private final long now;
    private final Map<Integer, Delta> deltas = new HashMap<>();

    View(State state, long now) {
        this.state = state;
        this.now = now;
    }

    /** Adds an entry to the what-if. */
    public void add(Entry entry) {
        Rates rates = Rates.of(
                entry, state.settings.holdPeak(), (link, flows) -> numbers(link).share(flows, state.settings.limit()));
        int kind = entry.isPromised() ? 1 : 0;
        for (Entry.Hop hop : entry.hops()) {
            Share share = Share.of(entry, rates, hop.work());
            Delta delta = delta(hop.resource());
            delta.pressure += share.pressure(Times.since(state.nextWindow(hop.resource(), now), now));
            delta.count(share, 1);
            if (entry.fadesFrom() != null) {
                delta.start(kind, rates.fadingPart(hop.work()), rates.lastingPart(hop.work()), 1);
            } else {
                delta.hold(kind, share.rate(), 1);
            }
        }
    }

    /** Removes all load of an owner from the what-if, also the part that telemetry shows. */
    public void without(Entry.Owner owner) {
        for (long id : state.owners.getOrDefault(owner, List.of())) {
            State.Stored stored = state.entries.get(id);
            Set<Integer> seen = new HashSet<>();
            for (Entry.Hop hop : stored.entry.hops()) {
                remove(stored, hop, seen.add(hop.resource()));
            }
        }
    }

    private void remove(State.Stored stored, Entry.Hop hop, boolean first) {
        int kind = stored.entry.isPromised() ? 1 : 0;
        Share share = Share.of(stored.entry, stored.rates, hop.work());
        Delta delta = delta(hop.resource());
        delta.count(share, -1);
        if (stored.stage == State.Stage.STARTED) {
            delta.start(kind, stored.rates.fadingPart(hop.work()), stored.rates.lastingPart(hop.work()), -1);
        } else if (stored.stage == State.Stage.HELD && !(stored.entry.fade() instanceof Entry.Fade.AtNextWindow)) {
            delta.hold(kind, share.rate(), -1);
        }
        if (first) {
            for (Gauge.UntilWindow item : state.gauges[hop.resource()].untilWindow) {
                if (item.entry() == stored.id) {
                    delta.pressure -= item.pressure();
                    delta.hold(kind, item.rate(), -1);
                }
            }
        }
    }

    private Delta delta(int link) {
        return deltas.computeIfAbsent(link, number -> new Delta());
    }

    private LinkNumbers numbers(int link) {
        LinkNumbers numbers = state.numbers(link, now);
        Delta delta = deltas.get(link);
        if (delta != null) {
            numbers.held += delta.held[0];
            numbers.settling += delta.settling[0];
            numbers.heldGuaranteed += delta.held[1];
            numbers.settlingGuaranteed += delta.settling[1];
            numbers.flows += delta.flows;
            numbers.inelastic += delta.inelastic;
            numbers.reservedMean += delta.reservedMean;
            numbers.reservedRate += delta.reservedRate;
        }
        return numbers;
    }

    // ---- numbers --------------------------------------------------------------------------------------------

    /** Measured load in bit/s; empty where it is unknown. */
    public OptionalLong measured(int link) {
        double measured = state.measured(link, now);
        return Double.isNaN(measured) ? OptionalLong.empty() : OptionalLong.of(Numbers.whole(measured));
    }

    /** True if the measured load is a sum of the links below. */
    public boolean isDerived(int link) {
        return state.gauges[link].source == Gauge.Source.DERIVED;
    }

    /** C - min(C, M + pressure), in bit/s (Sinbad, pseudocode 2, line 30); empty where M is unknown. */
    public OptionalLong expectedCapacity(int link) {
        double measured = state.measured(link, now);
        if (Double.isNaN(measured)) {
            return OptionalLong.empty();
        }
        Gauge gauge = state.gauges[link];
        long extra = deltas.containsKey(link) ? deltas.get(link).pressure : 0;
        return OptionalLong.of(
                Numbers.whole(Numbers.expectedCapacity(gauge.capacity, measured, gauge.pressure + extra)));
    }

    /** max(0, limit C - L), in bit/s: the rate left for best-effort work. */
    public long residual(int link) {
        return Numbers.whole(numbers(link).residual(state.settings.limit()));
    }

    /** Rate in bit/s that {@code flows} new elastic flows together would get (Choreo, section 3.2). */
    public long share(int link, int flows) {
        return Numbers.whole(numbers(link).share(flows, state.settings.limit()));
    }

    /** (L + extra) / C; empty where L is unknown. */
    public OptionalDouble utilizationWith(int link, long extra) {
        double utilization = numbers(link).utilizationWith(extra);
        return Double.isNaN(utilization) ? OptionalDouble.empty() : OptionalDouble.of(utilization);
    }

    /** limit C - R, in bit/s; empty where no rate can be promised. */
    public OptionalLong unreserved(int link) {
        return state.fabric.promises()
                ? OptionalLong.of(Numbers.whole(numbers(link).unreserved(state.settings.reservable())))
                : OptionalLong.empty();
    }

    /** Time in ns at which the link became hot, if it was hot in every window since; empty if it is not hot. */
    public OptionalLong hotSince(int link) {
        Long since = state.gauges[link].hotSince;
        boolean known = !Double.isNaN(state.measured(link, now));
        return since == null || !known ? OptionalLong.empty() : OptionalLong.of(since);
    }
}
