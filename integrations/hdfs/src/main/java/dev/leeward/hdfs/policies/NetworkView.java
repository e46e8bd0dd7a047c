package dev.leeward.hdfs.policies;

import dev.leeward.hdfs.placements.LocalLoads;
import dev.leeward.hdfs.snapshot.Snapshot;
import dev.leeward.hdfs.topology.Network;
import dev.leeward.hdfs.topology.Sender;
import dev.leeward.hdfs.topology.Storage;
import dev.leeward.hdfs.topology.Topology;
import org.apache.hadoop.net.Node;

/**
 * All that policies read, as it belongs together.
 *
 * @param topology the DataNodes
 * @param network their links and disks
 * @param storage their storage
 * @param classes classes of uplinks
 * @param equalRates order of racks and hosts of the same rate
 * @param snapshot the last snapshot, or null
 * @param widestIngress capacity in bit/s of the widest link into a host; unlimited without any
 * @param closed for each host, whether it takes no copies: the controller knows that it is down or draining
 * @param rackReported for each rack, whether the link into any host of it was ever reported
 * @param expected for each link C - M, or what the setting for hysteresis makes of it, without own placements; NaN if
 *     the load is unknown
 * @param loads own placements that the snapshot does not count
 */
public record NetworkView(
        Topology topology,
        Network network,
        Storage storage,
        UplinkClasses classes,
        EqualRates equalRates,
        Snapshot snapshot,
        double widestIngress,
        boolean[] closed,
        boolean[] rackReported,
        double[] expected,
        LocalLoads loads) {

    /** Stands for no limit. */
    static final double UNLIMITED = 1e18;

    /** The view of a snapshot, or of none. All that follows from the other parts is computed here. */
    public static NetworkView of(
            Topology topology, Network network, Storage storage, UplinkClasses classes, Snapshot snapshot,
            double[] expected, LocalLoads loads) {
        return new NetworkView(
                topology, network, storage, classes, EqualRates.of(topology, storage, classes), snapshot,
                widestIngress(network, snapshot), closed(network, snapshot), rackReported(network, snapshot), expected,
                loads);
    }

    private static boolean[] closed(Network network, Snapshot snapshot) {
        boolean[] closed = new boolean[network.topology().hostCount()];
        for (int host = 0; snapshot != null && host < closed.length; host++) {
            closed[host] = network.isKnown(host) && !snapshot.isOpen(network.hostRow(host));
        }
        return closed;
    }

    private static boolean[] rackReported(Network network, Snapshot snapshot) {
        Topology topology = network.topology();
        boolean[] reported = new boolean[topology.rackCount()];
        for (int host = 0; snapshot != null && host < topology.hostCount(); host++) {
            int link = network.ingress(host);
            reported[topology.rackOf(host)] |= link >= 0 && snapshot.until()[link] != Snapshot.UNKNOWN;
        }
        return reported;
    }

    private static double widestIngress(Network network, Snapshot snapshot) {
        double widest = 0.0;
        for (int host = 0; snapshot != null && host < network.topology().hostCount(); host++) {
            int link = network.ingress(host);
            widest = link < 0 ? widest : Math.max(widest, snapshot.capacities()[link]);
        }
        return widest > 0.0 ? widest : UNLIMITED;
    }

    /**
     * True if the loads of links count: there is a snapshot, own placements are on its links, and it is young enough.
     *
     * @param nano local monotonic time in ns
     * @param maxAgeMs largest age in ms
     */
    public boolean isFresh(long nano, long maxAgeMs) {
        return snapshot != null && loads.numbering().equals(snapshot.numbering())
                && (nano - snapshot.advancedNano()) / 1_000_000 <= maxAgeMs;
    }

    /** As {@link #isFresh}, and the snapshot is that of this cluster: it has at least half of the DataNodes. */
    public boolean isCurrent(long nano, long maxAgeMs) {
        return isFresh(nano, maxAgeMs) && !network.isOfOtherCluster();
    }

    /** A node of HDFS as a sender; null stands for an unknown one. */
    public Sender sender(Node node) {
        return network.sender(node, snapshot);
    }

    /**
     * Capacity in bit/s that Sinbad expects to remain on a link (pseudocode 2, line 30); NaN if its load is unknown,
     * and unlimited without a link.
     */
    double expectedCapacity(int link) {
        if (link < 0) {
            return UNLIMITED;
        }
        double expected = this.expected[link];
        return Double.isNaN(expected) ? Double.NaN : Math.max(0.0, expected - loads.pressure(link));
    }

    /**
     * Rate in bit/s that a new block gets on a link: what measured and pending traffic leaves, or its fair share beside
     * the pending blocks if that is more (Choreo, section 3.2). The snapshot has the rate of pending blocks and not
     * their number, so each counts as one of the new block's highest rate.
     *
     * <p>What is left alone would be 0 as soon as a block can fill the link. All links with a pending block would be
     * equal, and one that other traffic fills to 70 % would be better than a link with one block on it.
     *
     * @param blockRate highest rate of the block in bit/s
     * @return NaN if the load of the link is unknown; unlimited without a link
     */
    double share(int link, double blockRate) {
        if (link < 0) {
            return UNLIMITED;
        }
        double unused = snapshot.unused()[link];
        double pending = snapshot.pending()[link] + loads.rate(link);
        double left = unused - pending;
        if (pending == 0.0 || left >= blockRate) {
            // The fair share is less. Most links end here, without the division.
            return left;
        }
        // NaN stays NaN.
        double rate = Math.max(1.0, Math.min(blockRate, unused));
        return Math.max(left, unused * rate / (pending + rate));
    }

    /** Rate that a new block gets on a link of the path; a link of unknown load does not limit it. */
    double shareOrUnlimited(int link, double blockRate) {
        double share = share(link, blockRate);
        return Double.isNaN(share) ? UNLIMITED : share;
    }

    /** Capacity of a link in bit/s, unlimited without one. */
    double capacity(int link) {
        return link < 0 ? UNLIMITED : snapshot.capacities()[link];
    }
}
