package dev.leeward.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.leeward.hdfs.snapshot.Follower;
import dev.leeward.hdfs.testing.Eventually;
import dev.leeward.hdfs.testing.FakeController;
import dev.leeward.hdfs.testing.FakeController.Behavior;
import dev.leeward.hdfs.testing.FakeNetwork;
import dev.leeward.hdfs.testing.Jmx;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.server.blockmanagement.FakeDataNodes;
import org.apache.hadoop.test.GenericTestUtils;
import org.apache.hadoop.test.GenericTestUtils.LogCapturer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/** The controller is away, hangs, lies or comes back. */
class OutageTest {

    private static final long GBPS = 1_000_000_000L;
    private static final Logger LOG = LoggerFactory.getLogger(Follower.class);

    private final FakeDataNodes nodes = new FakeDataNodes(4, 4);
    private final FakeNetwork network = new FakeNetwork(4, 4, GBPS, 2 * GBPS)
            .measure("r1:downlink", 1_900_000_000L).measure("r3:downlink", 1_950_000_000L);
    private final FakeController controller;

    OutageTest() throws Exception {
        controller = new FakeController(network);
    }

    @AfterEach
    void stop() {
        controller.close();
    }

    private static LogCapturer capture() {
        GenericTestUtils.setLogLevel(LOG, Level.INFO);
        return LogCapturer.captureLogs(LOG);
    }

    private static void stop(LogCapturer log) {
        log.stopCapturing();
        GenericTestUtils.setLogLevel(LOG, Level.ERROR);
    }

    @ParameterizedTest
    @CsvSource({"HANGS, TIMEOUT", "DRIPS, TIMEOUT", "GARBAGE, INVALID", "BUSY, STATUS", "REPEATS, STALE",
        "STUCK, STATUS"})
    void aControllerThatMisbehavesLeavesBlocksToTheDefaultPolicyAndIsUsedAgainLater(Behavior behavior, Reason reason)
            throws Exception {
        Harness harness = Harness.open(nodes, Harness.withoutHysteresis(controller));
        harness.awaitReason(Reason.RANKED);
        assertEquals(Map.of("r2", 30), harness.secondRacks("r0h0", 30));
        controller.behave(behavior);
        harness.awaitReason(reason);
        assertEquals(Set.of("r1", "r2", "r3"), harness.secondRacks("r0h0", 200).keySet());
        controller.behave(Behavior.WELL);
        harness.awaitReason(Reason.RANKED);
        assertEquals(Map.of("r2", 30), harness.secondRacks("r0h0", 30));
    }

    @Test
    void aControllerThatDiesAndComesBackIsUsedAgain() throws Exception {
        Harness harness = Harness.openWithSnapshot(nodes, controller, "leeward");
        int port = controller.port();
        controller.close();
        harness.awaitReason(Reason.UNREACHABLE);
        assertEquals(3, harness.place("r0h0").size());
        try (FakeController again = new FakeController(network, port, null)) {
            harness.awaitReason(Reason.RANKED);
            assertTrue(again.requestCount() > 0);
        }
    }

    @Test
    void aControllerThatComesBackWithAnotherClusterOfTheSameVersionIsFollowed() throws Exception {
        Harness harness = Harness.open(nodes, Harness.withoutHysteresis(controller));
        harness.awaitReason(Reason.RANKED);
        assertEquals(Map.of("r2", 30), harness.secondRacks("r0h0", 30));
        int port = controller.port();
        controller.close();
        harness.awaitReason(Reason.UNREACHABLE);
        // Five hosts a rack: all links have other numbers, and then one: fewer links than before.
        for (int hosts : new int[] {5, 1}) {
            FakeNetwork other = new FakeNetwork(4, hosts, GBPS, 2 * GBPS)
                    .measure("r2:downlink", 1_900_000_000L).measure("r3:downlink", 1_950_000_000L);
            try (FakeController again = new FakeController(other, port, null)) {
                Eventually.holds("its snapshots", () -> Jmx.bean().getFailure().isEmpty() && again.requestCount() > 2);
                if (hosts == 5) {
                    harness.awaitReason(Reason.RANKED);
                    assertEquals(Map.of("r1", 30), harness.secondRacks("r0h0", 30));
                    assertEquals(0, Jmx.bean().getUnknownDataNodes().size());
                } else {
                    harness.awaitReason(Reason.OTHER_CLUSTER);
                    assertEquals(3, harness.place("r0h0").size());
                }
                assertEquals(0, Harness.count(Reason.ERROR));
            }
        }
    }

