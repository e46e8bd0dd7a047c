package dev.leeward.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.leeward.hdfs.testing.Eventually;
import dev.leeward.hdfs.testing.FakeController;
import dev.leeward.hdfs.testing.FakeController.Behavior;
import dev.leeward.hdfs.testing.FakeNetwork;
import dev.leeward.hdfs.testing.Heap;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.server.blockmanagement.FakeDataNodes;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class LeakTest {

    private static final long GBPS = 1_000_000_000L;
    /** Heap that may remain: explained decisions and the bounded queues. */
    private static final long MOST_BYTES = 24L << 20;

    private final FakeDataNodes nodes = new FakeDataNodes(20, 10);
    private final FakeNetwork network = new FakeNetwork(20, 10, GBPS, 4 * GBPS);

    @ParameterizedTest
    @ValueSource(strings = {"sinbad", "leeward"})
    void aHundredThousandBlocksOfManyThreadsLeaveNoMemoryBehind(String policy) throws Exception {
        run(policy, 100_000, Behavior.WELL);
    }

    @Test
    void reportsThatTheControllerDoesNotTakeLeaveNoMemoryBehind() throws Exception {
        // More than may wait for the daemon at once.
        run("leeward", 150_000, Behavior.HANGS);
    }

    @Test
    @Tag("whole")
    void twoMillionBlocksLeaveNoMemoryBehind() throws Exception {
        run("leeward", 2_000_000, Behavior.WELL);
    }

    private void run(String policy, int blocks, Behavior during) throws Exception {
        try (FakeController controller = new FakeController(network)) {
            Configuration conf = Harness.conf(controller.address(), policy);
            conf.set("dfs.leeward.snapshot.max-age", "10m");
            // On a busy machine, no report of a controller that works may be lost.
            conf.set("dfs.leeward.snapshot.deadline", during == Behavior.WELL ? "2s" : "200ms");
            Harness harness = Harness.open(nodes, conf);
            harness.awaitReason(Reason.RANKED);
            place(harness, 2_000);
            long before = Heap.used();
            controller.behave(during);
            place(harness, blocks);
            controller.behave(Behavior.WELL);
            boolean tooMany = Metric.of("PlacementsEarly") > 0;
            assertTrue(during != Behavior.HANGS || tooMany, "placements beyond the largest number did not count");
            assertTrue(Harness.count(Reason.RANKED) >= blocks, "ranked: " + Harness.count(Reason.RANKED));
            assertEquals(0, Harness.count(Reason.ERROR));
            assertTrue(during != Behavior.WELL || Metric.of("ReportsRejected") == 0, "rejected reports");
            network.advance(60_000);
            Eventually.holds("no local placements", () -> {
                network.advance(1_000);
                controller.commitments().clear();
                return Metric.of("PlacementsLocal") == 0;
            });
            long grown = Heap.used() - before;
            assertTrue(grown < MOST_BYTES, "the heap grew by " + grown + " bytes");
        }
    }

    private static void place(Harness harness, int blocks) throws InterruptedException {
        AtomicInteger left = new AtomicInteger(blocks);
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 4; t++) {
            String writer = "r" + t + "h0";
            Thread thread = new Thread(() -> {
                while (left.getAndDecrement() > 0) {
                    harness.place(writer);
                }
            });
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }
}
