package dev.leeward.hdfs.policies;

import dev.leeward.hdfs.topology.Storage;
import dev.leeward.hdfs.topology.Topology;

/**
 * Order of racks and hosts whose links have the same rate left: the emptier first, then racks with more uplink for
 * their storage. It changes with heartbeats and not with each block, so decisions read it from here.
 */
public final class EqualRates {

    /** Step of fill, as a share of the average. */
    private static final double FILL_STEP = 0.05;
    /** Largest difference from the average fill, in steps. */
    private static final long MOST_FILL_STEPS = 1000;

    /** Number of ranks: all ranks are from 0 to below it. */
    static final long RANKS = (2 * MOST_FILL_STEPS + 1) * (UplinkClasses.HIGH + 1);

    private final long[] racks;
    private final long[] hosts;

    private EqualRates(long[] racks, long[] hosts) {
        this.racks = racks;
        this.hosts = hosts;
    }

    /** The order of all racks and hosts. */
    public static EqualRates of(Topology topology, Storage storage, UplinkClasses classes) {
        long[] racks = new long[topology.rackCount()];
        for (int rack = 0; rack < racks.length; rack++) {
            racks[rack] = rank(storage.rackFill(rack), storage.meanFill(), classes.of(rack));
        }
        long[] hosts = new long[topology.hostCount()];
        for (int host = 0; host < hosts.length; host++) {
            hosts[host] = rank(storage.hostFill(host), storage.meanFill(), UplinkClasses.MEDIUM);
        }
        return new EqualRates(racks, hosts);
    }

    private static long rank(double fill, double mean, int uplink) {
        double steps = (fill - mean) / Math.max(mean * FILL_STEP, Double.MIN_NORMAL);
        long limited = (long) Math.max(-MOST_FILL_STEPS, Math.min(MOST_FILL_STEPS, steps));
        return (MOST_FILL_STEPS - limited) * (UplinkClasses.HIGH + 1) + uplink;
    }

    /** Rank of a rack; higher is better. */
    long ofRack(int rack) {
        return racks[rack];
    }

    /** Rank of a host; higher is better. */
    long ofHost(int host) {
        return hosts[host];
    }
}
