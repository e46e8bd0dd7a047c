package org.apache.hadoop.hdfs.server.blockmanagement;

import dev.leeward.hdfs.Decision;
import dev.leeward.hdfs.Engine;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.net.NetworkTopology;
import org.apache.hadoop.net.Node;

/**
 * The part that both policies share: it holds the engine and the decision of the running thread. Balancer and Mover
 * create policies without a topology, and each fsck creates one without statistics. They place nothing, so they get no
 * engine.
 */
final class LeewardHook {

    /** Difference between two rates that does not count, as a share of the largest. */
    private static final double NEGLIGIBLE = 1.0 / 8.0;

    private final Engine.Layout layout;
    private final ThreadLocal<Decision> decisions = new ThreadLocal<>();
    private Engine engine;

    LeewardHook(Engine.Layout layout) {
        this.layout = layout;
    }

    void initialize(Configuration conf, FSClusterStats stats, NetworkTopology clusterMap) {
        engine = stats == null || clusterMap == null ? null : Engine.open(conf, clusterMap, layout);
    }

    /** Runs a call of {@code chooseTarget}. */
    DatanodeStorageInfo[] place(
            String path,
            int copies,
            Node writer,
            List<DatanodeStorageInfo> chosen,
            long bytes,
            Supplier<DatanodeStorageInfo[]> call) {
        if (engine == null || decisions.get() != null) {
            return call.get();
        }
        Decision decision = engine.begin(path, writer, bytes, copies, chosen);
        return decision == null ? call.get() : place(decision, call);
    }

    /** Runs a call of {@code chooseTarget} with favored nodes, in which HDFS may call it again for the other copies. */
    DatanodeStorageInfo[] placeFavored(
            String path, int copies, Node writer, long bytes, Supplier<DatanodeStorageInfo[]> call) {
        if (engine == null) {
            return call.get();
        }
        Decision decision = engine.begin(path, writer, bytes, copies, List.of());
        if (decision != null) {
            return place(decision, call);
        }
        // The inner call must not count the block again.
        decisions.set(Decision.BY_DEFAULT);
        try {
            return call.get();
        } finally {
            decisions.remove();
        }
    }

    private DatanodeStorageInfo[] place(Decision decision, Supplier<DatanodeStorageInfo[]> call) {
        decisions.set(decision);
        DatanodeStorageInfo[] targets = DatanodeStorageInfo.EMPTY_ARRAY;
        try {
            targets = call.get();
            return targets;
        } finally {
            decisions.remove();
            engine.end(decision, targets);
        }
    }

    /** Passes on the state of a search. */
    void onSearch(List<DatanodeStorageInfo> results, int mostPerRack) {
        Decision decision = decisions.get();
        if (decision != null && decision != Decision.BY_DEFAULT) {
            decision.onSearch(results, mostPerRack);
        }
    }

    /** The node that the engine chooses, else that of the default policy. */
    DatanodeDescriptor choose(
            String scope, Collection<Node> excluded, StorageType type, Supplier<DatanodeDescriptor> otherwise) {
        Decision decision = decisions.get();
        if (decision == null || decision == Decision.BY_DEFAULT) {
            return otherwise.get();
        }
        DatanodeDescriptor node = engine.choose(decision, scope, excluded, type);
        if (node == null) {
            node = otherwise.get();
            if (node != null) {
                decision.onDefaultChoice();
            }
        }
        return node;
    }

    /** Whether the third copy of the running decision goes to a third rack. */
    boolean wantsThirdRack(List<DatanodeStorageInfo> results) {
        Decision decision = decisions.get();
        return decision != null
                && decision != Decision.BY_DEFAULT
                && engine.remoteRacks() > 1
                && decision.isNewBlock()
                && results.size() == 2;
    }

    /**
     * Of copies that HDFS may delete, the one behind the link with the least capacity left; among links that differ by
     * less than an eighth of the most, the one with the least free space. Null if the default rule shall choose: because
     * a load is unknown, no link is hotter than the others, or a DataNode has stopped its heartbeats.
     *
     * @param copies the copies
     * @param types types of storage of which a copy may go
     * @param oldestHeartbeat monotonic time in ms from which on heartbeats are in time
     */
    DatanodeStorageInfo behindHotLink(
            Collection<DatanodeStorageInfo> copies, List<StorageType> types, long oldestHeartbeat) {
        if (engine == null || copies.size() < 2) {
            return null;
        }
        List<DatanodeStorageInfo> candidates = new ArrayList<>(copies.size());
        List<Double> rates = new ArrayList<>(copies.size());
        double least = Double.POSITIVE_INFINITY;
        double most = 0.0;
        for (DatanodeStorageInfo copy : copies) {
            if (!types.contains(copy.getStorageType())) {
                continue;
            }
            double rate = engine.leftOut(copy.getDatanodeDescriptor());
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