    @Test
    void aControllerThatFlapsDoesNotFloodTheLog() throws Exception {
        LogCapturer log = capture();
        try {
            controller.behave(Behavior.FLAPS);
            Harness.open(nodes, Harness.conf(controller.address(), "leeward"));
            Eventually.holds("ten outages", () -> controller.requestCount() > 20);
            // Daemons of earlier tests may still run.
            String address = "localhost:" + controller.port();
            long lines = log.getOutput().lines().filter(line -> line.contains(address)).count();
            assertTrue(lines >= 1 && lines <= 2, log.getOutput());
        } finally {
            stop(log);
        }
    }

    @Test
    void theTokenNeverReachesTheLogOrJmxAlsoIfAProxyRepeatsIt() throws Exception {
        controller.behave(Behavior.ECHOES);
        Configuration conf = Harness.conf(controller.address(), "leeward");
        conf.set("dfs.leeward.token", "lw_secret-of-this-test");
        LogCapturer log = capture();
        try {
            Harness.open(nodes, conf).awaitReason(Reason.STATUS);
            String detail = Jmx.bean().getFailureDetail();
            assertTrue(detail.contains("status 502: ") && detail.contains("route: Bearer ..."), detail);
            assertTrue(detail.chars().noneMatch(Character::isISOControl), detail);
            assertFalse(log.getOutput().contains("lw_secret"), log.getOutput());
        } finally {
            stop(log);
        }
    }

    @Test
    void ofSeveralControllersOneIsEnough() throws Exception {
        try (FakeController other = new FakeController(network)) {
            controller.behave(Behavior.BUSY);
            Harness harness = Harness.open(nodes, Harness.conf(controller.address() + "," + other.address(), "sinbad"));
            harness.awaitReason(Reason.RANKED);
            assertTrue(other.requestCount() > 0);
        }
    }

    @Test
    void placementsReachTheLeaderWhileAFollowerAnswersSnapshots() throws Exception {
        controller.behave(Behavior.FOLLOWS);
        try (FakeController leader = new FakeController(network)) {
            Configuration conf = Harness.conf(controller.address() + "," + leader.address(), "leeward");
            Harness harness = Harness.open(nodes, conf);
            harness.awaitReason(Reason.RANKED);
            harness.place("r0h0");
            Eventually.holds("a report", () -> !leader.commitments().isEmpty() && Metric.of("ReportsWaiting") == 0);
            assertEquals(0, Metric.of("ReportsRejected"));
            assertEquals(0, leader.requestCount(), "the follower answers snapshots");
        }
    }

    @ParameterizedTest
    @CsvSource({"ECHOES, ", "GARBAGE, ", "REFUSES, ", "WELL, lw_of-this-test"})
    void reportsLeaveAnAddressThatAnswersWithAnError(Behavior behavior, String required) throws Exception {
        controller.behave(behavior);
        controller.requireToken(required);
        try (FakeController other = new FakeController(network)) {
            Configuration conf = Harness.conf(controller.address() + "," + other.address(), "leeward");
            Harness harness = Harness.open(nodes, conf);
            harness.awaitReason(Reason.RANKED);
            Eventually.holds("a report", () -> {
                harness.place("r0h0");
                return !other.commitments().isEmpty();
            });
            assertEquals(0, controller.commitments().size());
        }
    }

    @Test
    void aWrongTokenIsItsOwnReason() throws Exception {
        controller.requireToken("right");
        Configuration conf = Harness.conf(controller.address(), "leeward");
        conf.set("dfs.leeward.token", "wrong");
        Harness harness = Harness.open(nodes, conf);
        harness.awaitReason(Reason.UNAUTHORIZED);
        conf.set("dfs.leeward.token", "right");
        Harness.open(nodes, conf).awaitReason(Reason.RANKED);
    }

