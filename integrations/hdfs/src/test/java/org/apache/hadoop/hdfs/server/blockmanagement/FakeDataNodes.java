package org.apache.hadoop.hdfs.server.blockmanagement;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.DFSTestUtil;
import org.apache.hadoop.hdfs.net.DFSNetworkTopology;
import org.apache.hadoop.hdfs.protocol.Block;
import org.apache.hadoop.hdfs.server.protocol.DatanodeStorage;
import org.apache.hadoop.hdfs.server.protocol.StorageReport;
import org.apache.hadoop.util.Time;

/**
 * DataNodes without processes, as a NameNode knows them: racks {@code /r0}, {@code /r1}, ... with hosts {@code r0h0},
 * ...
 */
public final class FakeDataNodes implements FSClusterStats {

    /** Storage of each DataNode. */
    public static final long CAPACITY = 1L << 42;

    private final DFSNetworkTopology map;
    private final List<DatanodeDescriptor> nodes = new ArrayList<>();
    private final Map<String, DatanodeDescriptor> byName = new HashMap<>();
    private final Map<String, Integer> transfers = new HashMap<>();
    private boolean avoidsStale;
    private long blocks = 1;

    /** DataNodes that are empty, in service and idle. */
    public FakeDataNodes(int racks, int hostsPerRack) {
        this(racks, hostsPerRack, new Configuration(false));
    }

    /** The same with a configuration of HDFS, which may name another class of the topology. */
    public FakeDataNodes(int racks, int hostsPerRack, Configuration conf) {
        map = DFSNetworkTopology.getInstance(conf);
        for (int rack = 0; rack < racks; rack++) {
            for (int host = 0; host < hostsPerRack; host++) {
                add("/r" + rack, "r" + rack + "h" + host);
            }
        }
    }

    /** Adds a DataNode. */
    public DatanodeDescriptor add(String location, String name) {
        int number = nodes.size() + 1;
        String address = "10." + number / 65536 + "." + number / 256 % 256 + "." + number % 256;
        DatanodeDescriptor node = DFSTestUtil.getDatanodeDescriptor(address, 9866, location, name);
        node.updateStorage(new DatanodeStorage("storage-" + name, DatanodeStorage.State.NORMAL, StorageType.DISK));
        nodes.add(node);
        byName.put(name, node);
        fill(name, 0.0);
        map.add(node);
        return node;
    }

    /** Adds storage of a type to a DataNode. */
    public void addStorage(String name, StorageType type) {
        byName.get(name).updateStorage(
                new DatanodeStorage("storage-" + type + "-" + name, DatanodeStorage.State.NORMAL, type));
        fill(name, 0.0);
    }

    /** Sets the used share of a DataNode's storage. */
    public void fill(String name, double share) {
        use(name, (long) (share * CAPACITY), (long) (share * CAPACITY));
    }

    /** Fills the storage of a DataNode up to some bytes with files that are not those of HDFS. */
    public void leave(String name, long bytes) {
        use(name, CAPACITY - bytes, 0);
    }

    /** Stores copies of blocks of a size on a DataNode, and nothing else. */
    public void store(String name, int copies, long bytes) {
        for (int copy = 0; copy < copies; copy++) {
            storage(name).addBlock(new BlockInfoContiguous(new Block(blocks++, bytes, 1), (short) 1));
        }
        use(name, copies * bytes, copies * bytes);
    }

    private void use(String name, long used, long byBlocks) {
        DatanodeDescriptor node = byName.get(name);
        List<StorageReport> reports = new ArrayList<>();
        for (DatanodeStorageInfo storage : node.getStorageInfos()) {
            storage.setUtilizationForTesting(CAPACITY, byBlocks, CAPACITY - used, byBlocks);
            reports.add(new StorageReport(
                    new DatanodeStorage(storage.getStorageID(), storage.getState(), storage.getStorageType()),
                    false, CAPACITY, byBlocks, CAPACITY - used, byBlocks, 0));
        }
        int busy = transfers.getOrDefault(name, 0);
        node.updateHeartbeat(reports.toArray(StorageReport.EMPTY_ARRAY), 0, 0, busy, 0, null);
    }

    /** Empties a DataNode, which then has some transfers. HDFS rejects one with far more than the average. */
    public void makeBusy(String name, int count) {
        transfers.put(name, count);
        fill(name, 0.0);
    }

    /** Ends the heartbeats of a DataNode an hour ago, and makes HDFS avoid such DataNodes. */
    public void makeStale(String name) {
        byName.get(name).setLastUpdateMonotonic(Time.monotonicNow() - 3_600_000);
        avoidsStale = true;
    }

    /** The topology of the NameNode. */
    public DFSNetworkTopology map() {
        return map;
    }

    /** All DataNodes. */
    public List<DatanodeDescriptor> nodes() {
        return nodes;
    }

    /** A DataNode by its host name. */
    public DatanodeDescriptor node(String name) {
        return byName.get(name);
    }

    /** Storage of a DataNode. */
    public DatanodeStorageInfo storage(String name) {
        return byName.get(name).getStorageInfos()[0];
    }

    /** A policy over these DataNodes. */
    public <P extends BlockPlacementPolicy> P open(P policy, Configuration conf) {
        policy.initialize(conf, this, map, null);
        return policy;
    }

    // ---- statistics -----------------------------------------------------------------------------------------

    @Override
    public int getTotalLoad() {
        return transfers.values().stream().mapToInt(Integer::intValue).sum();
    }

    @Override
    public boolean isAvoidingStaleDataNodesForWrite() {
        return avoidsStale;
    }

    @Override
    public int getNumDatanodesInService() {
        return nodes.size();
    }

    @Override
    public double getInServiceXceiverAverage() {
        return (double) getTotalLoad() / nodes.size();
    }

    @Override
    public double getInServiceXceiverAverageForVolume() {
        return 0;
    }

    @Override
    public Map<StorageType, StorageTypeStats> getStorageTypeStats() {
        return Map.of();
    }
}
