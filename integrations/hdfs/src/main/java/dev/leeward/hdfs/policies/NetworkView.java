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
        double[] expected,
        LocalLoads loads) {

    /** Stands for no limit. */
    static final double UNLIMITED = 1e18;

    /** Capacity in bit/s of the widest link into a host; unlimited without any. */
    public static double widestIngress(Network network, Snapshot snapshot) {
        double widest = 0.0;
        for (int host = 0; snapshot != null && host < network.topology().hostCount(); host++) {
            int link = network.ingress(host);
            widest = link < 0 ? widest : Math.max(widest, snapshot.capacities()[link]);
        }
        return widest > 0.0 ? widest : UNLIMITED;
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

    /** Rate in bit/s left for a block on a link; NaN if its load is unknown, unlimited without a link. */
    double left(int link) {
        if (link < 0) {
            return UNLIMITED;
        }
        if (snapshot.measured()[link] == Snapshot.UNKNOWN) {
            return Double.NaN;
        }
        return Math.max(0.0, snapshot.residual()[link] - loads.rate(link));
    }

    /** Rate left on a link of the path; a link of unknown load does not limit it. */
    double leftOrUnlimited(int link) {
        double left = left(link);
        return Double.isNaN(left) ? UNLIMITED : left;
    }

    /** True if a link was ever reported. */
    boolean wasReported(int link) {
        return link >= 0 && snapshot.until()[link] != Snapshot.UNKNOWN;
    }

    /** Capacity of a link in bit/s, unlimited without one. */
    double capacity(int link) {
        return link < 0 ? UNLIMITED : snapshot.capacities()[link];
    }
}