    /** An operator replaces the token at the controller first, and then in the file. */
    @Test
    void aTokenThatIsReplacedInItsFileIsUsedWithoutARestart(@TempDir Path folder) throws Exception {
        Path file = folder.resolve("token");
        Files.writeString(file, "lw_first\n");
        controller.requireToken("lw_first");
        Configuration conf = Harness.conf(controller.address(), "leeward");
        conf.set("dfs.leeward.token.file", file.toString());
        Harness harness = Harness.open(nodes, conf);
        harness.awaitReason(Reason.RANKED);
        controller.requireToken("lw_second");
        Files.delete(file);
        harness.awaitReason(Reason.UNAUTHORIZED);
        String detail = Jmx.bean().getFailureDetail();
        assertTrue(detail.contains("status 401") && detail.contains("; dfs.leeward.token.file: `"), detail);
        assertFalse(detail.contains("lw_"), detail);
        Files.writeString(file, "lw_second\n");
        harness.awaitReason(Reason.RANKED);
        int before = controller.commitments().size();
        harness.place("r0h0");
        Eventually.holds("a report with the second token", () -> controller.commitments().size() > before);
    }

    @Test
    void withoutAControllerAtTheAddressTheNameNodeStartsAndPlaces() throws Exception {
        controller.close();
        Harness harness = Harness.open(nodes, Harness.conf("http://127.0.0.1:" + controller.port(), "ccp"));
        harness.awaitReason(Reason.UNREACHABLE);
        assertEquals(3, harness.place("r0h0").size());
    }

    @Test
    void capacitiesOfAStaleSnapshotStillServeCcp() throws Exception {
        Harness harness = Harness.open(nodes, Harness.conf(controller.address(), "ccp"));
        harness.awaitReason(Reason.RANKED);
        controller.behave(Behavior.HANGS);
        Eventually.holds("a stale snapshot", () -> Jmx.bean().getSnapshotAgeMs() > 1_500);
        assertEquals(-1, Jmx.bean().getSnapshotMaxAgeMs(), "any age serves it");
        long before = Harness.count(Reason.RANKED);
        harness.place("r0h0");
        assertEquals(before + 1, Harness.count(Reason.RANKED));
    }

    @Test
    void theStateOfHostsOfAStaleSnapshotNoLongerCounts() throws Exception {
        network.setUp("r2h0", false);
        Harness harness = Harness.open(nodes, Harness.conf(controller.address(), "ccp"));
        harness.awaitReason(Reason.RANKED);
        controller.behave(Behavior.HANGS);
        Eventually.holds("a copy on a host that was down", () -> harness.place("r0h0").contains("r2h0"));
        assertTrue(Jmx.bean().getSnapshotAgeMs() > 1_000, "age: " + Jmx.bean().getSnapshotAgeMs());
    }

    @ParameterizedTest
    @ValueSource(strings = {"sinbad", "ccp", "leeward"})
    void numbersThatNoNetworkHasStillGiveValidPlacements(String policy) throws Exception {
        long[] numbers = {0, 1, -1, 1L << 40, 1L << 62, Long.MAX_VALUE, -Long.MAX_VALUE};
        Random random = new Random(3);
        Harness harness = Harness.openWithSnapshot(nodes, controller, policy);
        for (int round = 0; round < 20; round++) {
            for (int rack = 0; rack < 4; rack++) {
                for (String link : List.of(":uplink", ":downlink", "h0:ingress", "h0:egress", "h3:ingress")) {
                    network.setCapacity("r" + rack + link, numbers[random.nextInt(numbers.length)]);
                    network.measure("r" + rack + link, numbers[random.nextInt(numbers.length)]);
                    network.pend("r" + rack + link, numbers[random.nextInt(numbers.length)]);
                }
            }
            long epoch = Jmx.bean().getSnapshotEpoch();
            Eventually.holds("a snapshot with other numbers", () -> Jmx.bean().getSnapshotEpoch() > epoch);
            for (int block = 0; block < 20; block++) {
                List<String> hosts = harness.place("r0h0");
                assertEquals(3, new HashSet<>(hosts).size(), hosts.toString());
                assertEquals(2, hosts.stream().map(Harness::rack).distinct().count(), hosts.toString());
            }
        }
        assertEquals(0, Harness.count(Reason.ERROR));
        assertEquals("", Jmx.bean().getFailure());
    }
}
