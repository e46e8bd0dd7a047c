package dev.leeward.hdfs.ledger;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/** State of a ledger. {@link Estimates} changes it by telemetry, {@link Commitments} by placed work. */
final class State {

    /** Kinds of scheduled changes, in the order in which those of one time are applied. */
    enum Kind {
        /** An entry stops being pending. */
        ENTRY,
        /** Under {@code missing: sinbad}, a missing report removes the pressure and rates that waited for it. */
        WINDOW,
        /** A sum changes because a report is missing. */
        SUM
    }

    /** A scheduled change of an entry, a link, or a sum. */
    record Due(long at, Kind kind, long id) implements Comparable<Due> {
        @Override
        public int compareTo(Due other) {
            int order = Long.compare(at, other.at);
            order = order != 0 ? order : kind.compareTo(other.kind);
            return order != 0 ? order : Long.compare(id, other.id);
        }
    }

    /** Progress of an entry towards telemetry. */
    enum Stage {
        /** Counts at its full rate until it starts, is released, or the next window comes. */
        HELD,
        /** Started, and fading into telemetry. */
        STARTED,
        /** The rate no longer counts; flows and reservations stay until release. */
        GONE
    }

    /** An entry, with the values derived from it at commit. */
    static final class Stored {
        final long id;
        final Entry entry;
        final Rates rates;
        Stage stage;
        long started;
        Long deadline;

        Stored(long id, Entry entry, Rates rates) {
            this.id = id;
            this.entry = entry;
            this.rates = rates;
            this.stage = entry.fadesFrom() == null ? Stage.HELD : Stage.STARTED;
            this.started = entry.fadesFrom() == null ? 0 : entry.fadesFrom();
        }

        /** End of a transfer by its committed rate, after which it stops being pending; otherwise null. */
        Long transferEnd(long at) {
            if (entry.demand() instanceof Entry.Demand.Elastic elastic && rates.face() > 0.0) {
                double ns = elastic.bytes() / rates.face() * 1e9;
                return Times.plus(at, ns >= Long.MAX_VALUE ? Long.MAX_VALUE : Math.round(ns));
            }
            return null;
        }
    }

    final Fabric fabric;
    final LedgerSettings settings;
    final Gauge[] gauges;
    final Map<Long, Stored> entries = new HashMap<>();
    final Map<Entry.Owner, List<Long>> owners = new HashMap<>();
    final TreeSet<Due> agenda = new TreeSet<>();
    long nextEntry;

    State(Fabric fabric, LedgerSettings settings) {
        this.fabric = fabric;
        this.settings = settings;
        gauges = new Gauge[fabric.capacities().size()];
        for (int link = 0; link < gauges.length; link++) {
            gauges[link] = new Gauge(fabric.capacities().get(link));
        }
    }

    void own(Stored stored) {
        entries.put(stored.id, stored);
        owners.computeIfAbsent(stored.entry.owner(), owner -> new ArrayList<>()).add(stored.id);
    }

    void disown(Stored stored) {
        entries.remove(stored.id);
        owners.computeIfPresent(stored.entry.owner(), (owner, ids) -> {
            ids.remove(stored.id);
            return ids.isEmpty() ? null : ids;
        });
    }

    void setDeadline(Stored stored, Long at) {
        if (stored.deadline != null) {
            agenda.remove(new Due(stored.deadline, Kind.ENTRY, stored.id));
        }
        stored.deadline = at;
        if (at != null) {
            agenda.add(new Due(at, Kind.ENTRY, stored.id));
        }
    }

    // ---- reading --------------------------------------------------------------------------------------------

    boolean isStrict() {
        return settings.missing() == LedgerSettings.Missing.STRICT;
    }

    /** Missing reports that count as full ones by {@code now}, or null. */
    MissedReports missed(Gauge gauge, long now) {
        boolean counts = gauge.source == Gauge.Source.NONE || gauge.source == Gauge.Source.DIRECT;
        return isStrict() || !counts ? null : settings.missedAt(gauge.until, now);
    }

    /** M of a link; NaN where it is unknown. */
    double measured(int link, long now) {
        Gauge gauge = gauges[link];
        if (gauge.source == Gauge.Source.DOWN || gauge.source == Gauge.Source.DERIVED) {
            return gauge.measured;
        }
        if (isStrict()) {
            boolean known = gauge.source == Gauge.Source.DIRECT
                    && now <= Times.plus(gauge.until, settings.knownForNs());
            return known ? gauge.measured : Double.NaN;
        }
        MissedReports missed = missed(gauge, now);
        return missed == null ? gauge.measured : missed.afterFull(gauge.measured, gauge.capacity);
    }

    /** End of the window of the next report, which removes pressure. */
    long nextWindow(int link, long now) {
        return nextWindow(gauges[link].until, settings.intervalNs(), now);
    }

    static long nextWindow(long until, long interval, long now) {
        return Times.plus(until, Windows.length(interval, Times.since(now, until) / interval + 1));
    }

    /** All sums of a link. */
    LinkNumbers numbers(int link, long now) {
        Gauge gauge = gauges[link];
        MissedReports missed = missed(gauge, now);
        LinkNumbers numbers = new LinkNumbers();
        numbers.capacity = gauge.capacity;
        numbers.measured = measured(link, now);
        numbers.measuredGuaranteed = gauge.measuredGuaranteed;
        numbers.held = gauge.pending.held();
        numbers.heldGuaranteed = gauge.pendingGuaranteed.held();
        numbers.settling = missed == null ? gauge.pending.settling() : gauge.pending.settlingAfter(missed);
        numbers.settlingGuaranteed =
                missed == null ? gauge.pendingGuaranteed.settling() : gauge.pendingGuaranteed.settlingAfter(missed);
        numbers.flows = gauge.flows;
        numbers.inelastic = gauge.inelastic;
        numbers.reservedMean = gauge.reservedMean;
        numbers.reservedRate = gauge.reservedRate;
        return numbers;
    }
}
