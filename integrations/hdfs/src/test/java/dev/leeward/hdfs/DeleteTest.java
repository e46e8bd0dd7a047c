package dev.leeward.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.leeward.hdfs.testing.Eventually;
import dev.leeward.hdfs.testing.FakeController;
import dev.leeward.hdfs.testing.FakeController.Behavior;
import dev.leeward.hdfs.testing.FakeNetwork;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeStorageInfo;
import org.apache.hadoop.hdfs.server.blockmanagement.FakeDataNodes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DeleteTest {

    private static final long GBPS = 1_000_000_000L;

    private final FakeDataNodes nodes = new FakeDataNodes(4, 4);
    private final FakeNetwork network = new FakeNetwork(4, 4, GBPS, 2 * GBPS);
    private final FakeController controller;

    DeleteTest() throws Exception {
        controller = new FakeController(network);
    }

    @AfterEach
    void stop() {
        controller.close();
    }

    /** Hosts of the copies that leave if {@code stay} of them stay. */
    private Set<String> delete(Harness harness, int stay, String... hosts) {
        List<DatanodeStorageInfo> copies = new ArrayList<>();
        List<StorageType> types = new ArrayList<>();
        for (String host : hosts) {
            copies.add(nodes.storage(host));
            types.add(StorageType.DISK);
        }
        Set<String> deleted = new TreeSet<>();
        for (DatanodeStorageInfo copy
                : harness.policy.chooseReplicasToDelete(copies, copies, stay, types, null, null)) {
            deleted.add(copy.getDatanodeDescriptor().getHostName());
        }
        return deleted;
    }

    @Test
    void theCopyBehindTheHotUplinkLeavesFirst() throws Exception {
        network.measure("r1:uplink", 1_900_000_000L);
        Harness harness = Harness.openWithSnapshot(nodes, controller, "leeward");
        assertEquals(Set.of("r1h2"), delete(harness, 2, "r0h0", "r1h2", "r2h3"));
        assertEquals(Set.of("r1h2", "r1h3"), delete(harness, 3, "r0h0", "r1h2", "r1h3", "r2h0", "r3h3"));
    }

    @Test
    void aHotLinkOfTheHostCountsToo() throws Exception {
        network.measure("r2h3:egress", 950_000_000L);
        assertEquals(Set.of("r2h3"),
                delete(Harness.openWithSnapshot(nodes, controller, "sinbad"), 2, "r0h0", "r1h2", "r2h3"));
    }

    @Test
    void copiesNeverEndInOneRack() throws Exception {
        network.measure("r1:uplink", 1_900_000_000L);
        Harness harness = Harness.openWithSnapshot(nodes, controller, "leeward");
        // Two racks hold the block: HDFS offers only the copies of the rack with two.
        Set<String> deleted = delete(harness, 2, "r1h0", "r2h1", "r2h2");
        assertTrue(deleted.contains("r2h1") || deleted.contains("r2h2"), deleted.toString());
    }

    @Test
    void amongCoolLinksTheFullerDataNodeLosesItsCopyAsByTheDefaultPolicy() throws Exception {
        network.measure("r1:uplink", 100_000_000L);
        nodes.fill("r3h0", 0.9);
        for (String policy : List.of("leeward", "ccp")) {
            Harness harness = Harness.openWithSnapshot(nodes, controller, policy);
            assertEquals(Set.of("r3h0"), delete(harness, 2, "r0h0", "r1h2", "r3h0"), policy);
        }
    }

    @Test
    void anUnknownLoadOrAStaleSnapshotLeavesTheChoiceToTheDefaultPolicy() throws Exception {
        network.measure("r1:uplink", 1_900_000_000L).measure("r0h0:egress", null).measure("r0:uplink", null);
        nodes.fill("r3h0", 0.9);
        Harness harness = Harness.openWithSnapshot(nodes, controller, "leeward");
        assertEquals(Set.of("r3h0"), delete(harness, 2, "r0h0", "r1h2", "r3h0"));
        network.measure("r0h0:egress", 0L).measure("r0:uplink", 0L);
        controller.behave(Behavior.HANGS);
        harness.awaitReason(Reason.TIMEOUT);
        assertEquals(Set.of("r3h0"), delete(harness, 2, "r0h0", "r1h2", "r3h0"));
    }

    /** The link of a host that is down looks idle, so its copy would be the last one to leave. */
    @Test
    void theCopyOnAHostThatIsDownOrDrainingLeavesTheChoiceToTheDefaultPolicy() throws Exception {
        network.measure("r1:uplink", 1_900_000_000L);
        nodes.fill("r3h0", 0.9);
        Harness harness = Harness.openWithSnapshot(nodes, controller, "leeward");
        BooleanSupplier behindHotLink = () -> delete(harness, 2, "r0h0", "r1h2", "r3h0").equals(Set.of("r1h2"));
        BooleanSupplier ofFullHost = () -> delete(harness, 2, "r0h0", "r1h2", "r3h0").equals(Set.of("r3h0"));
        assertTrue(behindHotLink.getAsBoolean());
        network.setUp("r0h0", false);
        Eventually.holds("the default rule", ofFullHost);
        network.setUp("r0h0", true);
        Eventually.holds("the host is up again", behindHotLink);
        network.setDraining("r0h0", true);
        Eventually.holds("the default rule again", ofFullHost);
    }

    @ParameterizedTest
    @CsvSource({"off, 0, 0", "shadow, 0, 0", "canary:25%, 50, 150", "on, 400, 400"})
    void theModeOfTheControllerCountsForDeletesToo(String mode, int least, int most) throws Exception {
        network.measure("r1:uplink", 1_900_000_000L).setMode(mode);
        nodes.fill("r3h0", 0.9);
        Harness harness = Harness.openWithSnapshot(nodes, controller, "leeward");
        int hot = 0;
        for (int block = 0; block < 400; block++) {
            Set<String> deleted = delete(harness, 2, "r0h0", "r1h2", "r3h0");
            assertTrue(deleted.equals(Set.of("r1h2")) || deleted.equals(Set.of("r3h0")), deleted.toString());
            hot += deleted.contains("r1h2") ? 1 : 0;
        }
        assertTrue(hot >= least && hot <= most, "copies behind the hot link: " + hot);
    }
}
