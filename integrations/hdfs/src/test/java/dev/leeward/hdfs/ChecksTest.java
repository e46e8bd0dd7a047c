package dev.leeward.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.leeward.hdfs.testing.Eventually;
import dev.leeward.hdfs.testing.FakeController;
import dev.leeward.hdfs.testing.FakeNetwork;
import dev.leeward.hdfs.testing.Jmx;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.server.blockmanagement.FakeDataNodes;
import org.apache.hadoop.hdfs.server.blockmanagement.LeewardErasureCodedPlacementPolicy;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** HDFS's own checks of each choice: busy DataNodes, and those without heartbeats, behind the links that are idle. */
class ChecksTest {

    private static final long GBPS = 1_000_000_000L;
    private static final Set<String> REJECTED = Set.of("r1h0", "r1h1", "r2h2", "r2h3", "r3h0", "r3h1");

    private final FakeDataNodes nodes = new FakeDataNodes(4, 4);
    private final FakeNetwork network = new FakeNetwork(4, 4, GBPS, 2 * GBPS);
    private final FakeController controller;

    ChecksTest() throws Exception {
        nodes.nodes().forEach(node -> network.measure(node.getHostName() + ":ingress", GBPS / 2));
        REJECTED.forEach(host -> network.measure(host + ":ingress", 0L));
        for (String busy : List.of("r1h0", "r1h1", "r2h2")) {
            nodes.makeBusy(busy, 100);
        }
        for (String stale : List.of("r2h3", "r3h0", "r3h1")) {
            nodes.makeStale(stale);
        }
        controller = new FakeController(network);
    }

    @AfterEach
    void stop() {
        controller.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"sinbad", "ccp", "rehdfs", "leeward"})
    void noCopyGoesToABusyOrStaleDataNode(String policy) throws Exception {
        Harness harness = Harness.openWithSnapshot(nodes, controller, policy);
        for (int block = 0; block < 200; block++) {
            List<String> hosts = harness.place(block % 2 == 0 ? "r0h0" : "r3h0");
            assertEquals(3, new HashSet<>(hosts).size(), hosts.toString());
            assertTrue(hosts.stream().noneMatch(REJECTED::contains), hosts.toString());
        }
        assertEquals(200, Harness.count(Reason.RANKED));
    }

    @ParameterizedTest
    @ValueSource(strings = {"sinbad", "ccp", "rehdfs", "leeward"})
    void noChunkGoesToABusyOrStaleDataNode(String policy) throws Exception {
        Configuration conf = Harness.conf(controller.address(), policy);
        conf.set("dfs.leeward.snapshot.max-age", "5s");
        Harness harness = new Harness(nodes, nodes.open(new LeewardErasureCodedPlacementPolicy(), conf));
        Eventually.holds("the first snapshot", () -> Jmx.hasSnapshot("LeewardErasureCodedInfo"));
        for (int stripe = 0; stripe < 50; stripe++) {
            List<String> hosts = harness.place("r0h0", 9, Set.of(), List.of());
            assertEquals(9, new HashSet<>(hosts).size(), hosts.toString());
            assertTrue(hosts.stream().noneMatch(REJECTED::contains), hosts.toString());
        }
        long ranked = Jmx.bean("LeewardErasureCodedInfo").getDecisionsByReason().get("ranked");
        assertTrue(ranked >= 45, "ranked: " + ranked);
    }
}
