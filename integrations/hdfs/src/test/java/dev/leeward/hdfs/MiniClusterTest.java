package dev.leeward.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.leeward.hdfs.testing.Eventually;
import dev.leeward.hdfs.testing.FakeController;
import dev.leeward.hdfs.testing.FakeController.Behavior;
import dev.leeward.hdfs.testing.FakeNetwork;
import dev.leeward.hdfs.testing.Jmx;
import dev.leeward.hdfs.testing.MiniCluster;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import javax.management.JMException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.tools.DFSck;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A whole HDFS with real bytes: 12 DataNodes in 6 racks. */
class MiniClusterTest {

    private static final long GBPS = 1_000_000_000L;

    @TempDir
    java.nio.file.Path folder;

    private final FakeNetwork network = new FakeNetwork(6, 2, GBPS, 2 * GBPS);
    private FakeController controller;

    @BeforeEach
    void start() throws Exception {
        controller = new FakeController(network);
    }

    @AfterEach
    void stop() {
        controller.close();
    }

    private static String fsck(Configuration conf, String path) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        new DFSck(conf, new PrintStream(out)).run(new String[] {path, "-files", "-blocks", "-racks"});
        return out.toString();
    }

    @ParameterizedTest
    @ValueSource(strings = {"sinbad", "ccp", "rehdfs", "leeward"})
    void everyPolicyKeepsTheRulesOfHdfsForCopiesAndStripes(String policy) throws Exception {
        network.measure("r1:downlink", 1_900_000_000L);
        Configuration conf = MiniCluster.conf(controller.address(), policy);
        try (MiniCluster cluster = MiniCluster.start(conf, folder, 6, 2)) {
            for (int file = 0; file < 10; file++) {
                Path path = cluster.write("/copies/" + file, 3 * MiniCluster.BLOCK, 3);
                for (List<String> hosts : cluster.awaitCopies(path, 3, "none")) {
                    assertEquals(3, new HashSet<>(hosts).size(), hosts.toString());
                    assertEquals(2, racks(hosts).size(), hosts.toString());
                }
            }
            Path coded = new Path("/coded");
            cluster.files().mkdirs(coded);
            cluster.files().enableErasureCodingPolicy("RS-6-3-1024k");
            cluster.files().setErasureCodingPolicy(coded, "RS-6-3-1024k");
            for (int file = 0; file < 3; file++) {
                Path path = cluster.write("/coded/" + file, 7 << 20, 1, 2 << 20);
                Set<String> hosts = new HashSet<>();
                cluster.awaitCopies(path, 9, "none").forEach(hosts::addAll);
                assertEquals(9, hosts.size(), hosts.toString());
                assertEquals(6, racks(hosts).size(), hosts.toString());
            }
            Eventually.holds("a report of each stripe", () -> controller.commitments().stream()
                    .filter(body -> body.get("replicas").path("coding").asText().equals("6+3"))
                    .filter(body -> body.get("hosts").size() == 9)
                    .count() == 3);
            String report = fsck(conf, "/");
            assertTrue(report.contains("Status: HEALTHY"), report);
            assertTrue(report.contains("Mis-replicated blocks:\t\t0"), report);
            assertTrue(report.contains("Unsatisfactory placement block groups:\t0"), report);
            assertEquals(30, Jmx.bean().getDecisionsByReason().get("ranked"));
            Eventually.holds("the metrics of 30 blocks", () -> {
                try {
                    return Jmx.metric("Decisions_ranked") == 30;
                } catch (JMException e) {
                    throw new AssertionError(e);
                }
            });
            assertTrue(Jmx.bean("LeewardErasureCodedInfo").getDecisionsByReason().get("ranked") >= 3);
        }
    }

    private static Set<String> racks(Iterable<String> hosts) {
        Set<String> racks = new HashSet<>();
        hosts.forEach(host -> racks.add(MiniCluster.rack(host)));
        return racks;
    }

    @Test
    @Tag("whole")
    void blocksAvoidTheHotRacksAndFilesStayReadableWhileTheControllerFails() throws Exception {
        for (int rack = 0; rack < 6; rack++) {
            network.measure("r" + rack + ":downlink", rack == 4 ? 0L : 1_990_000_000L);
        }
        Configuration conf = MiniCluster.conf(controller.address(), "sinbad");
        conf.set("dfs.leeward.sinbad.hysteresis", "off");
        try (MiniCluster cluster = MiniCluster.start(conf, folder, 6, 2)) {
            Path cool = cluster.write("/cool", 20 * MiniCluster.BLOCK, 3);
            for (List<String> hosts : cluster.awaitCopies(cool, 3, "none")) {
                assertTrue(racks(hosts).contains("r4"), hosts.toString());
            }
            for (Behavior behavior : List.of(Behavior.HANGS, Behavior.GARBAGE, Behavior.BUSY)) {
                controller.behave(behavior);
                Eventually.holds("a stale snapshot", () -> Jmx.bean().getSnapshotAgeMs() > 2_000);
                long ranked = Jmx.bean().getDecisionsByReason().get("ranked");
                Path path = cluster.write("/" + behavior, 5 * MiniCluster.BLOCK, 3);
                cluster.awaitCopies(path, 3, "none");
                assertEquals(5 * MiniCluster.BLOCK, cluster.files().open(path).readAllBytes().length);
                assertEquals(ranked, Jmx.bean().getDecisionsByReason().get("ranked"));
                controller.behave(Behavior.WELL);
                Eventually.holds("a snapshot again", () -> Jmx.bean().getFailure().isEmpty());
            }
            int port = controller.port();
            controller.close();
            Eventually.holds("the outage", () -> Jmx.bean().getFailure().equals("unreachable"));
            cluster.awaitCopies(cluster.write("/gone", MiniCluster.BLOCK, 3), 3, "none");
            controller = new FakeController(network, port, null);
            Eventually.holds("the restart", () -> Jmx.bean().getFailure().isEmpty());
            Path again = cluster.write("/again", 5 * MiniCluster.BLOCK, 3);
            for (List<String> hosts : cluster.awaitCopies(again, 3, "none")) {
                assertTrue(racks(hosts).contains("r4"), hosts.toString());
            }
        }
    }

    @Test
    @Tag("whole")
    void anOperatorTurnsLeewardOnAndOffInARunningNameNode() throws Exception {
        String key = "dfs.block.replicator.classname";
        Configuration conf = MiniCluster.conf(controller.address(), "leeward");
        String leeward = conf.get(key);
        conf.unset(key);
        try (MiniDFSCluster dfs = MiniCluster.builder(conf, folder, 6, 2).build()) {
            MiniCluster cluster = new MiniCluster(conf, dfs);
            dfs.waitActive();
            cluster.awaitCopies(cluster.write("/before", 2 * MiniCluster.BLOCK, 3), 3, "none");
            conf.set(key, leeward);
            dfs.getNameNode().getNamesystem().getBlockManager().refreshBlockPlacementPolicy(conf);
            Eventually.holds("a snapshot in the NameNode", () -> Jmx.hasSnapshot("LeewardInfo"));
            cluster.awaitCopies(cluster.write("/with", 2 * MiniCluster.BLOCK, 3), 3, "none");
            assertEquals(2, Jmx.bean().getDecisionsByReason().get("ranked"));
            conf.unset(key);
            dfs.getNameNode().getNamesystem().getBlockManager().refreshBlockPlacementPolicy(conf);
            cluster.awaitCopies(cluster.write("/after", 2 * MiniCluster.BLOCK, 3), 3, "none");
            Eventually.holds("the end of the bean", () -> {
                System.gc();
                return !Jmx.hasBean();
            });
        }
    }

    @Test
    void aNameNodeWithInvalidSettingsStartsUnlessTheyAreStrict() throws Exception {
        Configuration conf = MiniCluster.conf(controller.address(), "leeward");
        conf.set("dfs.leeward.remote-rack", "2");
        RuntimeException error = assertThrows(RuntimeException.class,
                () -> MiniCluster.builder(conf, folder, 2, 1).build());
        assertTrue(error.getMessage().contains("dfs.leeward.remote-rack: unknown property"), error.getMessage());
        conf.set("dfs.leeward.strict", "false");
        try (MiniDFSCluster cluster = MiniCluster.builder(conf, folder, 2, 1).build()) {
            MiniCluster started = new MiniCluster(conf, cluster);
            started.awaitCopies(started.write("/file", 100, 2), 2, "none");
            for (String bean : List.of("LeewardInfo", "LeewardErasureCodedInfo")) {
                assertEquals("settings", Jmx.bean(bean).getFailure());
                String detail = Jmx.bean(bean).getFailureDetail();
                assertTrue(detail.startsWith("dfs.leeward.remote-rack: unknown property"), detail);
            }
        }
    }

    @Test
    void thePageOfBeansExplainsWhatTheNameNodeWouldDoNowAndHasStoredDecisions() throws Exception {
        Configuration conf = MiniCluster.conf(controller.address(), "leeward");
        conf.set("dfs.leeward.explain.sample", "1");
        try (MiniCluster cluster = MiniCluster.start(conf, folder, 6, 2)) {
            for (String question : List.of("LeewardInfo::Explain,r0h0,65536,3",
                    "LeewardErasureCodedInfo::Explain,r0h0,65536,9")) {
                JsonNode decision = new ObjectMapper().readTree(page(cluster, question).asText());
                int copies = question.endsWith("3") ? 3 : 9;
                assertEquals(copies, decision.get("hosts").size(), decision.toString());
                assertEquals("ranked", decision.get("reason").asText());
                assertEquals("r0h0", decision.get("writer").asText());
            }
            assertEquals(0, Jmx.bean().getDecisionsByReason().get("ranked"), "nothing is counted");
            assertTrue(controller.commitments().isEmpty(), "nothing is reported");
            cluster.awaitCopies(cluster.write("/stored", MiniCluster.BLOCK, 3), 3, "none");
            JsonNode stored = page(cluster, "LeewardInfo::Decisions,/stored");
            assertEquals(1, stored.size(), stored.toString());
            assertEquals("/stored", new ObjectMapper().readTree(stored.get(0).asText()).get("path").asText());
            assertEquals(0, page(cluster, "LeewardInfo::Decisions,/other").size());
        }
    }

    /** An attribute of a bean, from the page of the NameNode. */
    private static JsonNode page(MiniCluster cluster, String question) throws Exception {
        String bean = URLEncoder.encode("Hadoop:service=NameNode,name=" + question, StandardCharsets.UTF_8);
        InetSocketAddress address = cluster.dfs().getNameNode().getHttpAddress();
        String page = "http://" + address.getHostString() + ":" + address.getPort() + "/jmx?get=" + bean;
        try (InputStream body = URI.create(page).toURL().openStream()) {
            return new ObjectMapper().readTree(body).get("beans").get(0).get(question.split("::")[1]);
        }
    }
}
