package dev.leeward.hdfs.ledger;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Turns samples into estimates: the filter, the meaning of a missing report, and the sums of links without a counter.
 *
 * <p>The filter is Sinbad's (section 6.2), with two additions. A report's weight depends on the time since the last
 * one. A missing report makes a link unknown; {@code missing: sinbad} selects the paper's rule instead, by which it
 * counts as a report of a full link. Such reports are never stored: they count on reading, so a late report replaces
 * them.
 */
final class Estimates {

    /** Sum of the links below a link. */
    private static final class Below {
        double load;
        long latest;
        long from;
        long until = -1;
        boolean seen;
        /** Time of the next change without a report. */
        long due = Long.MAX_VALUE;

        void limitWindow(long partFrom, long partUntil) {
            from = until < 0 ? partFrom : Math.max(from, partFrom);
            until = until < 0 ? partUntil : Math.min(until, partUntil);
        }
    }

    private final State state;
    private final LedgerSettings settings;
    /** For each link, the numbers of the sums that it is a part of. */
    private final List<List<Integer>> sumsOf = new ArrayList<>();
    /** For each sum, the end of the first window of samples that are not yet in it, or null. */
    private final Long[] touched;
    private final Long[] due;

    Estimates(State state) {
        this.state = state;
        this.settings = state.settings;
        for (int link = 0; link < state.gauges.length; link++) {
            sumsOf.add(new ArrayList<>());
        }
        List<Fabric.Sum> sums = state.fabric.sums();
        for (int sum = 0; sum < sums.size(); sum++) {
            for (int link : sums.get(sum).of()) {
                sumsOf.get(link).add(sum);
            }
        }
        touched = new Long[sums.size()];
        due = new Long[sums.size()];
    }

    void report(List<Sample> samples, long now) {
        List<Sample> ordered = new ArrayList<>(samples);
        ordered.sort(Comparator.comparingLong(Sample::until));
        for (Sample sample : ordered) {
            if (isNews(sample, now)) {
                touch(sample, now);
                update(sample);
            }
        }
        for (int sum = 0; sum < touched.length; sum++) {
            if (touched[sum] != null) {
                derive(sum, now);
            }
        }
    }

    /** True if a report of this sample changes an estimate. */
    private boolean isNews(Sample sample, long now) {
        if (sample.resource() < 0 || sample.resource() >= state.gauges.length) {
            return false;
        }
        Gauge gauge = state.gauges[sample.resource()];
        // A clock that is ahead must not make every later window stale.
        boolean ahead = sample.until() > Times.plus(now, settings.intervalNs());
        boolean negative = sample.load() < 0 || (sample.guaranteed() != null && sample.guaranteed() < 0);
        if (sample.from() < 0 || sample.from() >= sample.until() || ahead || negative) {
            return false;
        }
        boolean stale = gauge.source != Gauge.Source.DERIVED && sample.until() <= gauge.until;
        return gauge.source != Gauge.Source.DOWN && !stale;
    }

    /** If a sample begins a new window of a sum, the previous window is complete and is summed first. */
    private void touch(Sample sample, long now) {
        for (int sum : sumsOf.get(sample.resource())) {
            if (touched[sum] != null && touched[sum] <= sample.from()) {
                derive(sum, now);
            }
            if (touched[sum] == null) {
                touched[sum] = sample.until();
            }
        }
    }

    /** Moves the estimate of one link by a sample newer than the last. */
    private void update(Sample sample) {
        Gauge gauge = state.gauges[sample.resource()];
        boolean first = gauge.source != Gauge.Source.DIRECT;
        if (gauge.source == Gauge.Source.DERIVED || (first && state.isStrict())) {
            // The link's own counter starts here; earlier silence has no effect.
            gauge.until = sample.from();
        } else if (!state.isStrict()) {
            countGapAsFull(gauge, sample.from());
        }
        double weight = first && settings.initial() == LedgerSettings.Initial.FIRST
                ? 1.0
                : settings.weight(Times.since(sample.until(), gauge.until));
        gauge.measured = (1.0 - weight) * gauge.measured + weight * sample.load();
        gauge.until = sample.until();
        gauge.source = Gauge.Source.DIRECT;
        updateGuaranteed(gauge, sample, weight);
        windowPassed(gauge, sample.from(), sample.until(), weight, sample.load());
    }

    private void countGapAsFull(Gauge gauge, long from) {
        long gap = Times.since(from, gauge.until);
        MissedReports missed = settings.missed(gauge.until, Math.round((double) gap / settings.intervalNs()));
        if (missed != null) {
            // The missing windows fill the gap exactly, so their length may differ from the interval.
            long length = gap / missed.count();
            missed = new MissedReports(missed.since(), missed.count(), length, missed.alpha());
            gauge.measured = missed.afterFull(gauge.measured, gauge.capacity);
            gauge.pending.miss(missed);
            gauge.pendingGuaranteed.miss(missed);
            gauge.until = from;
        }
    }

    private void updateGuaranteed(Gauge gauge, Sample sample, double weight) {
        if (sample.guaranteed() == null) {
            gauge.measuredGuaranteed = Double.NaN;
            return;
        }
        double load = Math.min(sample.guaranteed(), sample.load());
        boolean fresh = Double.isNaN(gauge.measuredGuaranteed);
        if (fresh && settings.initial() == LedgerSettings.Initial.FIRST) {
            gauge.measuredGuaranteed = load;
        } else {
            gauge.measuredGuaranteed =
                    (1.0 - weight) * (fresh ? 0.0 : gauge.measuredGuaranteed) + weight * load;
        }
    }

