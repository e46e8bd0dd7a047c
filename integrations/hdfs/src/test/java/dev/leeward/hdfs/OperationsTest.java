package dev.leeward.hdfs;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.leeward.hdfs.testing.Eventually;
import dev.leeward.hdfs.testing.FakeController;
import dev.leeward.hdfs.testing.FakeNetwork;
import dev.leeward.hdfs.testing.Jmx;
import dev.leeward.hdfs.testing.MiniCluster;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.server.balancer.BalancerRun;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeDescriptor;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.mover.Mover;
import org.apache.hadoop.util.ToolRunner;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** HDFS's own operations on a cluster whose blocks Leeward places. */
class OperationsTest {

    private static final long GBPS = 1_000_000_000L;

    @TempDir
    java.nio.file.Path folder;

    private final FakeNetwork network = new FakeNetwork(4, 2, GBPS, 2 * GBPS).measure("r1:uplink", 1_990_000_000L);
    private FakeController controller;
    private Configuration conf;

    @BeforeEach
    void start() throws Exception {
        controller = new FakeController(network);
        conf = MiniCluster.conf(controller.address(), "leeward");
    }

    @AfterEach
    void stop() {
        controller.close();
    }

    @Test
    void copiesOfALostDataNodeAreReplacedInTwoRacks() throws Exception {
        try (MiniCluster cluster = MiniCluster.start(conf, folder, 4, 2)) {
            Path path = cluster.write("/file", 12 * MiniCluster.BLOCK, 3);
            String lost = cluster.awaitCopies(path, 3, "none").get(0).get(1);
            long written = ranked("LeewardInfo");
            DataNode node = dataNode(cluster, lost);
            cluster.dfs().stopDataNode(node.getXferAddress().getHostString() + ":" + node.getXferPort());
            cluster.dfs().setDataNodeDead(node.getDatanodeId());
            for (List<String> hosts : cluster.awaitCopies(path, 3, lost)) {
                assertTrue(hosts.stream().map(MiniCluster::rack).distinct().count() >= 2, hosts.toString());
            }
            assertTrue(written > 0 && ranked("LeewardInfo") > written, "Leeward placed blocks, and further copies");
        }
    }

    /** Number of decisions in which Leeward chose all hosts. */
    private static long ranked(String bean) {
        return Jmx.bean(bean).getDecisionsByReason().get("ranked");
    }

