package dev.leeward.hdfs;

import dev.leeward.hdfs.testing.Eventually;
import dev.leeward.hdfs.testing.FakeController;
import dev.leeward.hdfs.testing.Jmx;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.AddBlockFlag;
import org.apache.hadoop.hdfs.protocol.BlockStoragePolicy;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockPlacementPolicy;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockStoragePolicySuite;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeStorageInfo;
import org.apache.hadoop.hdfs.server.blockmanagement.FakeDataNodes;
import org.apache.hadoop.hdfs.server.blockmanagement.LeewardBlockPlacementPolicy;
import org.apache.hadoop.net.Node;

/** A placement policy as a NameNode uses it, over DataNodes without processes. */
final class Harness {

    static final long BLOCK = 128L << 20;
    static final BlockStoragePolicy STORAGE = BlockStoragePolicySuite.createDefaultSuite().getDefaultPolicy();

    /** The last one stays in memory: JMX alone does not hold a policy. */
    private static Harness last;

    final FakeDataNodes nodes;
    final BlockPlacementPolicy policy;

    Harness(FakeDataNodes nodes, BlockPlacementPolicy policy) {
        this.nodes = nodes;
        this.policy = policy;
        last = this;
    }

    /** Lets go of the last one. */
    static void forget() {
        last = null;
    }

    /** Settings with quick snapshots. */
    static Configuration conf(String controller, String policy) {
        Configuration conf = new Configuration();
        conf.set("dfs.leeward.controller", controller);
        conf.set("dfs.leeward.policy", policy);
        conf.set("dfs.leeward.snapshot.interval", "100ms");
        conf.set("dfs.leeward.snapshot.max-age", "1s");
        conf.set("dfs.leeward.client", "nn-" + System.nanoTime());
        return conf;
    }

    /** Policy sinbad, in which own blocks do not count, so that all go to the coolest rack. */
    static Configuration withoutHysteresis(FakeController controller) {
        Configuration conf = conf(controller.address(), "sinbad");
        conf.set("dfs.leeward.sinbad.hysteresis", "off");
        return conf;
    }

    static Harness open(FakeDataNodes nodes, Configuration conf) {
        return new Harness(nodes, nodes.open(new LeewardBlockPlacementPolicy(), conf));
    }

    /** Opens a policy and waits for the first snapshot, which stays fresh on a busy machine. */
    static Harness openWithSnapshot(FakeDataNodes nodes, FakeController controller, String policy) throws Exception {
        Configuration conf = conf(controller.address(), policy);
        conf.set("dfs.leeward.snapshot.max-age", "5s");
        Harness harness = open(nodes, conf);
        Eventually.holds("the first snapshot", () -> Jmx.hasSnapshot("LeewardInfo"));
        return harness;
    }

    List<String> place(String writer) {
        return place(writer, 3, Set.of(), List.of());
    }

    /** Names of the hosts for new copies. */
    List<String> place(String writer, int copies, Set<String> excluded, List<String> existing) {
        return placeBy(writer == null ? null : nodes.node(writer), copies, excluded, existing);
    }

    /** Names of the hosts for new copies of a block of any node. */
    List<String> placeBy(Node writer, int copies, Set<String> excluded, List<String> existing) {
        Set<Node> out = new HashSet<>();
        excluded.forEach(name -> out.add(nodes.node(name)));
        List<DatanodeStorageInfo> chosen = new ArrayList<>();
        existing.forEach(name -> chosen.add(nodes.storage(name)));
        DatanodeStorageInfo[] targets = policy.chooseTarget(
                "/file", copies, writer, chosen, false, out, BLOCK, STORAGE,
                EnumSet.noneOf(AddBlockFlag.class));
        return Arrays.stream(targets).map(target -> target.getDatanodeDescriptor().getHostName()).toList();
    }

    /** Number of second copies in each rack. */
    Map<String, Integer> secondRacks(String writer, int blocks) {
        Map<String, Integer> counts = new TreeMap<>();
        for (int block = 0; block < blocks; block++) {
            counts.merge(rack(place(writer).get(1)), 1, Integer::sum);
        }
        return counts;
    }

    static String rack(String host) {
        return host.substring(0, host.indexOf('h'));
    }

    /** Waits until decisions know a number of DataNodes. */
    void awaitDataNodes(int count) throws InterruptedException {
        Eventually.holds(count + " DataNodes", () -> Jmx.bean().getDataNodes() == count);
    }

    static long count(Reason reason) {
        return Jmx.bean().getDecisionsByReason().get(reason.text());
    }

    /** Waits until blocks are placed with a reason. */
    void awaitReason(Reason reason) throws InterruptedException {
        Eventually.holds("decisions with reason " + reason.text(), () -> {
            long before = count(reason);
            place("r0h0");
            return count(reason) > before;
        });
    }
}
