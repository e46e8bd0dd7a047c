package dev.leeward.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.leeward.hdfs.snapshot.Snapshots;
import dev.leeward.hdfs.testing.Eventually;
import dev.leeward.hdfs.testing.Jmx;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockPlacementPolicy;
import org.apache.hadoop.hdfs.server.blockmanagement.FakeDataNodes;
import org.apache.hadoop.hdfs.server.blockmanagement.LeewardErasureCodedPlacementPolicy;
import org.apache.hadoop.hdfs.server.namenode.ErasureCodingPolicyManager;
import org.apache.hadoop.net.NodeBase;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The policy beside a real controller. The environment variable {@code LEEWARDD} has its command, and a built
 * {@code target/release/leewardd} or {@code dist/leewardd} of this repository needs none. Without any, the tests are
 * skipped.
 */
class RealControllerTest {

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long GBPS = 1_000_000_000L;

    @TempDir
    Path folder;

    private final HttpClient http = HttpClient.newHttpClient();
    private int port;
    private Process controller;

    private static List<String> command() {
        String given = System.getenv("LEEWARDD");
        if (given != null && !given.isBlank()) {
            return List.of(given.split(" "));
        }
        for (String built : List.of("../../target/release/leewardd", "../../dist/leewardd")) {
            if (Files.isExecutable(Path.of(built))) {
                return List.of(built);
            }
        }
        return List.of();
    }

    @BeforeEach
    void start() throws Exception {
        assumeTrue(!command().isEmpty(), "no leewardd: build it, or name its command in LEEWARDD");
        Files.writeString(folder.resolve("cluster.yaml"),
                "racks: 4\nhosts_per_rack: 4\nnic: 1Gbps\nrack_link: 2Gbps\n");
        try (ServerSocket socket = new ServerSocket(0)) {
            port = socket.getLocalPort();
        }
        run();
    }

    private void run() throws Exception {
        List<String> command = new ArrayList<>(command());
        command.addAll(List.of("--cluster", folder.resolve("cluster.yaml").toString(), "--listen",
                "127.0.0.1:" + port, "--store", folder.resolve("store").toString()));
        controller = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(folder.resolve("log").toFile())
                .start();
        Eventually.holds("the controller answers", () -> {
            try {
                return send("GET", "/readyz", null).statusCode() == 200;
            } catch (IOException | InterruptedException e) {
                return false;
            }
        });
    }

    @AfterEach
    void stop() throws InterruptedException {
        if (controller != null) {
            controller.destroy();
            if (!controller.waitFor(20, TimeUnit.SECONDS)) {
                controller.destroyForcibly();
            }
        }
    }

