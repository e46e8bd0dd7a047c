package dev.leeward.hdfs;

import dev.leeward.hdfs.testing.FakeController;
import dev.leeward.hdfs.testing.FakeController.Behavior;
import dev.leeward.hdfs.testing.FakeNetwork;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.AddBlockFlag;
import org.apache.hadoop.hdfs.protocol.BlockStoragePolicy;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockPlacementPolicy;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockPlacementPolicyDefault;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockStoragePolicySuite;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeStorageInfo;
import org.apache.hadoop.hdfs.server.blockmanagement.FakeDataNodes;
import org.apache.hadoop.hdfs.server.blockmanagement.LeewardBlockPlacementPolicy;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Time of {@code chooseTarget} for three copies at 3,000 DataNodes in 150 racks: the default policy, each policy of
 * Leeward, {@code leeward} while its controller fails, and three policies while 19 of 20 DataNodes are full, so that
 * HDFS rejects nearly every host.
 */
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 4, time = 2)
@Measurement(iterations = 5, time = 2)
@Fork(value = 2, jvmArgs = "-Xmx1g")
@State(Scope.Benchmark)
public class ChooseTargetBenchmark {

    private static final int RACKS = 150;
    private static final int HOSTS = 20;
    private static final long BLOCK = 128L << 20;
    private static final BlockStoragePolicy STORAGE = BlockStoragePolicySuite.createDefaultSuite().getDefaultPolicy();
    private static final EnumSet<AddBlockFlag> NO_FLAGS = EnumSet.noneOf(AddBlockFlag.class);

    /** The policy; a word after a colon says how its controller fails, or that DataNodes are full. */
    @Param({"default", "sinbad", "ccp", "rehdfs", "leeward", "leeward:killed", "leeward:hangs", "leeward:garbage",
        "default:full", "sinbad:full", "leeward:full"})
    public String policy;

    private FakeDataNodes nodes;
    private FakeController controller;
    private BlockPlacementPolicy placement;
    private int block;

    @Setup
    public void start() throws Exception {
        nodes = new FakeDataNodes(RACKS, HOSTS);
        String[] words = policy.split(":");
        if (policy.endsWith(":full")) {
            for (int node = 0; node < RACKS * HOSTS; node++) {
                nodes.fill(nodes.nodes().get(node).getHostName(), node % 20 == 0 ? 0.5 : 1.0);
            }
        }
        if (words[0].equals("default")) {
            placement = nodes.open(new DefaultPolicy(), new Configuration());
            return;
        }
        controller = new FakeController(network());
        Configuration conf = new Configuration();
        conf.set("dfs.leeward.controller", controller.address());
        conf.set("dfs.leeward.policy", words[0]);
        placement = nodes.open(new LeewardBlockPlacementPolicy(), conf);
        Thread.sleep(2_000);
        switch (words.length == 1 ? "well" : words[1]) {
            case "killed" -> controller.close();
            case "hangs" -> controller.behave(Behavior.HANGS);
            case "garbage" -> controller.behave(Behavior.GARBAGE);
            default -> {
                return;
            }
        }
        // The last snapshot must have become too old.
        Thread.sleep(6_000);
    }

    /** The default policy, whose constructor HDFS hides. */
    private static final class DefaultPolicy extends BlockPlacementPolicyDefault {
    }

    private static FakeNetwork network() {
        FakeNetwork network = new FakeNetwork(RACKS, HOSTS, 10_000_000_000L, 100_000_000_000L);
        Random random = new Random(1);
        for (int rack = 0; rack < RACKS; rack++) {
            network.measure("r" + rack + ":downlink", random.nextLong(100_000_000_000L));
            for (int host = 0; host < HOSTS; host++) {
                network.measure("r" + rack + "h" + host + ":ingress", random.nextLong(10_000_000_000L));
            }
        }
        return network;
    }

    @TearDown
    public void stop() {
        if (controller != null) {
            controller.close();
        }
    }

    @Benchmark
    public DatanodeStorageInfo[] chooseTarget() {
        block++;
        return placement.chooseTarget(
                "/file", 3, nodes.nodes().get(block * 7 % (RACKS * HOSTS)), new ArrayList<>(), false, new HashSet<>(),
                BLOCK, STORAGE, NO_FLAGS);
    }
}
