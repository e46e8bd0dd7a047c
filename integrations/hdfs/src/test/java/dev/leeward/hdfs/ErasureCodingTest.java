package dev.leeward.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.leeward.hdfs.placements.Coding;
import dev.leeward.hdfs.settings.SettingsReader;
import dev.leeward.hdfs.testing.Eventually;
import dev.leeward.hdfs.testing.FakeController;
import dev.leeward.hdfs.testing.FakeNetwork;
import dev.leeward.hdfs.testing.Jmx;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.AddBlockFlag;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeStorageInfo;
import org.apache.hadoop.hdfs.server.blockmanagement.FakeDataNodes;
import org.apache.hadoop.hdfs.server.blockmanagement.LeewardErasureCodedPlacementPolicy;
import org.apache.hadoop.hdfs.server.namenode.ErasureCodingPolicyManager;
import org.apache.hadoop.net.Node;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Stripes, in a NameNode in which RS-6-3 is enabled. */
class ErasureCodingTest {

    private static final long GBPS = 1_000_000_000L;
    private static final long CHUNK = 128L << 20;

    private final FakeDataNodes nodes = new FakeDataNodes(5, 4);
    private final FakeController controller;
    private final LeewardErasureCodedPlacementPolicy policy;

    ErasureCodingTest() throws Exception {
        ErasureCodingPolicyManager.getInstance().init(new Configuration());
        controller = new FakeController(new FakeNetwork(5, 4, GBPS, 2 * GBPS));
        Configuration conf = Harness.conf(controller.address(), "leeward");
        conf.set("dfs.leeward.snapshot.max-age", "5s");
        policy = nodes.open(new LeewardErasureCodedPlacementPolicy(), conf);
        Eventually.holds(
                "the first snapshot", () -> Jmx.hasSnapshot("LeewardErasureCodedInfo"));
    }

    @AfterEach
    void stop() {
        controller.close();
    }

    /** Hosts for new chunks. */
    private List<String> place(int chunks, long bytes, String writer, List<String> existing, Set<String> holders) {
        List<DatanodeStorageInfo> chosen = new ArrayList<>();
        existing.forEach(name -> chosen.add(nodes.storage(name)));
        Set<Node> excluded = new HashSet<>();
        holders.forEach(name -> excluded.add(nodes.node(name)));
        DatanodeStorageInfo[] targets = policy.chooseTarget(
                "/stripe", chunks, nodes.node(writer), chosen, false, excluded, bytes, Harness.STORAGE,
                EnumSet.noneOf(AddBlockFlag.class));
        return Arrays.stream(targets).map(target -> target.getDatanodeDescriptor().getHostName()).toList();
    }

    private List<JsonNode> reports(int count) throws InterruptedException {
        Eventually.holds(count + " reports", () -> controller.commitments().size() >= count);
        assertEquals(count, controller.commitments().size());
        return controller.commitments();
    }

    @Test
    void aNewStripeIsReportedAsOnePlacementWithItsCode() throws Exception {
        List<String> hosts = place(9, CHUNK, "r0h0", List.of(), Set.of());
        assertEquals(9, new HashSet<>(hosts).size());
        JsonNode body = reports(1).get(0);
        assertEquals(9, body.get("hosts").size());
        JsonNode replicas = body.get("replicas");
        assertEquals("6+3", replicas.get("coding").asText());
        assertEquals(6 * CHUNK + "B", replicas.get("size").asText());
        assertEquals("r0h0", replicas.get("writer").asText());
        assertFalse(replicas.has("replicas"), "the code says how many chunks there are");
    }

    @Test
    void theRebuildOfADamagedStripeNamesTheChunksThatRemain() throws Exception {
        List<String> left = List.of("r0h0", "r0h1", "r1h0", "r1h1", "r2h0", "r2h1", "r3h0");
        // HDFS gives the data of the whole stripe here.
        List<String> hosts = place(2, 6 * CHUNK, "r0h0", left, new HashSet<>(left));
        assertEquals(2, hosts.size());
        JsonNode replicas = reports(1).get(0).get("replicas");
        assertEquals("6+3", replicas.get("coding").asText());
        assertEquals(6 * CHUNK + "B", replicas.get("size").asText());
        assertEquals(7, replicas.get("existing").size());
        assertFalse(replicas.has("writer"), "the first new host rebuilds");
    }