    private HttpResponse<String> send(String method, String path, String body)
            throws IOException, InterruptedException {
        HttpRequest.BodyPublisher publisher =
                body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body);
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                .header("content-type", "application/json")
                .method(method, publisher)
                .build();
        return http.send(request, HttpResponse.BodyHandlers.ofString());
    }

    /** Reports the loads of the links into racks over the last second. */
    private void report(double... gbps) throws Exception {
        Instant now = Instant.now();
        var report = JSON.createObjectNode().put("from", now.minusSeconds(1).toString()).put("until", now.toString());
        var links = report.putArray("links");
        for (int rack = 0; rack < gbps.length; rack++) {
            links.addObject().put("link", "r" + rack + ":downlink").put("load_bps", (long) (gbps[rack] * GBPS));
        }
        HttpResponse<String> answer = send("POST", "/v1/reports", report.toString());
        assertEquals(200, answer.statusCode(), answer.body());
    }

    /** Reports the state of a host: whether it is {@code up} or {@code draining}. */
    private void reportState(String host, String state, boolean holds) throws Exception {
        Instant now = Instant.now();
        var report = JSON.createObjectNode().put("from", now.minusSeconds(1).toString()).put("until", now.toString());
        report.putArray("hosts").addObject().put("host", host).put(state, holds);
        HttpResponse<String> answer = send("POST", "/v1/reports", report.toString());
        assertEquals(200, answer.statusCode(), answer.body());
    }

    /** Waits for a condition while loads are reported each second: a link without reports becomes unknown. */
    private void awaitUnder(String what, BooleanSupplier condition, double... gbps) throws Exception {
        Eventually.holds(what, () -> {
            try {
                report(gbps);
                Thread.sleep(1_000);
            } catch (Exception e) {
                throw new AssertionError(e);
            }
            return condition.getAsBoolean();
        });
    }

    /** Waits until blocks are placed by reported loads. */
    private void awaitRanked(Harness harness, double... gbps) throws Exception {
        awaitUnder("decisions by the loads", () -> {
            long before = Harness.count(Reason.RANKED);
            harness.place("r0h0");
            return Harness.count(Reason.RANKED) > before;
        }, gbps);
    }

    private Configuration conf(String policy) {
        Configuration conf = Harness.conf("http://127.0.0.1:" + port, policy);
        conf.set("dfs.leeward.sinbad.hysteresis", "off");
        conf.set("dfs.leeward.snapshot.interval", "300ms");
        conf.set("dfs.leeward.snapshot.max-age", "3s");
        return conf;
    }

    private Harness open(String policy) {
        return Harness.open(new FakeDataNodes(4, 4), conf(policy));
    }

    @Test
    void blocksFollowTheReportsThroughDifferences() throws Exception {
        Harness harness = open("sinbad");
        awaitUnder(
                "blocks in r2", () -> harness.secondRacks("r0h0", 5).equals(Map.of("r2", 5)), 0.2, 1.8, 0.4, 1.5);
        awaitUnder(
                "blocks in r1", () -> harness.secondRacks("r0h0", 5).equals(Map.of("r1", 5)), 0.2, 0.1, 1.9, 1.5);
        assertTrue(Metric.of("SnapshotsDifference") > 5, "differences: " + Metric.of("SnapshotsDifference"));
        assertEquals(1, Metric.of("SnapshotsWhole"));
        assertEquals(0, Metric.of("SnapshotFailures_invalid"));
    }

    @Test
    void theRecordedAnswersHaveTheColumnsThatTheControllerAnswers() throws Exception {
        JsonNode answer = JSON.readTree(send("GET", "/v1/snapshot?" + Snapshots.query(), null).body());
        JsonNode recorded = JSON.readTree(RealControllerTest.class.getResource("/recorded/1-whole.json"));
        for (String table : List.of("links", "racks", "hosts", "devices")) {
            assertEquals(columns(recorded.get(table)), columns(answer.get(table)), table);
        }
    }

    private static Set<String> columns(JsonNode table) {
        Set<String> columns = new TreeSet<>();
        table.fieldNames().forEachRemaining(columns::add);
        return columns;
    }

    @Test
    void aHostThatIsReportedAsDownOrDrainingTakesNoCopyUntilItIsOpenAgain() throws Exception {
        Harness harness = open("sinbad");
        awaitUnder("copies on all hosts of r2", () ->
                remoteHosts(harness).equals(Set.of("r2h0", "r2h1", "r2h2", "r2h3")), 0.2, 1.8, 0.4, 1.5);
        reportState("r2h0", "up", false);
        reportState("r2h1", "draining", true);
        awaitUnder("copies on open hosts only", () ->
                remoteHosts(harness).equals(Set.of("r2h2", "r2h3")), 0.2, 1.8, 0.4, 1.5);
        reportState("r2h0", "up", true);
        reportState("r2h1", "draining", false);
        awaitUnder("copies on all hosts of r2 again", () ->
                remoteHosts(harness).equals(Set.of("r2h0", "r2h1", "r2h2", "r2h3")), 0.2, 1.8, 0.4, 1.5);
        assertEquals(1, Metric.of("SnapshotsWhole"));
    }

    /** Hosts of the copies of 20 blocks beside the first. */
    private static Set<String> remoteHosts(Harness harness) {
        Set<String> hosts = new TreeSet<>();
        for (int block = 0; block < 20; block++) {
            hosts.addAll(harness.place("r0h0").subList(1, 3));
        }
        return hosts;
    }

    @Test
    void reportedPlacementsAreDecisionsOfTheControllerAndLeaveLocally() throws Exception {
        Harness harness = open("leeward");
        awaitRanked(harness, 0, 0, 0, 0);
        for (int block = 0; block < 20; block++) {
            harness.place("r0h1");
        }
        Eventually.holds("reports", () -> Metric.of("ReportsWaiting") == 0 && Metric.of("ReportsAccepted") >= 20);
        assertEquals(0, Metric.of("ReportsRejected"));
        Eventually.holds("no local placements", () -> Metric.of("PlacementsLocal") == 0);
        JsonNode decisions = decisions();
        assertTrue(decisions.size() >= 20, decisions.size() + " decisions");
        JsonNode decision = decisions.get(0);
        assertEquals("caller", decision.get("policy").asText());
        assertEquals("r0h1", decision.get("hosts").get(0).asText());
        assertEquals(3, decision.get("hosts").size());
    }

    @Test
    void theModeOfTheControllerReachesTheNameNode() throws Exception {
        Harness harness = open("leeward");
        report(0, 0, 0, 0);
        harness.awaitReason(Reason.RANKED);
        for (String mode : List.of("off", "shadow", "on")) {
            HttpResponse<String> answer = send("PATCH", "/v1/modes", "{\"replicas\": \"" + mode + "\"}");
            assertEquals(200, answer.statusCode(), answer.body());
            Eventually.holds("the mode " + mode, () -> {
                try {
                    // Loads stay known in the quiet network.
                    report(0, 0, 0, 0);
                } catch (Exception e) {
                    throw new AssertionError(e);
                }
                Reason reason = mode.equals("on") ? Reason.RANKED : Reason.OFF;
                long before = Harness.count(reason);
                harness.place("r0h0");
                return Harness.count(reason) > before;
            });
        }
    }

    @Test
    void aClientThatIsNoDataNodeIsTheWriterOfItsBlocks() throws Exception {
        Harness harness = Harness.open(new FakeDataNodes(3, 4), conf("leeward"));
        awaitRanked(harness, 0, 0, 0, 0);
        Eventually.holds("the reports before", () -> Metric.of("ReportsWaiting") == 0);
        harness.placeBy(new NodeBase("/r3/r3h2"), 3, Set.of(), List.of());
        Eventually.holds("its decision", () ->
                decisions().get(0).get("request").path("writer").asText().equals("r3h2"));
        JsonNode decision = decisions().get(0);
        assertEquals(3, decision.get("hosts").size());
        JsonNode link = JSON.readTree(send("GET", "/v1/links/r3:uplink", null).body());
        assertEquals(decision.get("id"), link.at("/holds/0/decision"), "the link out of the writer's rack: " + link);
        assertEquals(0, Metric.of("ReportsRejected"));
    }

    @Test
    void aStripeIsOneDecisionOfTheControllerWithItsCode() throws Exception {
        ErasureCodingPolicyManager.getInstance().init(new Configuration());
        Configuration conf = conf("leeward");
        FakeDataNodes nodes = new FakeDataNodes(4, 4);
        BlockPlacementPolicy policy = nodes.open(new LeewardErasureCodedPlacementPolicy(), conf);
        report(0, 0, 0, 0);
        Eventually.holds("a snapshot", () -> Jmx.hasSnapshot("LeewardErasureCodedInfo"));
        Harness stripes = new Harness(nodes, policy);
        assertEquals(9, stripes.place("r0h1", 9, Set.of(), List.of()).size());
        List<String> left = List.of("r0h0", "r0h1", "r1h0", "r1h1", "r2h0", "r2h1", "r3h0", "r3h1");
        assertEquals(1, stripes.place("r0h0", 1, Set.copyOf(left), left).size());
        Eventually.holds("two decisions", () -> decisions().size() == 2);
        JsonNode rebuild = decisions().get(0);
        JsonNode stripe = decisions().get(1);
        assertEquals("6+3", stripe.get("request").get("coding").asText(), stripe.toString());
        assertEquals(9, stripe.get("hosts").size());
        assertEquals("6+3", rebuild.get("request").get("coding").asText(), rebuild.toString());
        assertEquals(1, rebuild.get("hosts").size());
    }

    private JsonNode decisions() {
        try {
            return JSON.readTree(send("GET", "/v1/decisions?limit=100", null).body()).get("items");
        } catch (IOException | InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void theControllerMayRestart() throws Exception {
        Harness harness = open("sinbad");
        awaitRanked(harness, 0.2, 1.8, 0.4, 1.5);
        stop();
        Eventually.holds("the outage", () -> !Jmx.bean().getFailure().isEmpty());
        assertEquals(3, harness.place("r0h0").size());
        run();
        Eventually.holds("the end of the outage", () -> Jmx.bean().getFailure().isEmpty());
        awaitRanked(harness, 0.2, 0.3, 1.8, 1.5);
        assertTrue(Metric.of("SnapshotsWhole") >= 2);
    }
}
