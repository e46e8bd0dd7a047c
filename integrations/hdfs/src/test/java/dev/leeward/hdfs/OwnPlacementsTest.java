package dev.leeward.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.leeward.hdfs.testing.Eventually;
import dev.leeward.hdfs.testing.FakeController;
import dev.leeward.hdfs.testing.FakeController.Behavior;
import dev.leeward.hdfs.testing.FakeNetwork;
import dev.leeward.hdfs.testing.Jmx;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.server.blockmanagement.FakeDataNodes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Placements of the policy that no snapshot shows yet, and their reports. */
class OwnPlacementsTest {

    private static final long GBPS = 1_000_000_000L;

    private final FakeDataNodes nodes = new FakeDataNodes(4, 4);
    private final FakeNetwork network = new FakeNetwork(4, 4, GBPS, 2 * GBPS)
            .measure("r1:downlink", 1_900_000_000L).measure("r3:downlink", 1_950_000_000L);
    private final FakeController controller;

    OwnPlacementsTest() throws Exception {
        controller = new FakeController(network);
    }

    @AfterEach
    void stop() {
        controller.close();
    }

    @Test
    void betweenTwoReportsBlocksDoNotAllGoToOneRack() throws Exception {
        network.measure("r1:downlink", 200_000_000L).measure("r3:downlink", 100_000_000L);
        controller.setCounts(false);
        for (String policy : List.of("sinbad", "leeward")) {
            Harness harness = Harness.openWithSnapshot(nodes, controller, policy);
            Map<String, Integer> counts = harness.secondRacks("r0h0", 60);
            assertEquals(Set.of("r1", "r2", "r3"), counts.keySet(), policy);
            counts.values().forEach(count -> assertTrue(count >= 8, policy + counts));
        }
    }

    @Test
    void blocksPressOnTheLinkIntoTheirPodToo() throws Exception {
        FakeNetwork pods = new FakeNetwork(6, 4, GBPS, 10 * GBPS).addPods(2, 2 * GBPS)
                .measure("p0:downlink", 1_900_000_000L).measure("p2:downlink", GBPS / 2);
        try (FakeController other = new FakeController(pods)) {
            other.setCounts(false);
            Harness harness = Harness.openWithSnapshot(new FakeDataNodes(6, 4), other, "sinbad");
            List<Integer> chosen = new ArrayList<>();
            for (int block = 0; block < 4; block++) {
                chosen.add(Integer.parseInt(Harness.rack(harness.place("r0h0").get(1)).substring(1)) / 2);
            }
            // A block counts with 1 Gb/s, the rate of its writer. The links into the racks stay wide.
            assertEquals(List.of(1, 2, 1, 2), chosen, "pods of the second copies");
        }
    }

    @Test
    void placementsAreReportedInOrderUnderOneClientAndLeaveWhenTheyAreCounted() throws Exception {
        Harness harness = Harness.openWithSnapshot(nodes, controller, "leeward");
        for (int block = 0; block < 25; block++) {
            harness.place("r0h2");
        }
        Eventually.holds("25 reports", () -> controller.commitments().size() == 25);
        long before = 0;
        for (JsonNode body : controller.commitments()) {
            JsonNode replicas = body.get("replicas");
            assertEquals(3, body.get("hosts").size());
            assertEquals("r0h2", replicas.get("writer").asText());
            assertEquals(Harness.BLOCK + "B", replicas.get("size").asText());
            assertTrue(replicas.get("sequence").asLong() > before);
            assertTrue(replicas.get("sequence").asLong() < 1L << 53);
            before = replicas.get("sequence").asLong();
        }
        Eventually.holds("no local placements", () -> Metric.of("PlacementsLocal") == 0);
        // A snapshot may count a placement before the answer to its report is here.
        Eventually.holds("25 accepted reports", () -> Metric.of("ReportsAccepted") == 25);
    }

