package dev.leeward.hdfs;

import dev.leeward.hdfs.testing.FakeController;
import dev.leeward.hdfs.testing.FakeController.Behavior;
import dev.leeward.hdfs.testing.FakeNetwork;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.AddBlockFlag;
import org.apache.hadoop.hdfs.protocol.BlockStoragePolicy;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockPlacementPolicy;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockPlacementPolicyDefault;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockStoragePolicySuite;
import org.apache.hadoop.hdfs.server.blockmanagement.FakeDataNodes;
import org.apache.hadoop.hdfs.server.blockmanagement.LeewardBlockPlacementPolicy;

/**
 * Time of {@code chooseTarget} by a policy of Leeward, relative to the default policy. Batches of both follow one
 * another in one process, and the median of the ratios counts, so other work on the machine affects both alike. The
 * argument is a policy such as {@code sinbad}, or says how its controller fails, as {@code leeward:killed}.
 */
public final class RelativeBenchmark {

    private static final List<String> FAILURES = List.of("killed", "hangs", "garbage");
    private static final List<String> POLICIES = List.of("sinbad", "ccp", "rehdfs", "leeward");
    private static final int RACKS = 150;
    private static final int HOSTS = 20;
    private static final int BATCH = 100;
    private static final int ROUNDS = 3_000;
    private static final BlockStoragePolicy STORAGE = BlockStoragePolicySuite.createDefaultSuite().getDefaultPolicy();
    private static final EnumSet<AddBlockFlag> NO_FLAGS = EnumSet.noneOf(AddBlockFlag.class);

    private final FakeDataNodes nodes = new FakeDataNodes(RACKS, HOSTS);

    private RelativeBenchmark() {
    }

    /** The default policy, whose constructor HDFS hides. */
    private static final class DefaultPolicy extends BlockPlacementPolicyDefault {
    }

    public static void main(String[] arguments) throws Exception {
        String[] words = arguments.length == 1 ? arguments[0].split(":") : new String[] {""};
        if (!POLICIES.contains(words[0]) || (words.length > 1 && !FAILURES.contains(words[1]))) {
            System.err.println(
                    "expected one of " + POLICIES + ", and optionally one of " + FAILURES + " after a colon");
            System.exit(2);
        }
        new RelativeBenchmark().run(words[0], words.length > 1 ? words[1] : "well");
        System.exit(0);
    }

    private void run(String name, String failure) throws Exception {
        FakeController controller =
                new FakeController(new FakeNetwork(RACKS, HOSTS, 10_000_000_000L, 100_000_000_000L));
        Configuration conf = new Configuration();
        conf.set("dfs.leeward.controller", controller.address());
        conf.set("dfs.leeward.policy", name);
        BlockPlacementPolicy leeward = nodes.open(new LeewardBlockPlacementPolicy(), conf);
        BlockPlacementPolicy standard = nodes.open(new DefaultPolicy(), new Configuration());
        Thread.sleep(2_000);
        switch (failure) {
            case "killed" -> controller.close();
            case "hangs" -> controller.behave(Behavior.HANGS);
            case "garbage" -> controller.behave(Behavior.GARBAGE);
            default -> { }
        }
        // The last snapshot of a failing controller must have become too old.
        Thread.sleep(6_000);
        double[] ratios = new double[ROUNDS];
        for (int round = -ROUNDS / 3; round < ROUNDS; round++) {
            boolean first = (round & 1) == 0;
            double one = time(first ? leeward : standard, round);
            double other = time(first ? standard : leeward, round);
            if (round >= 0) {
                ratios[round] = first ? one / other : other / one;
            }
        }
        controller.close();
        Arrays.sort(ratios);
        // Ranks of a 95 % interval of the median: n/2 -+ 0.98 sqrt(n).
        int spread = (int) Math.ceil(0.98 * Math.sqrt(ROUNDS));
        System.out.printf(
                Locale.ROOT, "%s, controller %s: chooseTarget takes %.4f (%.4f to %.4f) of the default policy's%n",
                name, failure, ratios[ROUNDS / 2], ratios[ROUNDS / 2 - spread], ratios[ROUNDS / 2 + spread]);
    }

    private double time(BlockPlacementPolicy policy, int round) {
        long start = System.nanoTime();
        for (int block = 0; block < BATCH; block++) {
            int writer = Math.floorMod(round * BATCH + block * 7, RACKS * HOSTS);
            policy.chooseTarget("/file", 3, nodes.nodes().get(writer), new ArrayList<>(), false, new HashSet<>(),
                    128L << 20, STORAGE, NO_FLAGS);
        }
        return System.nanoTime() - start;
    }
}
