package org.apache.hadoop.hdfs.server.blockmanagement;

import dev.leeward.hdfs.Decision;
import dev.leeward.hdfs.Engine;
import java.util.Collection;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.AddBlockFlag;
import org.apache.hadoop.hdfs.protocol.BlockStoragePolicy;
import org.apache.hadoop.net.NetworkTopology;
import org.apache.hadoop.net.Node;
import org.apache.hadoop.util.Time;

/**
 * HDFS's default policy with Leeward's order of candidates, for replicated blocks ({@code
 * dfs.block.replicator.classname}). It overrides the draw of a random node and nothing of the rules: HDFS checks each
 * node, and draws by itself where Leeward has no opinion.
 */
public class LeewardBlockPlacementPolicy extends BlockPlacementPolicyDefault {

    private final LeewardHook hook = new LeewardHook(Engine.Layout.CHAIN);

    @Override
    public void initialize(
            Configuration conf, FSClusterStats stats, NetworkTopology clusterMap, Host2NodesMap host2datanodeMap) {
        super.initialize(conf, stats, clusterMap, host2datanodeMap);
        hook.initialize(conf, stats, clusterMap);
    }

    @Override
    public DatanodeStorageInfo[] chooseTarget(
            String srcPath,
            int numOfReplicas,
            Node writer,
            List<DatanodeStorageInfo> chosenNodes,
            boolean returnChosenNodes,
            Set<Node> excludedNodes,
            long blocksize,
            BlockStoragePolicy storagePolicy,
            EnumSet<AddBlockFlag> flags) {
        Decision decision = hook.begin(srcPath, numOfReplicas, writer, chosenNodes, blocksize);
        DatanodeStorageInfo[] targets = DatanodeStorageInfo.EMPTY_ARRAY;
        try {
            targets = super.chooseTarget(
                    srcPath, numOfReplicas, writer, chosenNodes, returnChosenNodes, excludedNodes, blocksize,
                    storagePolicy, flags);
            return targets;
        } finally {
            hook.end(decision, targets);
        }
    }

    @Override
    public DatanodeStorageInfo[] chooseTarget(
            String srcPath,
            int numOfReplicas,
            Node writer,
            List<DatanodeStorageInfo> chosen,
            boolean returnChosenNodes,
            Set<Node> excludedNodes,
            long blocksize,
            BlockStoragePolicy storagePolicy,
            EnumSet<AddBlockFlag> flags,
            EnumMap<StorageType, Integer> storageTypes) {
        Decision decision = hook.begin(srcPath, numOfReplicas, writer, chosen, blocksize);
        DatanodeStorageInfo[] targets = DatanodeStorageInfo.EMPTY_ARRAY;
        try {
            targets = super.chooseTarget(
                    srcPath, numOfReplicas, writer, chosen, returnChosenNodes, excludedNodes, blocksize, storagePolicy,
                    flags, storageTypes);
            return targets;
        } finally {
            hook.end(decision, targets);
        }
    }

    @Override
    DatanodeStorageInfo[] chooseTarget(
            String src,
            int numOfReplicas,
            Node writer,
            Set<Node> excludedNodes,
            long blocksize,
            List<DatanodeDescriptor> favoredNodes,
            BlockStoragePolicy storagePolicy,
            EnumSet<AddBlockFlag> flags) {
        if (favoredNodes == null || favoredNodes.isEmpty()) {
            // HDFS continues with the method above.
            return super.chooseTarget(
                    src, numOfReplicas, writer, excludedNodes, blocksize, favoredNodes, storagePolicy, flags);
        }
        Decision decision = hook.beginFavored(src, numOfReplicas, writer, blocksize);
        DatanodeStorageInfo[] targets = DatanodeStorageInfo.EMPTY_ARRAY;
        try {
            targets = super.chooseTarget(
                    src, numOfReplicas, writer, excludedNodes, blocksize, favoredNodes, storagePolicy, flags);
            return targets;
        } finally {
            hook.end(decision, targets);
        }
    }

    @Override
    protected DatanodeStorageInfo chooseRandom(
            int numOfReplicas,
            String scope,
            Set<Node> excludedNodes,
            long blocksize,
            int maxNodesPerRack,
            List<DatanodeStorageInfo> results,
            boolean avoidStaleNodes,
            EnumMap<StorageType, Integer> storageTypes)
            throws NotEnoughReplicasException {
        hook.onSearch(results, maxNodesPerRack);
        return super.chooseRandom(
                numOfReplicas, scope, excludedNodes, blocksize, maxNodesPerRack, results, avoidStaleNodes,
                storageTypes);
    }

    @Override
    protected DatanodeDescriptor chooseDataNode(String scope, Collection<Node> excludedNodes) {
        DatanodeDescriptor node = hook.choose(scope, excludedNodes, null);
        return node != null ? node : hook.onDefaultChoice(super.chooseDataNode(scope, excludedNodes));
    }

    @Override
    protected DatanodeDescriptor chooseDataNode(String scope, Collection<Node> excludedNodes, StorageType type) {
        DatanodeDescriptor node = hook.choose(scope, excludedNodes, type);
        return node != null ? node : hook.onDefaultChoice(super.chooseDataNode(scope, excludedNodes, type));
    }

    /** With {@code dfs.leeward.remote-racks} 2, the third copy goes to a third rack, as in Sinbad's pseudocode 2. */
    @Override
    protected DatanodeStorageInfo chooseLocalRack(
            Node localMachine,
            Set<Node> excludedNodes,
            long blocksize,
            int maxNodesPerRack,
            List<DatanodeStorageInfo> results,
            boolean avoidStaleNodes,
            EnumMap<StorageType, Integer> storageTypes)
            throws NotEnoughReplicasException {
        if (hook.wantsThirdRack(results)) {
            String first = results.get(0).getDatanodeDescriptor().getNetworkLocation();
            try {
                return chooseRandom(
                        1, "~" + first, excludedNodes, blocksize, 1, results, avoidStaleNodes, storageTypes);
            } catch (NotEnoughReplicasException e) {
                LOG.debug("no third rack for the third copy", e);
            }
        }
        return super.chooseLocalRack(
                localMachine, excludedNodes, blocksize, maxNodesPerRack, results, avoidStaleNodes, storageTypes);
    }

    /** Of the copies that HDFS may delete, one behind the hottest link; no I/O, as the namesystem may be locked. */
    @Override
    public DatanodeStorageInfo chooseReplicaToDelete(
            Collection<DatanodeStorageInfo> moreThanOne,
            Collection<DatanodeStorageInfo> exactlyOne,
            List<StorageType> excessTypes,
            Map<String, List<DatanodeStorageInfo>> rackMap) {
        long oldest = Time.monotonicNow() - heartbeatInterval * tolerateHeartbeatMultiplier;
        DatanodeStorageInfo hot =
                hook.behindHotLink(pickupReplicaSet(moreThanOne, exactlyOne, rackMap), excessTypes, oldest);
        if (hot == null) {
            return super.chooseReplicaToDelete(moreThanOne, exactlyOne, excessTypes, rackMap);
        }
        excessTypes.remove(hot.getStorageType());
        return hot;
    }
}
