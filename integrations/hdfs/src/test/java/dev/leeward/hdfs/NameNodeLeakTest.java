package dev.leeward.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.leeward.hdfs.testing.Eventually;
import dev.leeward.hdfs.testing.FakeController;
import dev.leeward.hdfs.testing.FakeNetwork;
import dev.leeward.hdfs.testing.Heap;
import dev.leeward.hdfs.testing.MiniCluster;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.protocol.ClientProtocol;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.io.EnumSetWritable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Memory of a NameNode with 12 DataNodes. Clients add blocks by its own calls, and give them up unwritten. */
class NameNodeLeakTest {

    private static final long GBPS = 1_000_000_000L;
    private static final int BLOCKS = 100_000;
    private static final int CLIENTS = 4;
    /** HDFS counts blocks that wait for their bytes as full: these have little room. */
    private static final long BLOCK = 1024;
    /** Heap that may remain: explained decisions, the bounded queues, and what the NameNode grows by itself. */
    private static final long MOST_BYTES = 32L << 20;

    @TempDir
    Path folder;

    @ParameterizedTest
    @ValueSource(strings = {"sinbad", "leeward"})
    @Tag("whole")
    void aHundredThousandBlocksOfAWholeHdfsLeaveNoMemoryBehind(String policy) throws Exception {
        FakeNetwork network = new FakeNetwork(6, 2, GBPS, 2 * GBPS);
        try (FakeController controller = new FakeController(network)) {
            Configuration conf = MiniCluster.conf(controller.address(), policy);
            conf.set("dfs.leeward.snapshot.max-age", "10m");
            conf.set("dfs.leeward.snapshot.deadline", "2s");
            try (MiniCluster cluster = MiniCluster.start(conf, folder, 6, 2)) {
                ClientProtocol calls = cluster.dfs().getNameNodeRpc();
                add(calls, "/before", 2_000);
                long before = Heap.used();
                add(calls, "/counted", BLOCKS);
                assertTrue(Harness.count(Reason.RANKED) >= BLOCKS, "ranked: " + Harness.count(Reason.RANKED));
                assertEquals(0, Harness.count(Reason.ERROR));
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
    }

    /** Lets clients add blocks at the same time, each to a file of its own. */
    private static void add(ClientProtocol calls, String folder, int blocks) throws Exception {
        List<Callable<Void>> clients = new ArrayList<>();
        for (int number = 0; number < CLIENTS; number++) {
            String name = folder + number;
            clients.add(() -> {
                addTo(calls, name, blocks / CLIENTS);
                return null;
            });
        }
        ExecutorService threads = Executors.newFixedThreadPool(CLIENTS);
        try {
            for (Future<Void> client : threads.invokeAll(clients)) {
                client.get();
            }
        } finally {
            threads.shutdown();
        }
    }

    private static void addTo(ClientProtocol calls, String file, int blocks) throws Exception {
        EnumSetWritable<CreateFlag> create = new EnumSetWritable<>(EnumSet.of(CreateFlag.CREATE));
        HdfsFileStatus status = calls.create(
                file, FsPermission.getFileDefault(), file, create, true, (short) 3, BLOCK, null, null, null);
        for (int block = 0; block < blocks; block++) {
            LocatedBlock added = calls.addBlock(file, file, null, null, status.getFileId(), null, null);
            assertEquals(3, added.getLocations().length);
            calls.abandonBlock(added.getBlock(), status.getFileId(), file, file);
        }
    }
}
