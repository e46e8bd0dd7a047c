package dev.leeward.hdfs.placements;

import java.util.concurrent.atomic.AtomicLongArray;

/** Loads that own placements add to the links of a snapshot. Threads read and add without a lock. */
public final class LocalLoads {

    private final String numbering;
    private final AtomicLongArray pressure;
    private final AtomicLongArray rate;
    private final AtomicLongArray flows;

    /** No loads on the links of a {@linkplain dev.leeward.hdfs.snapshot.Snapshot#numbering numbering}. */
    public LocalLoads(String numbering, int links) {
        this.numbering = numbering;
        pressure = new AtomicLongArray(links);
        rate = new AtomicLongArray(links);
        flows = new AtomicLongArray(links);
    }

    /** Numbering of the snapshots whose rows number the links. */
    public String numbering() {
        return numbering;
    }

    /** Placement pressure on a link in bit/s (Sinbad, pseudocode 2): blocks since its last window. */
    public long pressure(int link) {
        return pressure.get(link);
    }

    /** Rate in bit/s of blocks on a link that the snapshot does not count. */
    public long rate(int link) {
        return rate.get(link);
    }

    /** Number of blocks on a link that the snapshot does not count. */
    public long flows(int link) {
        return flows.get(link);
    }

    void addPressure(int link, long bps) {
        pressure.addAndGet(link, bps);
    }

    void addRate(int link, long bps, long count) {
        rate.addAndGet(link, bps);
        flows.addAndGet(link, count);
    }
}
