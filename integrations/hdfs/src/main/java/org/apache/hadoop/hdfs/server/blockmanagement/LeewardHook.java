package org.apache.hadoop.hdfs.server.blockmanagement;

import dev.leeward.hdfs.Decision;
import dev.leeward.hdfs.Engine;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.AddBlockFlag;
import org.apache.hadoop.hdfs.protocol.BlockStoragePolicy;
import org.apache.hadoop.net.NetworkTopology;
import org.apache.hadoop.net.Node;
import org.apache.hadoop.util.Time;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The calls of HDFS's placement policies that Leeward takes part in: all that its policies share. Each policy extends
 * another class of HDFS, so it has only the overridden methods, and passes them on. The hook holds the engine and the
 * decision of the running thread.
 *
 * <p>Balancer and Mover create policies without a topology, and each fsck creates one without statistics. They place
 * nothing, so they get no engine.
 */
final class LeewardHook {

    private static final Logger LOG = LoggerFactory.getLogger(LeewardHook.class);
    /** Difference between two rates that does not count, as a share of the largest. */
    private static final double NEGLIGIBLE = 1.0 / 8.0;
    /** Storage of a block of which nothing is known. */
    private static final BlockStoragePolicy STORAGE = BlockStoragePolicySuite.createDefaultSuite().getDefaultPolicy();

    private final Engine.Layout layout;
    private final ThreadLocal<Decision> decisions = new ThreadLocal<>();
    private Engine engine;

    LeewardHook(Engine.Layout layout) {
        this.layout = layout;
    }

    void initialize(
            BlockPlacementPolicy policy, Configuration conf, FSClusterStats stats, NetworkTopology clusterMap) {
        engine = stats == null || clusterMap == null ? null : Engine.open(conf, clusterMap, layout);
        if (engine != null) {
            engine.setTrial((decision, writer, bytes, copies) -> search(policy, decision, writer, bytes, copies));
        }
    }

    private DatanodeStorageInfo[] search(
            BlockPlacementPolicy policy, Decision decision, Node writer, long bytes, int copies) {
        // With a running decision, the policy begins none, so none is counted.
        decisions.set(decision);
        try {
            return policy.chooseTarget(
                    "", copies, writer, new ArrayList<>(), false, new HashSet<>(), bytes, STORAGE,
                    EnumSet.noneOf(AddBlockFlag.class));
        } finally {
            decisions.set(null);
        }
    }

    /**
     * Begins a call of {@code chooseTarget}.
     *
     * @return the decision to end; null if the default policy places the block, or within another call
     */
    Decision begin(
            String path, int copies, Node writer, List<DatanodeStorageInfo> chosen, Set<Node> excluded, long bytes) {
        if (engine == null || decisions.get() != null) {
            return null;
        }
        Decision decision = engine.begin(path, writer, bytes, copies, chosen, excluded);
        if (decision != null) {
            decisions.set(decision);
        }
        return decision;
    }

    /**
     * Begins a call with favored nodes, within which HDFS may call {@code chooseTarget} for the other copies. Without
     * favored nodes, that inner call is the decision.
     */
    Decision beginFavored(
            String path, int copies, Node writer, List<DatanodeDescriptor> favored, Set<Node> excluded, long bytes) {
        if (favored == null || favored.isEmpty()) {
            return null;
        }
        Decision decision = begin(path, copies, writer, List.of(), excluded, bytes);
        if (decision == null && engine != null) {
            // The inner call must not count the block again.
            decision = Decision.BY_DEFAULT;
            decisions.set(decision);
        }
        return decision;
    }

    /** Takes in the result of a call, and returns it. */
    DatanodeStorageInfo[] take(Decision decision, DatanodeStorageInfo[] targets) {
        if (decision != null && decision != Decision.BY_DEFAULT) {
            decision.take(targets);
        }
        return targets;
    }

    /** Ends the call that began the decision; without a result, if HDFS threw an exception. */
    void end(Decision decision) {
        if (decision != null) {
            decisions.set(null);
            if (decision != Decision.BY_DEFAULT) {
                engine.end(decision);
            }
        }
    }

    /** The running decision of this thread; null if the default policy decides. */
    private Decision running() {
        Decision decision = decisions.get();
        return decision == Decision.BY_DEFAULT ? null : decision;
    }

    /** Passes on the state of a search. */
    void onSearch(List<DatanodeStorageInfo> results, int mostPerRack) {
        Decision decision = running();
        if (decision != null) {
            decision.onSearch(results, mostPerRack);
        }
    }

