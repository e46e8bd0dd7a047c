package dev.leeward.hdfs.placements;

import dev.leeward.hdfs.snapshot.Snapshot;
import java.util.Iterator;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;

/**
 * The placements of this process that the snapshot does not show yet. Handlers of the NameNode add them; the daemon
 * drops them when a snapshot comes. Their number is bounded: beyond it the oldest leave early, and further ones do not
 * count while the daemon is late. Metrics have the number of both.
 */
public final class Placements {

    /** Largest number of placements that count at once. */
    static final int MOST = 65_536;
    /** Largest number that wait for the daemon, which may be late. */
    static final int MOST_WAITING = 2 * MOST;
    /** Time after which a placement no longer counts in any case, in ns: its report was lost. */
    private static final long LONGEST_NS = 30_000_000_000L;

    private final String client;
    private final ConcurrentLinkedQueue<Placement> waiting = new ConcurrentLinkedQueue<>();
    private final AtomicInteger size = new AtomicInteger();
    private final LongAdder early = new LongAdder();
    private volatile LocalLoads loads = new LocalLoads("", 0);

    /**
     * No placements.
     *
     * @param client name of this client at the controller
     */
    public Placements(String client) {
        this.client = client;
    }

    /** Loads on the links of the last snapshot. */
    public LocalLoads loads() {
        return loads;
    }

    /** Number of placements that count. */
    public int size() {
        return size.get();
    }

    /** Number of placements that left early, or never counted, because too many waited. */
    public long earlyCount() {
        return early.sum();
    }

    /** Counts a placement from now on. */
    public void add(Placement placement) {
        if (size.get() >= MOST_WAITING) {
            early.increment();
            return;
        }
        placement.count();
        waiting.add(placement);
        size.incrementAndGet();
    }

    /** Drops what a snapshot shows. Only the daemon calls this. */
    public void onSnapshot(Snapshot snapshot) {
        if (!loads.numbering().equals(snapshot.numbering())) {
            loads = new LocalLoads(snapshot.numbering(), snapshot.linkCount());
        }
        long counted = snapshot.counted(client);
        int excess = size.get() - MOST;
        for (Iterator<Placement> items = waiting.iterator(); items.hasNext(); ) {
            Placement placement = items.next();
            boolean tooMany = excess-- > 0;
            // A time far ahead is by a clock that was set back since.
            boolean late = tooMany || Math.abs(snapshot.timeNs() - placement.atNs()) > LONGEST_NS;
            boolean isCounted = placement.sequence() <= counted;
            if (placement.drop(loads, snapshot.until(), snapshot.timeNs(), isCounted, late)) {
                items.remove();
                size.decrementAndGet();
                if (tooMany) {
                    early.increment();
                }
            }
        }
    }
}
