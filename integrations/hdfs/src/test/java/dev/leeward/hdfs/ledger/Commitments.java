package dev.leeward.hdfs.ledger;

import dev.leeward.hdfs.ledger.State.Stage;
import dev.leeward.hdfs.ledger.State.Stored;

/** Commits, starts and ends of entries. */
final class Commitments {

    private final State state;

    Commitments(State state) {
        this.state = state;
    }

    /** Rejects an entry that the ledger cannot count. */
    void check(Entry entry) {
        for (Entry.Hop hop : entry.hops()) {
            if (hop.resource() < 0 || hop.resource() >= state.gauges.length) {
                throw new IllegalArgumentException("link " + hop.resource() + " is not in the fabric");
            }
            if (!Double.isFinite(hop.work()) || hop.work() < 0.0) {
                throw new IllegalArgumentException(
                        "work " + hop.work() + " on link " + hop.resource() + ": must be finite and not negative");
            }
            if (entry.isPromised() && !entry.relieves() && !state.fabric.promises()) {
                throw new IllegalArgumentException(
                        "link " + hop.resource() + " is first in, first out: no rate can be reserved on it");
            }
        }
    }

    long insert(Entry entry, long now) {
        long id = state.nextEntry++;
        Rates rates = Rates.of(
                entry,
                state.settings.holdPeak(),
                (link, flows) -> state.numbers(link, now).share(flows, state.settings.limit()));
        Stored stored = new Stored(id, entry, rates);
        for (Entry.Hop hop : entry.hops()) {
            Gauge gauge = state.gauges[hop.resource()];
            Share share = Share.of(entry, rates, hop.work());
            gauge.count(share, 1);
            if (stored.stage == Stage.STARTED) {
                start(stored, hop, stored.started, 1, now);
            } else {
                gauge.pending(entry.isPromised()).hold(share.rate());
            }
            recordPressure(id, entry, hop, share, now);
        }
        Long deadline = null;
        if (stored.stage == Stage.STARTED) {
            deadline = stored.transferEnd(stored.started);
        } else if (entry.fade() instanceof Entry.Fade.After after) {
            deadline = Times.plus(now, after.ttlNs());
        }
        state.setDeadline(stored, deadline);
        state.own(stored);
        return id;
    }

    void remove(long id, long now) {
        Stored stored = state.entries.get(id);
        if (stored == null) {
            return;
        }
        state.setDeadline(stored, null);
        state.disown(stored);
        for (Entry.Hop hop : stored.entry.hops()) {
            Gauge gauge = state.gauges[hop.resource()];
            gauge.count(Share.of(stored.entry, stored.rates, hop.work()), -1);
            retire(stored, hop, now);
            gauge.dropUntilWindow(item -> item.entry() == id);
        }
    }

    /** Marks work as started at {@code at}: from then on it fades into telemetry. */
    void markStarted(long id, long at) {
        Stored stored = state.entries.get(id);
        if (stored == null || stored.stage != Stage.HELD || !stored.entry.fades()
                || (stored.deadline != null && at >= stored.deadline)) {
            return;
        }
        for (Entry.Hop hop : stored.entry.hops()) {
            retire(stored, hop, at);
            start(stored, hop, at, 1, at);
        }
        stored.stage = Stage.STARTED;
        stored.started = at;
        state.setDeadline(stored, stored.transferEnd(at));
    }

    /** Ends an entry at its deadline: its work never started, or its transfer is over. */
    void expire(long id, long at) {
        Stored stored = state.entries.get(id);
        if (stored == null) {
            return;
        }
        if (stored.stage == Stage.STARTED) {
            stored.entry.hops().forEach(hop -> retire(stored, hop, at));
            stored.stage = Stage.GONE;
            stored.deadline = null;
        } else {
            remove(id, at);
        }
    }

    /**
     * Starts (1) or ends (-1) an entry's rate at {@code at}. Reports that count as missing by {@code now} no longer
     * affect the entry: the estimate already contains them.
     */
    private void start(Stored stored, Entry.Hop hop, long at, int times, long now) {
        Gauge gauge = state.gauges[hop.resource()];
        MissedReports missed = state.missed(gauge, now);
        long from = missed == null ? at : Math.max(at, Windows.lastUntil(missed));
        Pending pending = gauge.pending(stored.entry.isPromised());
        pending.addLasting(stored.rates.lastingPart(hop.work()) * times);
        pending.start(from, stored.rates.fadingPart(hop.work()) * times);
    }

    /** Ends the contribution of an entry's rate. */
    private void retire(Stored stored, Entry.Hop hop, long at) {
        switch (stored.stage) {
            case HELD -> {
                // Removal of the pressure also removes a rate that leaves with the next window.
                if (!(stored.entry.fade() instanceof Entry.Fade.AtNextWindow)) {
                    long rate = Share.of(stored.entry, stored.rates, hop.work()).rate();
                    state.gauges[hop.resource()].pending(stored.entry.isPromised()).cancelHold(rate);
                }
            }
            // Work that ends before its start never shows.
            case STARTED -> start(stored, hop, Math.max(at, stored.started), -1, at);
            case GONE -> { }
        }
    }

    /** Records the pressure, and a rate that fades at the next window, for removal by that window's report. */
    private void recordPressure(long id, Entry entry, Entry.Hop hop, Share share, long now) {
        long rate = entry.fade() instanceof Entry.Fade.AtNextWindow ? share.rate() : 0;
        if (share.pressing() == 0.0 && rate == 0) {
            return;
        }
        Gauge gauge = state.gauges[hop.resource()];
        long awaited = state.nextWindow(hop.resource(), now);
        long pressure = share.pressure(Times.since(awaited, now));
        gauge.pressure += pressure;
        gauge.untilWindow.addLast(
                new Gauge.UntilWindow(id, now, awaited, pressure, rate, entry.isPromised()));
        if (!state.isStrict()) {
            long at = Times.plus(awaited, state.settings.graceNs());
            state.agenda.add(new State.Due(at, State.Kind.WINDOW, hop.resource()));
        }
    }
}
