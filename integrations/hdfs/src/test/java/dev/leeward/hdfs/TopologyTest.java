package dev.leeward.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.leeward.hdfs.testing.Eventually;
import dev.leeward.hdfs.testing.FakeController;
import dev.leeward.hdfs.testing.FakeNetwork;
import dev.leeward.hdfs.testing.Jmx;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.net.DFSNetworkTopology;
import org.apache.hadoop.hdfs.server.blockmanagement.FakeDataNodes;
import org.apache.hadoop.net.Node;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** DataNodes that the controller does not have, and those that join and leave. */
class TopologyTest {

    private static final long GBPS = 1_000_000_000L;

    private final FakeDataNodes nodes = new FakeDataNodes(4, 4);
    private final FakeNetwork network = new FakeNetwork(4, 4, GBPS, 2 * GBPS)
            .measure("r1:downlink", 1_900_000_000L).measure("r3:downlink", 1_950_000_000L);
    private final FakeController controller;

    TopologyTest() throws Exception {
        controller = new FakeController(network);
    }

    @AfterEach
    void stop() {
        controller.close();
    }

    @Test
    void aSnapshotOfAnotherClusterIsItsOwnReason() throws Exception {
        FakeDataNodes others = new FakeDataNodes(0, 0);
        for (int host = 0; host < 8; host++) {
            others.add("/x" + host / 2, "r9h" + host);
        }
        Harness harness = Harness.openWithSnapshot(others, controller, "sinbad");
        assertEquals(3, harness.place("r9h0").size());
        assertEquals(1, Harness.count(Reason.OTHER_CLUSTER));
        assertEquals(8, Jmx.bean().getUnknownDataNodes().size());
    }

    @Test
    void hostsThatTheControllerDoesNotKnowGetTheirShareAndAreCounted() throws Exception {
        nodes.add("/r2", "r2h90");
        nodes.add("/r1", "r1h91");
        nodes.add("/r7", "r3h0x");
        nodes.add("/r3", "r0h3x");
        Harness harness = Harness.openWithSnapshot(nodes, controller, "sinbad");
        int unknown = 0;
        int third = 0;
        for (int block = 0; block < 800; block++) {
            List<String> hosts = harness.place("r0h0");
            for (String host : hosts) {
                unknown += Set.of("r2h90", "r1h91", "r3h0x", "r0h3x").contains(host) ? 1 : 0;
            }
            third += Set.of("r2h90", "r1h91", "r0h3x").contains(hosts.get(2)) ? 1 : 0;
        }
        assertEquals(4, Jmx.bean().getUnknownDataNodes().size());
        // HDFS draws 4 of 16 hosts for the second copy: 200. The third joins it in a rack of five, of which one is
        // unknown: 150 of those beside a known host.
        assertTrue(unknown > 280 && unknown < 420, "copies on 4 unknown hosts of 20: " + unknown);
        assertTrue(third > 95 && third < 205, "third copies on unknown hosts: " + third);
        assertTrue(Harness.count(Reason.UNKNOWN_HOST) > 250);
        assertEquals(800, Harness.count(Reason.UNKNOWN_HOST) + Harness.count(Reason.RANKED));
    }

    @Test
    void aHostInAnotherRackThanTheControllersIsUnknown() throws Exception {
        FakeDataNodes moved = new FakeDataNodes(3, 4);
        moved.add("/r0", "r3h1");
        Harness.openWithSnapshot(moved, controller, "leeward").place("r0h0");
        assertEquals(List.of("r3h1"), Jmx.bean().getUnknownDataNodes());
    }

    @Test
    void aDataNodeThatJoinsIsACandidateSoonAndOneThatLeftIsNotFromThenOn() throws Exception {
        FakeDataNodes few = new FakeDataNodes(2, 2);
        Harness harness = Harness.openWithSnapshot(few, controller, "leeward");
        assertEquals("r1", Harness.rack(harness.place("r0h0").get(1)));
        few.add("/r2", "r2h0");
        harness.awaitDataNodes(5);
        assertEquals("r2h0", harness.place("r0h0", 2, Set.of(), List.of()).get(1));
        few.map().remove(few.node("r2h0"));
        few.map().add(few.add("/r3", "r3h0"));
        for (int block = 0; block < 20; block++) {
            assertFalse(harness.place("r0h0").contains("r2h0"));
        }
    }

    /** A topology of thousands of DataNodes, which takes long to read. */
    public static final class SlowTopology extends DFSNetworkTopology {
        private static volatile CountDownLatch gate = new CountDownLatch(0);
        private static final AtomicInteger WAITING = new AtomicInteger();

        @Override
        public List<Node> getLeaves(String location) {
            WAITING.incrementAndGet();
            try {
                gate.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
            return super.getLeaves(location);
        }
    }

    @Test
    void whileTheDataNodesAreReadDecisionsContinueWithTheEarlierView() throws Exception {
        Configuration conf = new Configuration(false);
        conf.setClass("dfs.net.topology.impl", SlowTopology.class, DFSNetworkTopology.class);
        FakeDataNodes slow = new FakeDataNodes(2, 2, conf);
        Harness harness = Harness.openWithSnapshot(slow, controller, "leeward");
        SlowTopology.gate = new CountDownLatch(1);
        try {
            int before = SlowTopology.WAITING.get();
            slow.add("/r2", "r2h0");
            Eventually.holds("a read", () -> SlowTopology.WAITING.get() > before);
            assertTimeoutPreemptively(Duration.ofSeconds(4), () -> {
                for (int block = 0; block < 20; block++) {
                    assertEquals("r1", Harness.rack(harness.place("r0h0").get(1)));
                }
            });
        } finally {
            SlowTopology.gate.countDown();
        }
        harness.awaitDataNodes(5);
        assertEquals("r2h0", harness.place("r0h0", 2, Set.of(), List.of()).get(1));
    }

    /** Their names are those of an import of the cluster. */
    @Test
    void racksOfTheSameLastNameAreKnownByTheirWholeLocations() throws Exception {
        FakeDataNodes same = new FakeDataNodes(0, 0);
        for (int rack = 0; rack < 4; rack++) {
            String location = "/dc" + rack / 2 + "/row/rack" + rack % 2;
            network.rename("r" + rack, location.substring(1).replace('/', '.'));
            same.add(location, "r" + rack + "h0");
            same.add(location, "r" + rack + "h1");
        }
        Harness harness = Harness.openWithSnapshot(same, controller, "leeward");
        assertEquals(List.of(), Jmx.bean().getUnknownDataNodes());
        assertEquals("r2", Harness.rack(harness.place("r0h0").get(1)), "the coolest rack");
        assertEquals(1, Harness.count(Reason.RANKED));
    }
}
