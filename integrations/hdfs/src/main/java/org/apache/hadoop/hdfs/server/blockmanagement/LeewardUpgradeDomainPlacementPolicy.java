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

/**
 * HDFS's policy for upgrade domains with Leeward's order of candidates, for replicated blocks ({@code
 * dfs.block.replicator.classname}). HDFS rejects hosts whose upgrade domain has a copy already.
 */
public class LeewardUpgradeDomainPlacementPolicy extends BlockPlacementPolicyWithUpgradeDomain {

    private final LeewardHook hook = new LeewardHook(Engine.Layout.CHAIN);

    @Override
    public void initialize(Configuration conf, FSClusterStats stats, NetworkTopology map, Host2NodesMap hosts) {
        super.initialize(conf, stats, map, hosts);
        hook.initialize(this, conf, stats, map);
    }

    @Override
    public DatanodeStorageInfo[] chooseTarget(
            String path, int copies, Node writer, List<DatanodeStorageInfo> chosen, boolean returnChosen,
            Set<Node> excluded, long bytes, BlockStoragePolicy storage, EnumSet<AddBlockFlag> flags) {
        return chooseTarget(path, copies, writer, chosen, returnChosen, excluded, bytes, storage, flags, null);
    }

    @Override
    public DatanodeStorageInfo[] chooseTarget(
            String path, int copies, Node writer, List<DatanodeStorageInfo> chosen, boolean returnChosen,
            Set<Node> excluded, long bytes, BlockStoragePolicy storage, EnumSet<AddBlockFlag> flags,
            EnumMap<StorageType, Integer> types) {
        Decision decision = hook.begin(path, copies, writer, chosen, excluded, bytes);
        try {
            return hook.take(decision, super.chooseTarget(
                    path, copies, writer, chosen, returnChosen, excluded, bytes, storage, flags, types));
        } finally {
            hook.end(decision);
        }
    }

    @Override
    DatanodeStorageInfo[] chooseTarget(
            String path, int copies, Node writer, Set<Node> excluded, long bytes, List<DatanodeDescriptor> favored,
            BlockStoragePolicy storage, EnumSet<AddBlockFlag> flags) {
        Decision decision = hook.beginFavored(path, copies, writer, favored, excluded, bytes);
        try {
            return hook.take(decision, super.chooseTarget(
                    path, copies, writer, excluded, bytes, favored, storage, flags));
        } finally {
            hook.end(decision);
        }
    }

    @Override
    protected DatanodeStorageInfo chooseRandom(
            int copies, String scope, Set<Node> excluded, long bytes, int mostPerRack,
            List<DatanodeStorageInfo> results, boolean avoidStale, EnumMap<StorageType, Integer> types)
            throws NotEnoughReplicasException {
        hook.onSearch(results, mostPerRack);
        return super.chooseRandom(copies, scope, excluded, bytes, mostPerRack, results, avoidStale, types);
    }

    @Override
    protected DatanodeDescriptor chooseDataNode(String scope, Collection<Node> excluded) {
        DatanodeDescriptor node = hook.choose(scope, excluded, null);
        return node != null ? node : hook.onDefaultChoice(super.chooseDataNode(scope, excluded));
    }

    @Override
    protected DatanodeDescriptor chooseDataNode(String scope, Collection<Node> excluded, StorageType type) {
        DatanodeDescriptor node = hook.choose(scope, excluded, type);
        return node != null ? node : hook.onDefaultChoice(super.chooseDataNode(scope, excluded, type));
    }

    /** With {@code dfs.leeward.remote-racks} 2, the third copy goes to a third rack, as in Sinbad's pseudocode 2. */
    @Override
    protected DatanodeStorageInfo chooseLocalRack(
            Node local, Set<Node> excluded, long bytes, int mostPerRack, List<DatanodeStorageInfo> results,
            boolean avoidStale, EnumMap<StorageType, Integer> types)
            throws NotEnoughReplicasException {
        DatanodeStorageInfo third = hook.chooseThirdRack(this, excluded, bytes, results, avoidStale, types);
        return third != null
                ? third
                : super.chooseLocalRack(local, excluded, bytes, mostPerRack, results, avoidStale, types);
    }

    @Override
    public DatanodeStorageInfo chooseReplicaToDelete(
            Collection<DatanodeStorageInfo> moreThanOne, Collection<DatanodeStorageInfo> exactlyOne,
            List<StorageType> excessTypes, Map<String, List<DatanodeStorageInfo>> rackMap) {
        DatanodeStorageInfo hot = hook.takeBehindHotLink(
                pickupReplicaSet(moreThanOne, exactlyOne, rackMap), excessTypes,
                heartbeatInterval * tolerateHeartbeatMultiplier);
        return hot != null ? hot : super.chooseReplicaToDelete(moreThanOne, exactlyOne, excessTypes, rackMap);
    }
}