    @ParameterizedTest
    @CsvSource({"paper, 0", "rate, 3"})
    void withThePapersRuleOwnPressureLeavesWhenTheSnapshotHasIt(String hysteresis, int left) throws Exception {
        Configuration conf = Harness.conf(controller.address(), "sinbad");
        conf.set("dfs.leeward.snapshot.max-age", "5s");
        conf.set("dfs.leeward.sinbad.hysteresis", hysteresis);
        Harness harness = Harness.open(nodes, conf);
        Eventually.holds("the first snapshot", () -> Jmx.hasSnapshot("LeewardInfo"));
        for (int block = 0; block < 3; block++) {
            harness.place("r0h0");
        }
        assertEquals(3, Harness.count(Reason.RANKED));
        Eventually.holds("3 accepted reports", () -> Metric.of("ReportsAccepted") == 3);
        int requests = controller.requestCount();
        Eventually.holds("later snapshots", () -> controller.requestCount() > requests + 3);
        assertEquals(left, Metric.of("PlacementsLocal"));
    }

    @Test
    void rejectedPlacementsLeaveWithTheNextWindowOfTheirLinks() throws Exception {
        FakeNetwork slow = new FakeNetwork(4, 4, GBPS / 100, GBPS / 50);
        try (FakeController other = new FakeController(slow)) {
            Harness harness = Harness.openWithSnapshot(nodes, other, "leeward");
            other.behave(Behavior.REFUSES);
            for (int block = 0; block < 5; block++) {
                harness.place("r0h0");
            }
            Eventually.holds("5 rejections", () -> Metric.of("ReportsRejected") == 5);
            assertEquals(5, Metric.of("PlacementsLocal"), "a block takes minutes on these links");
            slow.advance(2_000);
            int requests = other.requestCount();
            Eventually.holds("later snapshots", () -> other.requestCount() > requests + 3);
            assertEquals(0, Metric.of("PlacementsLocal"));
        }
    }

    @Test
    void aRejectedPlacementStillCountsAfterALaterOneIsAccepted() throws Exception {
        FakeNetwork slow = new FakeNetwork(4, 4, GBPS / 100, GBPS / 50);
        try (FakeController other = new FakeController(slow)) {
            Harness harness = Harness.openWithSnapshot(nodes, other, "leeward");
            other.setLastSequence(1L << 53);
            harness.place("r0h0");
            Eventually.holds("a rejection", () -> Metric.of("ReportsRejected") == 1);
            other.setLastSequence(0);
            harness.place("r0h0");
            Eventually.holds("an accepted report", () -> Metric.of("ReportsAccepted") == 1);
            int requests = other.requestCount();
            Eventually.holds("later snapshots", () -> other.requestCount() > requests + 3);
            assertEquals(1, Metric.of("PlacementsLocal"), "the accepted one has left, and the other has not");
            slow.advance(2_000);
            Eventually.holds("no local placements", () -> Metric.of("PlacementsLocal") == 0);
        }
    }

    @Test
    void sequencesRiseOverARestartWithAClockThatWasSetBack() throws Exception {
        Configuration conf = Harness.conf(controller.address(), "leeward");
        long inAnHour = (System.currentTimeMillis() + 3_600_000) * 1000;
        controller.setLastSequence(inAnHour);
        network.count(conf.get("dfs.leeward.client"), inAnHour);
        Harness harness = Harness.open(nodes, conf);
        harness.awaitReason(Reason.RANKED);
        harness.place("r0h0");
        Eventually.holds("reports", () -> Metric.of("ReportsWaiting") == 0 && Metric.of("ReportsAccepted") > 0);
        assertEquals(0, Metric.of("ReportsRejected"));
    }

    @Test
    void aControllerThatHangsDropsReportsAndDelaysNoPlacement() throws Exception {
        Configuration conf = Harness.conf(controller.address(), "leeward");
        conf.set("dfs.leeward.report.queue", "5");
        Harness harness = Harness.open(nodes, conf);
        harness.awaitReason(Reason.RANKED);
        controller.behave(Behavior.HANGS);
        long start = System.nanoTime();
        for (int block = 0; block < 200; block++) {
            assertEquals(3, harness.place("r0h0").size());
        }
        long ms = (System.nanoTime() - start) / 1_000_000;
        assertTrue(ms < 2_000, "200 placements took " + ms + " ms");
        assertTrue(Metric.of("ReportsDropped") > 100, "dropped: " + Metric.of("ReportsDropped"));
    }
}
