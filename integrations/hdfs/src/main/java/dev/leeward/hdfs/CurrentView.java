package dev.leeward.hdfs;

import dev.leeward.hdfs.placements.LocalLoads;
import dev.leeward.hdfs.policies.NetworkView;
import dev.leeward.hdfs.policies.UplinkClasses;
import dev.leeward.hdfs.settings.Settings;
import dev.leeward.hdfs.snapshot.Snapshot;
import dev.leeward.hdfs.snapshot.SnapshotFeed;
import dev.leeward.hdfs.topology.Network;
import dev.leeward.hdfs.topology.Storage;
import dev.leeward.hdfs.topology.Topology;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.hadoop.net.NetworkTopology;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The view that decisions read. The daemon builds it again for each snapshot, and a decision does if the number of
 * DataNodes has changed. HDFS does not say when a DataNode moves, so the daemon also reads the DataNodes every ten
 * seconds. Without snapshots, decisions do so every twenty.
 */
final class CurrentView implements SnapshotFeed.Listener {

    private static final Logger LOG = LoggerFactory.getLogger(CurrentView.class);
    /** Age at which the DataNodes are read again although their number is the same, in ns. */
    private static final long TOPOLOGY_NS = 10_000_000_000L;
    private static final long LATE_TOPOLOGY_NS = 2 * TOPOLOGY_NS;
    private static final long WARNING_NS = 60_000_000_000L;
    private static final double[] NOTHING = {};

    private final Settings settings;
    private final NetworkTopology map;
    private final Link link;
    private final ExpectedCapacities expectedCapacities;
    private final ReentrantLock refreshing = new ReentrantLock();
    private volatile NetworkView view;
    private volatile long topologyNano;
    /** Average size of a stored copy in bytes, as of the last read of the DataNodes; 0 if it is not known. */
    private volatile long meanCopy;
    private int warnedUnknown;
    private long warnedNano = System.nanoTime() - WARNING_NS;

    /**
     * No view yet.
     *
     * @param map DataNodes of the NameNode
     * @param link connection to the controller, or null
     */
    CurrentView(Settings settings, NetworkTopology map, Link link) {
        this.settings = settings;
        this.map = map;
        this.link = link;
        expectedCapacities = new ExpectedCapacities(settings.sinbad());
    }

    @Override
    public void accept(Snapshot snapshot) {
        refreshing.lock();
        try {
            refresh(snapshot, System.nanoTime());
        } finally {
            refreshing.unlock();
        }
    }

    /** The last view, or null before the first. */
    NetworkView last() {
        return view;
    }

    /**
     * Expected size of a new block or chunk. HDFS gives the largest one, {@code dfs.blocksize} of the file, however
     * small the file becomes. On average, a new copy is as large as the stored ones, so their loads add up to the right
     * sum.
     */
    long expectedSize(long largest) {
        long mean = settings.meanSize() ? meanCopy : 0;
        return mean > 0 ? Math.min(largest, mean) : largest;
    }

    /** Makes the next reader look at the DataNodes again. */
    void expire() {
        topologyNano = System.nanoTime() - LATE_TOPOLOGY_NS;
    }

    /** A view of the present DataNodes, at a monotonic time. */
    NetworkView current(long nano) {
        NetworkView current = view;
        boolean fits = current != null
                && current.topology().hostCount() == map.getNumOfLeaves()
                && nano - topologyNano < LATE_TOPOLOGY_NS;
        // One thread reads the DataNodes again; the others continue with the earlier view.
        if (!fits && (current == null || refreshing.tryLock())) {
            if (current == null) {
                refreshing.lock();
            }
            try {
                // The first decisions wait for the first view, which one of them builds.
                if (current != null || view == null) {
                    refresh(link == null ? null : link.feed().last(), nano);
                }
            } finally {
                refreshing.unlock();
            }
            current = view;
        }
        return current;
    }

    private void refresh(Snapshot snapshot, long nano) {
        NetworkView before = view;
        Topology topology = before == null ? null : before.topology();
        if (topology == null || topology.hostCount() != map.getNumOfLeaves() || nano - topologyNano >= TOPOLOGY_NS) {
            topology = Topology.of(map);
            topologyNano = nano;
            meanCopy = Storage.meanCopy(topology);
        }
        boolean sameNetwork =
                before != null && before.topology() == topology && before.network().fits(snapshot);
        Network network = sameNetwork ? before.network() : Network.of(topology, snapshot);
        Storage storage = Storage.of(topology);
        UplinkClasses classes = UplinkClasses.of(network, storage, snapshot, settings.ccp().uplinkPerTb());
        boolean sinbad = settings.policy() == Settings.PolicyName.SINBAD && snapshot != null;
        LocalLoads loads = link == null ? new LocalLoads("", 0) : link.placements().loads();
        view = NetworkView.of(
                topology, network, storage, classes, snapshot, sinbad ? expectedCapacities.of(snapshot) : NOTHING,
                loads);
        if (!sameNetwork && snapshot != null) {
            warnOfUnknown(network, nano);
        }
    }

    /** Warns of DataNodes that the controller does not know; at most once a minute, as they register one by one. */
    private void warnOfUnknown(Network network, long nano) {
        int[] unknown = network.unknown();
        if (unknown.length == 0 || unknown.length == warnedUnknown || nano - warnedNano < WARNING_NS) {
            return;
        }
        warnedUnknown = unknown.length;
        warnedNano = nano;
        Topology topology = network.topology();
        LOG.warn("Leeward does not know {} of {} DataNodes, which get their share of blocks as by the default policy."
                + " One of them is {} in {}: is it in the controller's cluster, in a rack of the same name?",
                unknown.length, topology.hostCount(), topology.node(unknown[0]).getHostName(),
                topology.location(topology.rackOf(unknown[0])));
    }
}