    private static DataNode dataNode(MiniCluster cluster, String host) {
        return cluster.dfs().getDataNodes().stream()
                .filter(node -> node.getDatanodeId().getHostName().equals(host))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void aDecommissionedDataNodeLosesItsCopies() throws Exception {
        java.nio.file.Path excluded = Files.createFile(folder.resolve("excluded"));
        conf.set("dfs.hosts.exclude", excluded.toString());
        try (MiniCluster cluster = MiniCluster.start(conf, folder, 4, 2)) {
            Path path = cluster.write("/file", 8 * MiniCluster.BLOCK, 3);
            String leaving = cluster.awaitCopies(path, 3, "none").get(0).get(0);
            long written = ranked("LeewardInfo");
            DataNode node = dataNode(cluster, leaving);
            Files.writeString(excluded, node.getDatanodeId().getXferAddr() + "\n");
            cluster.blocks().getDatanodeManager().refreshNodes(conf);
            DatanodeDescriptor descriptor =
                    cluster.blocks().getDatanodeManager().getDatanode(node.getDatanodeId());
            Eventually.holds("the end of decommissioning", descriptor::isDecommissioned);
            assertTrue(written > 0 && ranked("LeewardInfo") > written, "Leeward placed blocks, and further copies");
            for (List<String> copies : cluster.hosts(path)) {
                assertTrue(copies.stream().filter(host -> !host.equals(leaving)).count() >= 3, copies.toString());
            }
            Path later = cluster.write("/later", 8 * MiniCluster.BLOCK, 3);
            cluster.hosts(later).forEach(copies -> assertTrue(!copies.contains(leaving), copies.toString()));
        }
    }

    @Test
    @Tag("whole")
    void chunksOfALostDataNodeAreRebuiltAndThoseOfALeavingOneAreCopied() throws Exception {
        java.nio.file.Path excluded = Files.createFile(folder.resolve("excluded"));
        try (FakeController wide = new FakeController(new FakeNetwork(6, 2, GBPS, 2 * GBPS))) {
            Configuration coded = MiniCluster.conf(wide.address(), "leeward");
            coded.set("dfs.hosts.exclude", excluded.toString());
            try (MiniCluster cluster = MiniCluster.start(coded, folder, 6, 2)) {
                cluster.files().mkdirs(new Path("/coded"));
                cluster.files().enableErasureCodingPolicy("RS-6-3-1024k");
                cluster.files().setErasureCodingPolicy(new Path("/coded"), "RS-6-3-1024k");
                Path path = cluster.write("/coded/file", 7 << 20, 1, 2 << 20);
                byte[] content = cluster.files().open(path).readAllBytes();
                JsonNode stripe = report(wide, "\"coding\":\"6+3\"");
                assertEquals(6L * (2 << 20) + "B", stripe.get("size").asText(), "its data at full length");

                DataNode leaving = dataNode(cluster, cluster.awaitCopies(path, 9, "none").get(0).get(0));
                Files.writeString(excluded, leaving.getDatanodeId().getXferAddr() + "\n");
                cluster.blocks().getDatanodeManager().refreshNodes(coded);
                DatanodeDescriptor descriptor =
                        cluster.blocks().getDatanodeManager().getDatanode(leaving.getDatanodeId());
                Eventually.holds("the end of decommissioning", descriptor::isDecommissioned);
                JsonNode copy = report(wide, "\"replicas\":1,");
                assertFalse(copy.has("coding"), copy.toString());

                String lost = cluster.hosts(path).get(0).stream()
                        .filter(host -> !host.equals(leaving.getDatanodeId().getHostName()))
                        .findFirst().orElseThrow();
                DataNode node = dataNode(cluster, lost);
                cluster.dfs().stopDataNode(node.getXferAddress().getHostString() + ":" + node.getXferPort());
                cluster.dfs().setDataNodeDead(node.getDatanodeId());
                assertTrue(ranked("LeewardErasureCodedInfo") > 0, "Leeward placed the stripe");
                JsonNode rebuild = report(wide, "\"coding\":\"6+3\",\"existing\":[");
                assertEquals(8, rebuild.get("existing").size());
                Eventually.holds("nine chunks without " + lost, () -> {
                    try {
                        Set<String> hosts = new HashSet<>(cluster.hosts(path).get(0));
                        hosts.remove(leaving.getDatanodeId().getHostName());
                        return hosts.size() == 9 && !hosts.contains(lost);
                    } catch (IOException e) {
                        throw new AssertionError(e);
                    }
                });
                assertArrayEquals(content, cluster.files().open(path).readAllBytes());
            }
        }
    }

    /** The first report with a text. */
    private static JsonNode report(FakeController controller, String text) throws InterruptedException {
        Eventually.holds("a report with " + text, () -> controller.commitments().stream()
                .anyMatch(body -> body.toString().contains(text)));
        return controller.commitments().stream()
                .filter(body -> body.toString().contains(text))
                .findFirst().orElseThrow()
                .get("replicas");
    }

    @Test
    @Tag("whole")
    void favoredNodesGetTheCopies() throws Exception {
        conf.set("dfs.leeward.snapshot.max-age", "5s");
        try (MiniCluster cluster = MiniCluster.start(conf, folder, 4, 2)) {
            List<InetSocketAddress> favored = new ArrayList<>();
            for (String host : List.of("r1h0", "r1h1", "r3h0")) {
                favored.add(dataNode(cluster, host).getXferAddress());
            }
            Path path = new Path("/favored");
            try (FSDataOutputStream out = cluster.files().create(path, FsPermission.getFileDefault(), true, 4096,
                    (short) 3, MiniCluster.BLOCK, null, favored.toArray(new InetSocketAddress[0]))) {
                out.write(new byte[3 * MiniCluster.BLOCK]);
            }
            for (List<String> hosts : cluster.awaitCopies(path, 3, "none")) {
                assertEquals(Set.of("r1h0", "r1h1", "r3h0"), new HashSet<>(hosts));
            }
            assertEquals(3, Jmx.bean().getDecisionsByReason().get("ranked"), "each block counts once");
            controller.close();
            Eventually.holds("the outage", () -> Jmx.bean().getSnapshotAgeMs() > 5_500);
            Path other = new Path("/other");
            try (FSDataOutputStream out = cluster.files().create(other, FsPermission.getFileDefault(), true, 4096,
                    (short) 3, MiniCluster.BLOCK, null, new InetSocketAddress[] {favored.get(0)})) {
                out.write(new byte[2 * MiniCluster.BLOCK]);
            }
            assertEquals(2, Jmx.bean().getDecisionsByReason().get("unreachable"), "each block counts once");
        }
    }

    @Test
    void fewerCopiesLeaveTheRackWithTheHotUplink() throws Exception {
        try (MiniCluster cluster = MiniCluster.start(conf, folder, 4, 2)) {
            Path path = cluster.write("/file", 10 * MiniCluster.BLOCK, 8);
            cluster.awaitCopies(path, 8, "none");
            assertTrue(ranked("LeewardInfo") > 0, "Leeward placed blocks");
            int requests = controller.requestCount();
            Eventually.holds("the writes have ended", () -> controller.requestCount() > requests + 2);
            cluster.files().setReplication(path, (short) 6);
            for (List<String> hosts : cluster.awaitCopies(path, 6, "none")) {
                assertTrue(hosts.stream().noneMatch(host -> MiniCluster.rack(host).equals("r1")), hosts.toString());
            }
        }
    }

    @Test
    void theBalancerMovesBlocksToAnEmptyDataNode() throws Exception {
        conf.setLong("dfs.datanode.balance.bandwidthPerSec", 1L << 30);
        conf.setLong("dfs.balancer.getBlocks.min-block-size", 1);
        conf.setLong("dfs.balancer.getBlocks.hot-time-interval", 0);
        conf.setLong("dfs.balancer.movedWinWidth", 2_000);
        conf.setBoolean("dfs.datanode.fsdataset.simulated", true);
        conf.set("dfs.datanode.fsdataset.factory",
                "org.apache.hadoop.hdfs.server.datanode.SimulatedFSDataset$Factory");
        long capacity = 200L * MiniCluster.BLOCK;
        long[] capacities = {capacity, capacity, capacity, capacity};
        try (MiniDFSCluster dfs = MiniCluster.builder(conf, folder, 2, 2).simulatedCapacities(capacities).build()) {
            MiniCluster cluster = new MiniCluster(conf, dfs);
            dfs.waitActive();
            cluster.awaitView(4);
            cluster.write("/file", 140 * MiniCluster.BLOCK, 3);
            assertTrue(ranked("LeewardInfo") > 0, "Leeward placed blocks");
            dfs.startDataNodes(conf, 1, true, null, new String[] {"/r1"}, new String[] {"r1h2"}, new long[] {capacity},
                    false);
            dfs.waitActive();
            dfs.triggerHeartbeats();
            assertEquals(0, BalancerRun.run(conf, "-threshold", "15", "-idleiterations", "3"));
            dfs.triggerHeartbeats();
            DataNode added = dataNode(cluster, "r1h2");
            assertTrue(added.getFSDataset().getDfsUsed() > 0, "the added DataNode has blocks");
        }
    }

    @Test
    @Tag("whole")
    void theMoverMovesColdFilesToArchives() throws Exception {
        StorageType[] types = {StorageType.DISK, StorageType.ARCHIVE};
        MiniDFSCluster.Builder builder =
                MiniCluster.builder(conf, folder, 4, 2).storagesPerDatanode(2).storageTypes(types);
        try (MiniDFSCluster dfs = builder.build()) {
            MiniCluster cluster = new MiniCluster(conf, dfs);
            dfs.waitActive();
            cluster.awaitView(8);
            Path path = cluster.write("/cold", 6 * MiniCluster.BLOCK, 3);
            assertTrue(ranked("LeewardInfo") > 0, "Leeward placed blocks");
            cluster.files().setStoragePolicy(path, "COLD");
            assertEquals(0, ToolRunner.run(conf, new Mover.Cli(), new String[] {"-p", "/cold"}));
            Eventually.holds("all copies in archives", () -> {
                try {
                    for (LocatedBlock block : cluster.files().getClient()
                            .getLocatedBlocks("/cold", 0).getLocatedBlocks()) {
                        for (StorageType type : block.getStorageTypes()) {
                            if (type != StorageType.ARCHIVE) {
                                return false;
                            }
                        }
                    }
                    return true;
                } catch (IOException e) {
                    throw new AssertionError(e);
                }
            });
        }
    }
}
