package dev.leeward.hdfs.ledger;

import java.util.List;

/**
 * The known load of every link of a fabric. The caller gives the time, which must not run backwards. Methods first
 * advance the ledger to it. One thread at a time may use a ledger.
 */
public final class Ledger {

    private final State state;
    private final Estimates estimates;
    private final Commitments commitments;

    /** An empty ledger. */
    public Ledger(Fabric fabric, LedgerSettings settings) {
        state = new State(fabric, settings);
        estimates = new Estimates(state);
        commitments = new Commitments(state);
        estimates.deriveAll(0);
    }

    /** Accepts samples. Their windows count, not the order of arrival; invalid and stale ones change nothing. */
    public void report(List<Sample> samples, long now) {
        advance(now);
        estimates.report(samples, now);
    }

    /**
     * Releases entries and then adds others, all or nothing.
     *
     * @return the numbers of the added entries, in order
     * @throws IllegalArgumentException if an entry to release does not exist, or one to add is invalid
     */
    public List<Long> commit(List<Entry> add, List<Long> release, long now) {
        advance(now);
        for (long id : release) {
            if (!state.entries.containsKey(id)) {
                throw new IllegalArgumentException("entry " + id + " is not in the ledger");
            }
        }
        add.forEach(commitments::check);
        release.forEach(id -> commitments.remove(id, now));
        return add.stream().map(entry -> commitments.insert(entry, now)).toList();
    }

    /** Marks the work of an entry as started at {@code at}. Nothing changes if it started before, or does not fade. */
    public void markStarted(long id, long at, long now) {
        advance(now);
        commitments.markStarted(id, at);
    }

    /** Sets the capacity of a link, in bit/s; a negative one becomes 0. */
    public void setCapacity(int link, long capacity, long now) {
        advance(now);
        estimates.setCapacity(link, capacity, now);
    }

    /** Marks a host as down (it carries nothing), or as up again (unknown until it reports). */
    public void setHealth(int host, boolean up, long now) {
        advance(now);
        estimates.setHealth(host, up, now);
    }

    /** Advances the time. The result does not depend on the number of steps. */
    public void advance(long now) {
        while (!state.agenda.isEmpty() && state.agenda.first().at() <= now) {
            State.Due due = state.agenda.pollFirst();
            switch (due.kind()) {
                case ENTRY -> commitments.expire(due.id(), due.at());
                case WINDOW -> state.gauges[(int) due.id()].dropUntilWindow(
                        item -> Times.plus(item.awaited(), state.settings.graceNs()) <= due.at());
                case SUM -> estimates.derive((int) due.id(), due.at());
            }
        }
    }

    /** The numbers of the ledger as far as it has advanced. A change of the ledger makes the view invalid. */
    public View view(long now) {
        return new View(state, now);
    }
}
