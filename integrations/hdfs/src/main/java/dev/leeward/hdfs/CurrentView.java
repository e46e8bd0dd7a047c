package dev.leeward.hdfs;

import dev.leeward.hdfs.log.OncePerMinute;
import dev.leeward.hdfs.placements.LocalLoads;
import dev.leeward.hdfs.policies.NetworkView;
import dev.leeward.hdfs.policies.UplinkClasses;
import dev.leeward.hdfs.settings.Settings;
import dev.leeward.hdfs.snapshot.Snapshot;
import dev.leeward.hdfs.snapshot.SnapshotFeed;
import dev.leeward.hdfs.topology.Network;
import dev.leeward.hdfs.topology.Storage;
import dev.leeward.hdfs.topology.Topology;
import java.util.List;
import org.apache.hadoop.net.NetworkTopology;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The view that decisions read. The daemons build it again, for each snapshot and after the number of DataNodes has
 * changed; decisions continue with the earlier view until then. HDFS does not say when a DataNode moves, so the
 * DataNodes are also read every ten seconds.
 */
final class CurrentView implements SnapshotFeed.Listener {

    private static final Logger LOG = LoggerFactory.getLogger(CurrentView.class);
    /** Age at which the DataNodes are read again although their number is the same, in ns. */
    private static final long TOPOLOGY_NS = 10_000_000_000L;
    private static final double[] NOTHING = {};

    private final Settings settings;
    private final NetworkTopology map;
    private final Link link;
    private final ExpectedCapacities expectedCapacities;
    private final OncePerMinute warnings = new OncePerMinute();
    private volatile NetworkView view;
    private volatile long topologyNano = System.nanoTime() - TOPOLOGY_NS;
    /** Average size of a stored copy in bytes, as of the last read of the DataNodes; 0 if it is not known. */
    private volatile long meanCopy;
    private int warnedUnknown;

    /**
     * A view without DataNodes.
     *
     * @param map DataNodes of the NameNode
     * @param link connection to the controller, or null
     */
    CurrentView(Settings settings, NetworkTopology map, Link link) {
        this.settings = settings;
        this.map = map;
        this.link = link;
        expectedCapacities = new ExpectedCapacities(settings.sinbad());
        Topology none = Topology.of(List.of());
        view = view(none, Network.of(none, null), null);
    }

    /** The last view. */
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

    /** Makes the daemon look at the DataNodes again. */
    void expire() {
        topologyNano = System.nanoTime() - TOPOLOGY_NS;
    }

    /** Reads the DataNodes again if they may have changed, at a monotonic time. */
    synchronized void keepUp(long nano) {
        if (isOld(nano)) {
            build(view.snapshot(), nano);
        }
    }

    @Override
    public synchronized void accept(Snapshot snapshot) {
        build(snapshot, System.nanoTime());
    }

    private boolean isOld(long nano) {
        return view.topology().hostCount() != map.getNumOfLeaves() || nano - topologyNano >= TOPOLOGY_NS;
    }

    private void build(Snapshot snapshot, long nano) {
        NetworkView before = view;
        Topology topology = before.topology();
        if (isOld(nano)) {
            topology = Topology.of(map);
            topologyNano = nano;
            meanCopy = Storage.meanCopy(topology);
        }
        boolean sameNetwork = before.topology() == topology && before.network().fits(snapshot);
        Network network = sameNetwork ? before.network() : Network.of(topology, snapshot);
        view = view(topology, network, snapshot);
        if (!sameNetwork && snapshot != null) {
            warnOfUnknown(network, nano);
        }
    }

    private NetworkView view(Topology topology, Network network, Snapshot snapshot) {
        Storage storage = Storage.of(topology);
        UplinkClasses classes = UplinkClasses.of(network, storage, snapshot, settings.ccp().uplinkPerTb());
        boolean sinbad = settings.policy() == Settings.PolicyName.SINBAD && snapshot != null;
        LocalLoads loads = link == null ? new LocalLoads("", 0) : link.placements().loads();
        return NetworkView.of(
                topology, network, storage, classes, snapshot, sinbad ? expectedCapacities.of(snapshot) : NOTHING,
                loads);
    }

    /** Warns of DataNodes that the controller does not know; at most once a minute, as they register one by one. */
    private void warnOfUnknown(Network network, long nano) {
        int[] unknown = network.unknown();
        if (unknown.length == 0 || unknown.length == warnedUnknown || !warnings.take(nano)) {
            return;
        }
        warnedUnknown = unknown.length;
        Topology topology = network.topology();
        LOG.warn("Leeward does not know {} of {} DataNodes, which get their share of blocks as by the default policy."
                + " One of them is {} in {}: is it in the controller's cluster, in a rack of the same name?",
                unknown.length, topology.hostCount(), topology.node(unknown[0]).getHostName(),
                topology.location(topology.rackOf(unknown[0])));
    }
}
