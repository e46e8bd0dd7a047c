package dev.leeward.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.leeward.hdfs.testing.FakeController;
import dev.leeward.hdfs.testing.FakeNetwork;
import dev.leeward.hdfs.testing.Jmx;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import javax.management.AttributeNotFoundException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.server.blockmanagement.FakeDataNodes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Metrics, and decisions with their reasons. */
class ExplanationTest {

    private static final long GBPS = 1_000_000_000L;

    private final FakeDataNodes nodes = new FakeDataNodes(4, 4);
    private final FakeNetwork network = new FakeNetwork(4, 4, GBPS, 2 * GBPS)
            .measure("r1:downlink", 1_900_000_000L).measure("r3:downlink", 1_950_000_000L);
    private final FakeController controller;

    ExplanationTest() throws Exception {
        controller = new FakeController(network);
    }

    @AfterEach
    void stop() {
        controller.close();
    }

    @Test
    void metricsCountDecisionsAndTheTimeInThePolicy() throws Exception {
        Harness harness = Harness.openWithSnapshot(nodes, controller, "leeward");
        for (int block = 0; block < 10; block++) {
            harness.place("r0h0");
        }
        assertEquals(10, Metric.of("Decisions_ranked"));
        assertEquals(10, Jmx.bean().getDecisionsOfLastHour().get("ranked"));
        assertEquals(0, Jmx.bean().getDecisionsOfLastHour().get("off"));
        assertEquals(10, Metric.of("PlaceTimeNumOps"));
        assertTrue(Metric.of("PlaceTimeP99Ns") >= Metric.of("PlaceTimeP50Ns") && Metric.of("PlaceTimeP50Ns") > 0);
        assertTrue(Metric.of("SnapshotAgeMs") >= 0 && Metric.of("SnapshotAgeMs") < 5_000);
        assertTrue(Metric.of("SnapshotsWhole") > 0);
        assertEquals("leeward", Jmx.bean().getPolicy());
        assertEquals(16, Jmx.bean().getDataNodes());
        assertEquals(5_000, Jmx.bean().getSnapshotMaxAgeMs());
    }

    @Test
    void aSampleOfDecisionsIsStoredWithItsCandidates() throws Exception {
        Configuration conf = Harness.withoutHysteresis(controller);
        conf.set("dfs.leeward.explain.sample", "1");
        conf.set("dfs.leeward.explain.stored", "4");
        Harness harness = Harness.open(nodes, conf);
        harness.awaitReason(Reason.RANKED);
        for (int block = 0; block < 10; block++) {
            harness.place("r0h0");
        }
        List<String> decisions = Jmx.bean().findDecisions("/fi");
        assertEquals(4, decisions.size());
        assertEquals(0, Jmx.bean().findDecisions("/other").size());
        JsonNode decision = new ObjectMapper().readTree(decisions.get(0));
        assertEquals("r0h0", decision.get("writer").asText());
        assertEquals(3, decision.get("hosts").size());
        JsonNode step = decision.get("steps").get(0);
        assertEquals("~/r0", step.get("scope").asText());
        assertEquals("/r2", step.get("racks").get(0).get("name").asText());
        assertEquals(4, step.get("hosts").size());
    }

    /** A page with all attributes, which collectors read each few seconds, must not have them. */
    @Test
    void storedDecisionsAreAnAttributeThatIsReadByItsNameOnly() throws Exception {
        Configuration conf = Harness.withoutHysteresis(controller);
        conf.set("dfs.leeward.explain.sample", "1");
        Harness harness = Harness.open(nodes, conf);
        harness.awaitReason(Reason.RANKED);
        String[] all = (String[]) Jmx.attribute("Decisions,");
        assertEquals(Jmx.bean().findDecisions(""), List.of(all));
        assertTrue(all.length > 0);
        assertEquals(all.length, ((String[]) Jmx.attribute("Decisions,/file")).length);
        assertEquals(0, ((String[]) Jmx.attribute("Decisions,/other,/file")).length);
        for (String name : Jmx.attributes()) {
            String value = String.valueOf(Jmx.attribute(name));
            assertFalse(name.contains("Explained") || value.contains("/file"), name + ": " + value);
        }
    }

    @Test
    void theStoredDecisionAboutAFurtherCopyHasTheHostsOfTheEarlierOnes() throws Exception {
        Configuration conf = Harness.withoutHysteresis(controller);
        conf.set("dfs.leeward.explain.sample", "1");
        Harness harness = Harness.open(nodes, conf);
        harness.awaitReason(Reason.RANKED);
        String host = harness.place("r0h0", 1, Set.of(), List.of("r0h0", "r0h1")).get(0);
        JsonNode decision = new ObjectMapper().readTree(Jmx.bean().findDecisions("").get(0));
        assertEquals("[\"" + host + "\"]", decision.get("hosts").toString());
        assertEquals("[\"r0h0\",\"r0h1\"]", decision.get("existing").toString());
    }

    @Test
    void anExplanationOnDemandIsTheDecisionOfTheNameNodeNowAndPlacesNothing() throws Exception {
        Harness.openWithSnapshot(nodes, controller, "leeward");
        // HDFS would reject this host, so the explanation does not name it.
        nodes.storage("r2h1").setUtilizationForTesting(1, 1, 0, 1);
        JsonNode decision = new ObjectMapper().readTree(Jmx.bean().explain("r0h0", Harness.BLOCK, 3));
        assertEquals("ranked", decision.get("reason").asText());
        List<String> hosts = new ArrayList<>();
        decision.get("hosts").forEach(host -> hosts.add(host.asText()));
        assertEquals("r0h0", hosts.get(0));
        assertEquals(List.of("r2", "r2"), hosts.subList(1, 3).stream().map(Harness::rack).toList());
        assertFalse(hosts.contains("r2h1"), hosts.toString());
        assertEquals(6, new ObjectMapper().readTree(Jmx.bean().explain("r0h0", Harness.BLOCK, 6)).get("hosts").size());
        assertEquals(0, Harness.count(Reason.RANKED));
        assertEquals(0, Metric.of("PlacementsLocal"));
        assertTrue(controller.commitments().isEmpty());
    }

    /** As in the first minute of a cluster, before its agents run. */
    @Test
    void anExplanationWithoutTelemetryHasNumbersOnly() throws Exception {
        network.forgetAll();
        Harness.openWithSnapshot(nodes, controller, "leeward");
        JsonNode decision = new ObjectMapper().readTree(Jmx.bean().explain("r0h0", Harness.BLOCK, 3));
        int candidates = 0;
        for (JsonNode step : decision.get("steps")) {
            for (String level : List.of("racks", "hosts")) {
                for (JsonNode candidate : step.path(level)) {
                    assertTrue(candidate.get("value").isNumber(), candidate.toString());
                    candidates++;
                }
            }
        }
        assertTrue(candidates > 0, decision.toString());
    }

    @Test
    void anExplanationIsAnAttributeToo() throws Exception {
        Harness.openWithSnapshot(nodes, controller, "leeward");
        JsonNode decision = new ObjectMapper().readTree((String) Jmx.attribute("Explain,r0h0,134217728,3"));
        assertEquals(3, decision.get("hosts").size());
        for (String invalid : List.of("Explain", "Explain,r0h0,1", "Explain,r0h0,much,3", "Explain,r0h0,1,513",
                "Explain,r0h0,-1,3", "Explain,r0h0,1,0", "Explain,a,b,1,1", "Decisions", "Other")) {
            assertThrows(AttributeNotFoundException.class, () -> Jmx.attribute(invalid), invalid);
        }
    }
}
