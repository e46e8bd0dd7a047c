package dev.leeward.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.leeward.hdfs.settings.SettingsReader;
import dev.leeward.hdfs.testing.Eventually;
import dev.leeward.hdfs.testing.FakeController;
import dev.leeward.hdfs.testing.FakeNetwork;
import dev.leeward.hdfs.testing.Jmx;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockPlacementPolicyDefault;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeStorageInfo;
import org.apache.hadoop.hdfs.server.blockmanagement.FakeDataNodes;
import org.apache.hadoop.hdfs.server.blockmanagement.LeewardBlockPlacementPolicy;
import org.apache.hadoop.hdfs.server.blockmanagement.LeewardErasureCodedPlacementPolicy;
import org.apache.hadoop.hdfs.server.blockmanagement.LeewardUpgradeDomainPlacementPolicy;
import org.apache.hadoop.test.GenericTestUtils.LogCapturer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;

/** Start and end of the policy: settings, daemons and beans. */
class LifecycleTest {

    private static final long GBPS = 1_000_000_000L;

    private final FakeDataNodes nodes = new FakeDataNodes(4, 4);
    private final FakeNetwork network = new FakeNetwork(4, 4, GBPS, 2 * GBPS)
            .measure("r1:downlink", 1_900_000_000L).measure("r3:downlink", 1_950_000_000L);
    private final FakeController controller;

    LifecycleTest() throws Exception {
        controller = new FakeController(network);
    }

    @AfterEach
    void stop() {
        controller.close();
    }

    @Test
    void invalidSettingsLeaveAllBlocksToTheDefaultPolicyUnlessTheyAreStrict() throws Exception {
        Configuration conf = Harness.conf(controller.address(), "fastest");
        Harness harness = Harness.open(nodes, conf);
        assertEquals(Set.of("r1", "r2", "r3"), harness.secondRacks("r0h0", 200).keySet());
        assertEquals("", Jmx.bean().getPolicy());
        assertEquals("settings", Jmx.bean().getFailure());
        String detail = Jmx.bean().getFailureDetail();
        assertTrue(detail.startsWith("dfs.leeward.policy: `fastest`: expected one of"), detail);
        assertEquals("", Jmx.bean().explain("r0h0", Harness.BLOCK, 3));
        assertFalse(Metric.isRegistered());
        conf.set("dfs.leeward.strict", "true");
        IllegalArgumentException error =
                assertThrows(IllegalArgumentException.class, () -> Harness.open(nodes, conf));
        assertTrue(error.getMessage().startsWith("dfs.leeward.policy: `fastest`"), error.getMessage());
    }

    @Test
    void aFaultAtTheStartLeavesAllBlocksToTheDefaultPolicyUnlessSettingsAreStrict() {
        Configuration broken = new Configuration() {
            @Override
            public Map<String, String> getPropsWithPrefix(String prefix) {
                throw new IllegalStateException("a fault");
            }
        };
        assertEquals(3, Harness.open(nodes, broken).place("r0h0").size());
        assertEquals("settings", Jmx.bean().getFailure());
        String detail = Jmx.bean().getFailureDetail();
        assertTrue(detail.endsWith("IllegalStateException: a fault"), detail);
        broken.set("dfs.leeward.strict", "true");
        assertThrows(IllegalStateException.class, () -> Harness.open(nodes, broken));
    }

    @Test
    void policiesOfTheBalancerTheMoverAndFsckStartNothing() {
        Configuration conf = Harness.conf(controller.address(), "leeward");
        // The Balancer requires that they extend the default policy.
        for (BlockPlacementPolicyDefault policy : List.of(
                new LeewardBlockPlacementPolicy(), new LeewardUpgradeDomainPlacementPolicy(),
                new LeewardErasureCodedPlacementPolicy())) {
            // As Mover, then as Balancer and fsck.
            policy.initialize(conf, null, null, null);
            policy.initialize(conf, null, nodes.map(), null);
            DatanodeInfo[] copies = {nodes.node("r0h0"), nodes.node("r0h1"), nodes.node("r1h0")};
            assertTrue(policy.isMovable(List.of(copies), copies[0], nodes.node("r2h0")));
            policy.verifyBlockPlacement(copies, 3);
        }
        assertEquals(0, daemons());
        assertEquals(0, controller.requestCount());
    }

    @Test
    void policiesWithTheSameSettingsShareOneDaemonWhichEndsWithThem() throws Exception {
        Configuration conf = Harness.conf(controller.address(), "leeward");
        Harness one = Harness.open(new FakeDataNodes(4, 4), conf);
        Harness two = Harness.open(new FakeDataNodes(4, 4), conf);
        two.awaitReason(Reason.RANKED);
        assertEquals(4, daemons(), "threads for snapshots, for reports, and for the DataNodes of each policy");
        one.place("r0h0");
        one = null;
        two = null;
        Harness.forget();
        // As if HDFS had replaced the policy by one of its own.
        Eventually.holds("the end of the daemons and of the bean", () -> {
            System.gc();
            return daemons() == 0 && !Jmx.hasBean();
        });
        assertFalse(Metric.isRegistered(), "the source of metrics ends too");
    }

    @Test
    void aFaultIsInTheLogWithWhatItMeans() throws Exception {
        Configuration conf = Harness.conf(controller.address(), "leeward");
        conf.set("dfs.leeward.snapshot.max-age", "5s");
        Engine engine = Engine.open(SettingsReader.read(conf), nodes.map(), Engine.Layout.CHAIN);
        Eventually.holds("a snapshot", () -> Jmx.hasSnapshot("LeewardInfo"));
        Decision decision = engine.begin("/file", nodes.node("r0h0"), 1, 1, List.of(), Set.of());
        decision.take(new DatanodeStorageInfo[] {null});
        LogCapturer log = LogCapturer.captureLogs(LoggerFactory.getLogger(Engine.class));
        try {
            engine.end(decision);
            assertTrue(log.getOutput().contains("neither counted nor reported"), log.getOutput());
            log.clearOutput();
            // At most one a minute.
            engine.end(decision);
            assertEquals("", log.getOutput());
        } finally {
            log.stopCapturing();
        }
    }

    @Test
    void theBeanOfAPolicyThatWasReplacedIsThatOfTheLaterOne() throws Exception {
        Harness.open(nodes, Harness.conf(controller.address(), "sinbad"));
        Harness harness = Harness.open(nodes, Harness.conf(controller.address(), "ccp"));
        // The earlier policy is garbage; its end leaves the bean alone.
        for (int collection = 0; collection < 5; collection++) {
            System.gc();
            Thread.sleep(20);
            assertEquals("ccp", Jmx.bean().getPolicy());
        }
        assertEquals(3, harness.place("r0h0").size());
        Harness.open(nodes, Harness.conf(controller.address(), "default"));
        assertFalse(Jmx.hasBean() || Metric.isRegistered(), "HDFS places all blocks");
    }

    private int daemons() {
        return (int) Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().endsWith(controller.address()))
                .count();
    }
}