    /** The node that the engine chooses; null if the default policy shall. */
    DatanodeDescriptor choose(String scope, Collection<Node> excluded, StorageType type) {
        Decision decision = running();
        return decision == null ? null : engine.choose(decision, scope, excluded, type);
    }

    /** Takes in the choice of the default policy, and returns it. */
    DatanodeDescriptor onDefaultChoice(DatanodeDescriptor node) {
        Decision decision = node == null ? null : running();
        if (decision != null) {
            decision.onDefaultChoice();
        }
        return node;
    }

    /** Storage in a third rack for the third copy; null if the settings want none, or there is none. */
    DatanodeStorageInfo chooseThirdRack(
            BlockPlacementPolicyDefault policy, Set<Node> excluded, long bytes, List<DatanodeStorageInfo> results,
            boolean avoidStale, EnumMap<StorageType, Integer> types) {
        Decision decision = running();
        boolean wanted = decision != null
                && engine.remoteRacks() > 1
                && decision.isNewBlock()
                && results.size() == 2
                && policy.clusterMap.getNumOfNonEmptyRacks() > 2;
        if (!wanted) {
            return null;
        }
        String scope = "~" + results.get(0).getDatanodeDescriptor().getNetworkLocation();
        // HDFS excludes each node that it rejects, and it rejects the second rack here. A search in that rack follows.
        Set<Node> tried = new HashSet<>(excluded);
        try {
            DatanodeStorageInfo third = policy.chooseRandom(1, scope, tried, bytes, 1, results, avoidStale, types);
            excluded.add(third.getDatanodeDescriptor());
            return third;
        } catch (BlockPlacementPolicy.NotEnoughReplicasException e) {
            LOG.debug("no third rack for the third copy", e);
            return null;
        }
    }

    // ---- deletes --------------------------------------------------------------------------------------------

    /**
     * Takes the copy that leaves, of those that HDFS may delete: the one behind the hottest link. No I/O and no lock,
     * as the namesystem may be locked.
     *
     * @param copies the copies
     * @param types types of storage of which a copy may go; that of the taken copy leaves the list
     * @param toleratedMs time since the last heartbeat from which on a DataNode is out of time
     * @return null if the default rule shall choose
     */
    DatanodeStorageInfo takeBehindHotLink(
            Collection<DatanodeStorageInfo> copies, List<StorageType> types, long toleratedMs) {
        DatanodeStorageInfo hot = behindHotLink(copies, types, Time.monotonicNow() - toleratedMs);
        if (hot != null) {
            types.remove(hot.getStorageType());
        }
        return hot;
    }

    /**
     * Of copies that HDFS may delete, the one behind the link with the least capacity left; among links that differ by
     * less than an eighth of the most, the one with the least free space. Null if the default rule shall choose:
     * because a load is unknown, no link is hotter than the others, a DataNode has stopped its heartbeats, or by the
     * mode of the controller.
     *
     * @param copies the copies
     * @param types types of storage of which a copy may go
     * @param oldestHeartbeat monotonic time in ms from which on heartbeats are in time
     */
    private DatanodeStorageInfo behindHotLink(
            Collection<DatanodeStorageInfo> copies, List<StorageType> types, long oldestHeartbeat) {
        if (engine == null || copies.size() < 2) {
            return null;
        }
        List<DatanodeStorageInfo> candidates = new ArrayList<>(copies.size());
        List<Double> rates = new ArrayList<>(copies.size());
        double least = Double.POSITIVE_INFINITY;
        double most = 0.0;
        // A canary draws deletes as it draws blocks.
        double draw = ThreadLocalRandom.current().nextDouble();
        for (DatanodeStorageInfo copy : copies) {
            if (!types.contains(copy.getStorageType())) {
                continue;
            }
            double rate = engine.leftOut(copy.getDatanodeDescriptor(), draw);
            if (Double.isNaN(rate) || copy.getDatanodeDescriptor().getLastUpdateMonotonic() < oldestHeartbeat) {
                return null;
            }
            candidates.add(copy);
            rates.add(rate);
            least = Math.min(least, rate);
            most = Math.max(most, rate);
        }
        double limit = least + most * NEGLIGIBLE;
        DatanodeStorageInfo chosen = null;
        for (int i = 0; i < candidates.size() && limit < most; i++) {
            DatanodeStorageInfo copy = candidates.get(i);
            if (rates.get(i) <= limit && (chosen == null || copy.getRemaining() < chosen.getRemaining())) {
                chosen = copy;
            }
        }
        return chosen;
    }
}