    /** Effect of every new window on pending rates, for own estimates and sums. */
    private void windowPassed(Gauge gauge, long from, long until, double weight, long latest) {
        gauge.pending.fade(from, until, weight);
        gauge.pendingGuaranteed.fade(from, until, weight);
        gauge.dropUntilWindow(item -> item.committed() < until);
        boolean hot = latest > settings.hot() * gauge.capacity;
        // A gap of more than half an interval ends the series: nothing measured the gap.
        boolean joins = from <= Times.plus(gauge.hotUntil, settings.intervalNs() / 2);
        Long since = joins ? gauge.hotSince : null;
        gauge.hotSince = !hot ? null : since != null ? since : Long.valueOf(from);
        gauge.hotUntil = until;
        gauge.from = from;
        gauge.latest = latest;
    }

    // ---- sums -----------------------------------------------------------------------------------------------

    void deriveAll(long now) {
        for (int sum = 0; sum < touched.length; sum++) {
            derive(sum, now);
        }
    }

    /** Updates a sum, and the time at which it changes next without a report. */
    void derive(int number, long now) {
        touched[number] = null;
        Fabric.Sum sum = state.fabric.sums().get(number);
        Gauge gauge = state.gauges[sum.resource()];
        Long next = null;
        if (gauge.source != Gauge.Source.DIRECT) {
            Below below = sumBelow(sum, now);
            next = below.due == Long.MAX_VALUE ? null : Long.valueOf(below.due);
            apply(gauge, below);
        }
        if (due[number] != null) {
            state.agenda.remove(new State.Due(due[number], State.Kind.SUM, number));
        }
        due[number] = next;
        if (next != null) {
            state.agenda.add(new State.Due(next, State.Kind.SUM, number));
        }
    }

    private void apply(Gauge gauge, Below below) {
        if (!below.seen) {
            gauge.source = Gauge.Source.NONE;
            gauge.measured = 0.0;
            return;
        }
        gauge.source = Gauge.Source.DERIVED;
        gauge.measured = Math.min(below.load, gauge.capacity);
        if (below.until <= gauge.until) {
            return;
        }
        long before = gauge.until;
        gauge.until = below.until;
        long from = below.from < below.until ? below.from : before;
        double weight;
        if (before == 0 && state.isStrict()) {
            // The first window changes the sum by the whole change of the parts.
            weight = settings.initial() == LedgerSettings.Initial.FIRST
                    ? 1.0
                    : settings.weight(Times.since(below.until, from));
        } else {
            weight = settings.weight(Times.since(below.until, before));
        }
        windowPassed(gauge, from, below.until, weight, below.latest);
    }

    private Below sumBelow(Fabric.Sum sum, long now) {
        Below below = new Below();
        for (int link : sum.of()) {
            Gauge gauge = state.gauges[link];
            if (gauge.source == Gauge.Source.DOWN) {
                below.seen = true;
                continue;
            }
            double most = Math.max(gauge.capacity, gauge.full);
            below.due = Math.min(below.due, changesAt(gauge, now));
            double measured = state.measured(link, now);
            if (Double.isNaN(measured)) {
                // A silent host may be busy.
                below.load += most;
                continue;
            }
            MissedReports missed = state.missed(gauge, now);
            below.load += missed == null ? measured : missed.afterFull(gauge.measured, most);
            below.latest += gauge.latest;
            below.limitWindow(
                    missed == null ? gauge.from : Windows.lastFrom(missed),
                    missed == null ? gauge.until : Windows.lastUntil(missed));
            below.seen |= gauge.source == Gauge.Source.DIRECT || !state.isStrict();
        }
        return below;
    }

    /** Time at which the estimate of a link changes next without a report. */
    private long changesAt(Gauge gauge, long now) {
        if (gauge.source == Gauge.Source.DERIVED || (gauge.source == Gauge.Source.NONE && state.isStrict())) {
            return Long.MAX_VALUE;
        }
        if (state.isStrict()) {
            long knownUntil = Times.plus(gauge.until, settings.knownForNs());
            return now <= knownUntil ? Times.plus(knownUntil, 1) : Long.MAX_VALUE;
        }
        MissedReports missed = state.missed(gauge, now);
        long count = missed == null ? 0 : missed.count();
        long next = Windows.length(settings.intervalNs(), count + 1);
        return count < MissedReports.MOST
                ? Times.plus(Times.plus(gauge.until, settings.graceNs()), next)
                : Long.MAX_VALUE;
    }

    // ---- health and capacity --------------------------------------------------------------------------------

    void setCapacity(int link, long capacity, long now) {
        state.gauges[link].capacity = Math.max(0, capacity);
        deriveAround(link, now);
    }

    void setHealth(int host, boolean up, long now) {
        for (int link : state.fabric.hosts().get(host)) {
            Gauge gauge = state.gauges[link];
            if (up && gauge.source == Gauge.Source.DOWN) {
                gauge.source = Gauge.Source.NONE;
                gauge.until = now;
            } else if (!up) {
                gauge.source = Gauge.Source.DOWN;
                gauge.measured = 0.0;
                gauge.pending.forget(now);
                gauge.pendingGuaranteed.forget(now);
                gauge.measuredGuaranteed = Double.NaN;
                gauge.hotSince = null;
            }
        }
        for (int link : state.fabric.hosts().get(host)) {
            deriveAround(link, now);
        }
    }

    private void deriveAround(int link, long now) {
        sumsOf.get(link).forEach(sum -> derive(sum, now));
        for (int sum = 0; sum < state.fabric.sums().size(); sum++) {
            if (state.fabric.sums().get(sum).resource() == link) {
                derive(sum, now);
            }
        }
    }
}