    @Test
    void aRebuildLoadsTheWayIntoItsFirstHostWhichSendsTheOthers() throws Exception {
        Configuration conf = Harness.conf(controller.address(), "leeward");
        conf.set("dfs.leeward.snapshot.max-age", "5s");
        conf.set("dfs.leeward.report", "false");
        Engine engine = Engine.open(SettingsReader.read(conf), nodes.map(), Engine.Layout.STRIPE);
        Eventually.holds("a view", () -> engine.view() != null && engine.view().snapshot() != null);
        List<DatanodeStorageInfo> left = new ArrayList<>();
        List.of("r0h0", "r0h1", "r1h0", "r1h1", "r2h0", "r2h1", "r3h0").forEach(name -> left.add(nodes.storage(name)));
        Decision decision = engine.begin("/stripe", nodes.node("r0h0"), 6 * CHUNK, 2, left, new HashSet<>());
        decision.take(new DatanodeStorageInfo[] {nodes.storage("r4h0"), nodes.storage("r4h1")});
        engine.end(decision);
        Map<String, Integer> expected = Map.of(
                "r0h0:egress", 1, "r2h1:egress", 1, "r3h0:egress", 0, "r4:downlink", 6, "r4h0:ingress", 6,
                "r4h0:egress", 1, "r4h1:ingress", 1);
        expected.forEach((link, flows) -> assertEquals(
                flows.longValue(), decision.view().loads().flows(decision.view().snapshot().link(link)), link));
        // Six flows share the link of 1 Gb/s.
        int ingress = decision.view().snapshot().link("r4h0:ingress");
        assertEquals((double) GBPS, decision.view().loads().rate(ingress), 6.0);
    }

    @Test
    void theChunkOfADataNodeThatLeavesIsReportedAsACopyOfThatChunk() throws Exception {
        List<String> left = List.of("r0h0", "r0h1", "r1h0", "r1h1", "r2h0", "r2h1", "r3h0", "r3h1");
        nodes.node("r4h0").startDecommission();
        Set<String> holders = new HashSet<>(left);
        holders.add("r4h0");
        assertEquals(1, place(1, 6 * CHUNK, "r4h0", left, holders).size());
        JsonNode replicas = reports(1).get(0).get("replicas");
        assertFalse(replicas.has("coding"));
        assertEquals(1, replicas.get("replicas").asInt());
        assertEquals(CHUNK + "B", replicas.get("size").asText(), "one chunk moves, not the whole stripe");
    }

    @Test
    void aChunkThatMovesToAnotherRackIsReportedAsACopyOfThatChunk() throws Exception {
        List<String> all = List.of("r0h0", "r0h1", "r0h2", "r1h0", "r1h1", "r2h0", "r2h1", "r3h0", "r3h1");
        assertEquals(1, place(1, 6 * CHUNK, "r0h0", all, new HashSet<>(all)).size());
        JsonNode replicas = reports(1).get(0).get("replicas");
        assertFalse(replicas.has("coding"));
        assertEquals(CHUNK + "B", replicas.get("size").asText());
    }

    @Test
    void aStripeOfAnUnknownCodeIsReportedChunkByChunk() throws Exception {
        assertEquals(10, place(10, CHUNK, "r0h0", List.of(), Set.of()).size());
        for (JsonNode body : reports(10)) {
            assertEquals(1, body.get("hosts").size());
            assertEquals(1, body.get("replicas").get("replicas").asInt());
            assertEquals(CHUNK + "B", body.get("replicas").get("size").asText());
        }
    }

    @Test
    void onlyAnEnabledCodeIsRecognizedByItsNumberOfChunks() {
        assertEquals(new Coding(6, 3), ErasureCodes.withChunks(9));
        assertNull(ErasureCodes.withChunks(5), "RS-3-2 is not enabled");
        assertNull(ErasureCodes.withChunks(0));
    }

    @Test
    void chunksHoldTheBlockAndWasteLessThanAByteEach() {
        Coding code = new Coding(6, 3);
        assertEquals(9, code.chunks());
        for (long block : new long[] {1, 5, 6, 7, 600, 601, Long.MAX_VALUE}) {
            long chunk = code.chunkOf(block);
            assertTrue(chunk >= block / 6 && chunk - block / 6 <= 1, block + " bytes in chunks of " + chunk);
        }
    }
}
