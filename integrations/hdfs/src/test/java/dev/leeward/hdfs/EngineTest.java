package dev.leeward.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.leeward.hdfs.testing.Eventually;
import dev.leeward.hdfs.testing.FakeController;
import dev.leeward.hdfs.testing.FakeNetwork;
import dev.leeward.hdfs.testing.Jmx;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.AddBlockFlag;
import org.apache.hadoop.hdfs.protocol.BlockStoragePolicy;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockStoragePolicySuite;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeStorageInfo;
import org.apache.hadoop.hdfs.server.blockmanagement.FakeDataNodes;
import org.apache.hadoop.net.Node;
import org.apache.hadoop.net.NodeBase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Decisions of the policy over DataNodes without processes: their order, and the rules of HDFS. */
class EngineTest {

    private static final long GBPS = 1_000_000_000L;

    private final FakeDataNodes nodes = new FakeDataNodes(4, 4);
    private final FakeNetwork network = new FakeNetwork(4, 4, GBPS, 2 * GBPS)
            .measure("r1:downlink", 1_900_000_000L).measure("r3:downlink", 1_950_000_000L);
    private final FakeController controller;

    EngineTest() throws Exception {
        controller = new FakeController(network);
    }

    @AfterEach
    void stop() {
        controller.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"sinbad", "leeward"})
    void theFirstCopyStaysAndTheOthersGoToTwoHostsOfTheCoolestRack(String policy) throws Exception {
        network.measure("r2:downlink", 0L);
        Harness harness = Harness.openWithSnapshot(nodes, controller, policy);
        List<String> hosts = harness.place("r0h1");
        assertEquals("r0h1", hosts.get(0));
        assertEquals("r2", Harness.rack(hosts.get(1)));
        assertEquals("r2", Harness.rack(hosts.get(2)));
        assertNotEquals(hosts.get(1), hosts.get(2));
        assertEquals(1, Harness.count(Reason.RANKED));
    }

    @Test
    void withTwoRemoteRacksEveryCopyHasARackOfItsOwn() throws Exception {
        Configuration conf = Harness.withoutHysteresis(controller);
        conf.set("dfs.leeward.remote-racks", "2");
        Harness harness = Harness.open(nodes, conf);
        harness.awaitReason(Reason.RANKED);
        for (int block = 0; block < 20; block++) {
            List<String> hosts = harness.place("r0h1");
            Set<String> racks = new HashSet<>();
            hosts.forEach(host -> racks.add(Harness.rack(host)));
            assertEquals(3, racks.size(), hosts.toString());
            assertTrue(racks.contains("r2"), hosts.toString());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"sinbad", "ccp", "rehdfs", "leeward"})
    void excludedHostsAreNeverChosenAndCopiesNeverShareAHost(String policy) throws Exception {
        Harness harness = Harness.openWithSnapshot(nodes, controller, policy);
        Set<String> excluded = Set.of("r2h0", "r2h1", "r2h2", "r1h3");
        for (int block = 0; block < 300; block++) {
            List<String> hosts = harness.place("r0h0", 3, excluded, List.of());
            assertEquals(3, new HashSet<>(hosts).size(), hosts.toString());
            hosts.forEach(host -> assertFalse(excluded.contains(host), hosts.toString()));
            assertTrue(hosts.stream().map(Harness::rack).distinct().count() >= 2, hosts.toString());
        }
        assertTrue(Harness.count(Reason.RANKED) >= 200, "ranked: " + Harness.count(Reason.RANKED));
    }

    @ParameterizedTest
    @ValueSource(strings = {"sinbad", "ccp", "rehdfs", "leeward"})
    void aBlockGetsAsManyCopiesAsThereAreHosts(String policy) throws Exception {
        Harness harness = Harness.openWithSnapshot(nodes, controller, policy);
        assertEquals(16, new HashSet<>(harness.place("r0h0", 16, Set.of(), List.of())).size());
        assertEquals(16, new HashSet<>(harness.place("r0h0", 20, Set.of(), List.of())).size());
        assertEquals(10, new HashSet<>(harness.place(null, 10, Set.of(), List.of())).size());
        assertEquals(3, Harness.count(Reason.RANKED));
    }

    /** Links of hosts that are down look idle. */
    @ParameterizedTest
    @ValueSource(strings = {"sinbad", "ccp", "rehdfs", "leeward"})
    void noCopyGoesToAHostThatIsDownOrDraining(String policy) throws Exception {
        nodes.nodes().forEach(node -> network.measure(node.getHostName() + ":ingress", GBPS / 2));
        Set<String> closed = Set.of("r0h2", "r1h0", "r2h1", "r2h2", "r3h3");
        closed.forEach(host -> network.measure(host + ":ingress", 0L));
        network.setUp("r0h2", false).setUp("r1h0", false).setUp("r2h1", false);
        network.setDraining("r2h2", true).setDraining("r3h3", true);
        Harness harness = Harness.openWithSnapshot(nodes, controller, policy);
        for (int block = 0; block < 200; block++) {
            List<String> hosts = harness.place(block % 2 == 0 ? "r0h0" : "r3h0");
            assertEquals(3, new HashSet<>(hosts).size(), hosts.toString());
            assertTrue(hosts.stream().noneMatch(closed::contains), hosts.toString());
        }
        assertEquals(200, Harness.count(Reason.RANKED));
    }

    @Test
    void aWriterThatIsDrainingKeepsItsFirstCopy() throws Exception {
        network.setDraining("r0h1", true);
        Harness harness = Harness.openWithSnapshot(nodes, controller, "leeward");
        assertEquals("r0h1", harness.place("r0h1").get(0));
    }

    @Test
    void whileAllHostsAreClosedTheDefaultPolicyChooses() throws Exception {
        nodes.nodes().forEach(node -> network.setUp(node.getHostName(), false));
        Harness harness = Harness.openWithSnapshot(nodes, controller, "leeward");
        assertEquals(3, new HashSet<>(harness.place("r0h0")).size());
        assertEquals(1, Harness.count(Reason.NO_CANDIDATE));
    }

    @Test
    void differencesCloseAndOpenHosts() throws Exception {
        Configuration conf = Harness.withoutHysteresis(controller);
        conf.set("dfs.leeward.snapshot.max-age", "5s");
        Harness harness = Harness.open(nodes, conf);
        harness.awaitReason(Reason.RANKED);
        assertTrue(isUsed(harness, "r2h0"));
        network.setUp("r2h0", false);
        Eventually.holds("no copy on a host that is down", () -> !isUsed(harness, "r2h0"));
        network.setUp("r2h0", null);
        Eventually.holds("copies on a host of an unknown state", () -> isUsed(harness, "r2h0"));
        network.setDraining("r2h0", true);
        Eventually.holds("no copy on a host that is draining", () -> !isUsed(harness, "r2h0"));
        network.setDraining("r2h0", false);
        Eventually.holds("copies on a host that is open again", () -> isUsed(harness, "r2h0"));
        assertEquals(1, Metric.of("SnapshotsWhole"));
    }

    /** True if any of 20 blocks has a copy on a host. By chance, none has one on a host of four once in 2^20. */
    private static boolean isUsed(Harness harness, String host) {
        boolean used = false;
        for (int block = 0; block < 20; block++) {
            used |= harness.place("r0h0").contains(host);
        }
        return used;
    }

    @Test
    void aMissingCopyIsPlacedBesideTheExistingOnes() throws Exception {
        Harness harness = Harness.openWithSnapshot(nodes, controller, "leeward");
        List<String> hosts = harness.place(null, 1, Set.of(), List.of("r0h0", "r0h1"));
        assertEquals(1, hosts.size());
        assertEquals("r2", Harness.rack(hosts.get(0)));
        Eventually.holds("its report", () -> !controller.commitments().isEmpty());
        JsonNode body = controller.commitments().get(0);
        assertEquals("[\"r0h0\",\"r0h1\"]", body.get("replicas").get("existing").toString());
        assertEquals(1, body.get("replicas").get("replicas").asInt());
    }

    @Test
    void aClientThatIsAHostOfTheServiceButNoDataNodeIsTheWriterOfItsBlocks() throws Exception {
        Node client = new NodeBase("/r4/r4h0");
        Node address = new NodeBase("/r0/10.9.9.9");
        try (FakeController wide = new FakeController(new FakeNetwork(5, 4, GBPS, 2 * GBPS))) {
            Harness harness = Harness.openWithSnapshot(nodes, wide, "leeward");
            for (Node writer : List.of(client, address)) {
                List<String> hosts = harness.placeBy(writer, 3, Set.of(), List.of());
                assertEquals(3, new HashSet<>(hosts).size(), hosts.toString());
                assertEquals(2, hosts.stream().map(Harness::rack).distinct().count(), hosts.toString());
            }
            assertEquals(2, Harness.count(Reason.RANKED));
            Eventually.holds("two reports", () -> wide.commitments().size() == 2);
            List<JsonNode> bodies = wide.commitments();
            assertEquals("r4h0", bodies.get(0).get("replicas").path("writer").asText());
            assertFalse(bodies.get(1).get("replicas").has("writer"), "the service has no such host");
        }
    }

    @Test
    void blocksOfClientsOutsideTheRacksAreOnesThatRehdfsPlaces() throws Exception {
        Configuration conf = new Configuration();
        conf.set("dfs.leeward.policy", "rehdfs");
        Harness harness = Harness.open(nodes, conf);
        for (Node writer : Arrays.asList(null, new NodeBase("/elsewhere/10.9.9.9"))) {
            List<String> hosts = harness.placeBy(writer, 3, Set.of(), List.of());
            assertEquals(2, hosts.stream().map(Harness::rack).distinct().count(), hosts.toString());
        }
        assertEquals(2, Harness.count(Reason.RANKED));
    }

    @Test
    void copiesOnOtherTypesOfStorageAreOrderedToo() throws Exception {
        for (String host : List.of("r1h1", "r2h2", "r3h3")) {
            nodes.addStorage(host, StorageType.SSD);
        }
        Harness harness = Harness.openWithSnapshot(nodes, controller, "leeward");
        BlockStoragePolicy oneSsd = BlockStoragePolicySuite.createDefaultSuite().getPolicy("ONE_SSD");
        DatanodeStorageInfo[] targets = harness.policy.chooseTarget(
                "/file", 3, nodes.node("r0h0"), new ArrayList<>(), false, new HashSet<>(), Harness.BLOCK, oneSsd,
                EnumSet.noneOf(AddBlockFlag.class));
        assertEquals(3, targets.length);
        assertEquals(1, Arrays.stream(targets).filter(t -> t.getStorageType() == StorageType.SSD).count());
        assertTrue(Arrays.stream(targets).anyMatch(t -> t.getDatanodeDescriptor().getHostName().startsWith("r2")));
        assertEquals(1, Harness.count(Reason.RANKED));
    }

    @Test
    void withoutAThirdRackForTheThirdCopyItGoesToTheSecond() throws Exception {
        FakeDataNodes few = new FakeDataNodes(1, 1);
        List.of("r1h0", "r1h1", "r1h2").forEach(name -> few.add("/r1", name));
        Configuration conf = Harness.withoutHysteresis(controller);
        conf.set("dfs.leeward.remote-racks", "2");
        Harness harness = Harness.open(few, conf);
        harness.awaitReason(Reason.RANKED);
        for (int block = 0; block < 20; block++) {
            assertEquals(3, new HashSet<>(harness.place("r0h0")).size());
        }
        assertEquals(0, Harness.count(Reason.NO_CANDIDATE));
        few.add("/r2", "r2h0");
        harness.awaitDataNodes(5);
        for (int block = 0; block < 20; block++) {
            assertTrue(harness.place("r0h0").contains("r2h0"));
            List<String> hosts = harness.place("r0h0", 3, Set.of("r2h0"), List.of());
            assertEquals(3, new HashSet<>(hosts).size(), hosts.toString());
        }
    }

    @Test
    void aBlockWithoutAnyHostIsNotOneThatThePolicyPlaced() throws Exception {
        Harness harness = Harness.openWithSnapshot(nodes, controller, "leeward");
        Set<String> all = new HashSet<>();
        nodes.nodes().forEach(node -> all.add(node.getHostName()));
        assertEquals(List.of(), harness.place("r0h0", 1, all, List.of()));
        assertEquals(1, Harness.count(Reason.NO_CANDIDATE));
        assertEquals(0, Harness.count(Reason.RANKED));
    }

    @ParameterizedTest
    @ValueSource(strings = {"sinbad", "ccp", "rehdfs", "leeward"})
    void afterManyRejectedHostsTheDefaultPolicyContinues(String policy) throws Exception {
        FakeDataNodes many = new FakeDataNodes(4, 50);
        many.nodes().forEach(node -> node.getStorageInfos()[0].setUtilizationForTesting(1, 1, 0, 1));
        Configuration conf = Harness.conf(controller.address(), policy);
        conf.set("dfs.leeward.explain.sample", "1");
        conf.set("dfs.leeward.snapshot.max-age", "5s");
        try (FakeController other = new FakeController(new FakeNetwork(4, 50, GBPS, 2 * GBPS))) {
            conf.set("dfs.leeward.controller", other.address());
            Harness harness = Harness.open(many, conf);
            Eventually.holds("the first snapshot", () -> Jmx.hasSnapshot("LeewardInfo"));
            assertEquals(List.of(), harness.place("r0h0"), "no host has room");
            assertEquals(1, Harness.count(Reason.REJECTED_HOSTS));
            JsonNode decision = new ObjectMapper().readTree(Jmx.bean().findDecisions("").get(0));
            assertEquals(64, decision.get("steps").size());
            assertEquals(3, decision.get("steps_omitted").asInt(), "three copies, and 64 rejected hosts");
            // A host with room is found by the default policy.
            many.fill("r3h49", 0.5);
            assertEquals(List.of("r3h49"), harness.place("r0h0"));
        }
    }

    @Test
    void aCallForNoCopiesIsAnsweredAsByHdfs() throws Exception {
        Harness harness = Harness.openWithSnapshot(nodes, controller, "leeward");
        DatanodeStorageInfo[] targets = harness.policy.chooseTarget(
                "/file", 0, null, null, false, null, Harness.BLOCK, Harness.STORAGE,
                EnumSet.noneOf(AddBlockFlag.class));
        assertEquals(0, targets.length);
        assertEquals(0, Harness.count(Reason.RANKED) + Harness.count(Reason.ERROR));
    }

    @Test
    void smallBlocksGoToTheDefaultPolicy() throws Exception {
        Configuration conf = Harness.conf(controller.address(), "sinbad");
        conf.set("dfs.leeward.sinbad.threshold", "256MiB");
        Harness harness = Harness.open(nodes, conf);
        harness.awaitReason(Reason.SMALL);
        assertEquals(Set.of("r1", "r2", "r3"), harness.secondRacks("r0h0", 200).keySet());
    }

    @ParameterizedTest
    @ValueSource(strings = {"sinbad", "ccp", "rehdfs", "leeward"})
    void whileTheModeOfTheControllerIsOffTheDefaultPolicyPlaces(String policy) throws Exception {
        network.setMode("off");
        Harness harness = Harness.openWithSnapshot(nodes, controller, policy);
        assertEquals(Set.of("r1", "r2", "r3"), harness.secondRacks("r0h0", 200).keySet());
        assertEquals(200, Harness.count(Reason.OFF));
        assertEquals(0, Metric.of("PlacementsLocal"));
        JsonNode explained = new ObjectMapper().readTree(Jmx.bean().explain("r0h0", Harness.BLOCK, 3));
        assertEquals("ranked", explained.get("reason").asText(), "as the policy would place it");
        assertEquals("off", explained.get("mode").asText());
        assertEquals(3, explained.get("hosts").size());
        network.setMode("on");
        harness.awaitReason(Reason.RANKED);
        network.setMode("shadow");
        harness.awaitReason(Reason.OFF);
    }

    @Test
    void aCanaryOfTheControllerGivesThePolicyItsShareOfBlocks() throws Exception {
        network.setMode("canary:25%:client");
        Harness harness = Harness.openWithSnapshot(nodes, controller, "leeward");
        for (int block = 0; block < 400; block++) {
            assertEquals(3, harness.place("r0h0").size());
        }
        long ranked = Harness.count(Reason.RANKED);
        assertTrue(ranked > 50 && ranked < 150, "ranked: " + ranked);
        assertEquals(400, ranked + Harness.count(Reason.OFF));
    }

    @ParameterizedTest
    @CsvSource({"mean, 1048576", "full, 134217728"})
    void aNewBlockCountsWithTheAverageSizeOfStoredCopies(String setting, long expected) throws Exception {
        nodes.store("r1h1", 900, 1 << 20);
        nodes.store("r2h2", 100, 1 << 20);
        Configuration conf = Harness.conf(controller.address(), "leeward");
        conf.set("dfs.leeward.expected-size", setting);
        conf.set("dfs.leeward.snapshot.max-age", "5s");
        Harness harness = Harness.open(nodes, conf);
        Eventually.holds("the first snapshot", () -> Jmx.hasSnapshot("LeewardInfo"));
        harness.place("r0h0");
        harness.place(null, 1, Set.of(), List.of("r0h0", "r0h1"));
        Eventually.holds("two reports", () -> controller.commitments().size() == 2);
        JsonNode block = controller.commitments().get(0).get("replicas");
        assertEquals(expected + "B", block.get("size").asText());
        JsonNode copy = controller.commitments().get(1).get("replicas");
        assertEquals(Harness.BLOCK + "B", copy.get("size").asText(), "of a copy of a block, HDFS gives the size");
    }

    @Test
    void ofFewStoredCopiesTheAverageSizeDoesNotCount() throws Exception {
        nodes.store("r1h1", 999, 1 << 20);
        Harness harness = Harness.openWithSnapshot(nodes, controller, "leeward");
        harness.place("r0h0");
        Eventually.holds("a report", () -> !controller.commitments().isEmpty());
        assertEquals(Harness.BLOCK + "B", controller.commitments().get(0).get("replicas").get("size").asText());
    }

    /** On average a block has 1 MiB, and HDFS wants room for the largest one. */
    @ParameterizedTest
    @ValueSource(strings = {"sinbad", "ccp", "rehdfs", "leeward"})
    void hostsWithoutRoomForTheLargestBlockAreNotOffered(String policy) throws Exception {
        FakeDataNodes many = new FakeDataNodes(4, 50);
        many.nodes().forEach(node -> many.leave(node.getHostName(), Harness.BLOCK / 2));
        many.store("r0h0", 1_000, 1 << 20);
        for (String host : List.of("r1h3", "r1h49", "r2h7", "r2h8", "r3h11", "r3h12")) {
            many.leave(host, FakeDataNodes.CAPACITY / 2);
        }
        try (FakeController other = new FakeController(new FakeNetwork(4, 50, GBPS, 2 * GBPS))) {
            Configuration conf = Harness.conf(other.address(), policy);
            conf.set("dfs.leeward.explain.sample", "1");
            conf.set("dfs.leeward.snapshot.max-age", "5s");
            Harness harness = Harness.open(many, conf);
            Eventually.holds("the first snapshot", () -> Jmx.hasSnapshot("LeewardInfo"));
            for (int block = 0; block < 10; block++) {
                assertEquals(3, harness.place("r0h0").size());
                JsonNode decision = new ObjectMapper().readTree(Jmx.bean().findDecisions("").get(0));
                assertTrue(decision.get("steps").size() <= 4, decision.toString());
            }
            assertEquals(0, Harness.count(Reason.REJECTED_HOSTS));
        }
    }
}
