package dev.leeward.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.leeward.hdfs.testing.Eventually;
import dev.leeward.hdfs.testing.FakeController;
import dev.leeward.hdfs.testing.FakeNetwork;
import dev.leeward.hdfs.testing.Jmx;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeStorageInfo;
import org.apache.hadoop.hdfs.server.blockmanagement.FakeDataNodes;
import org.apache.hadoop.hdfs.server.blockmanagement.LeewardUpgradeDomainPlacementPolicy;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Hosts 0 and 3 of each rack share upgrade domain 0; hosts 1 and 2 are in upgrade domains 1 and 2. */
class UpgradeDomainTest {

    private static final long GBPS = 1_000_000_000L;

    private final FakeDataNodes nodes = new FakeDataNodes(4, 4);
    private final FakeNetwork network = new FakeNetwork(4, 4, GBPS, 2 * GBPS);
    private final FakeController controller;

    UpgradeDomainTest() throws Exception {
        controller = new FakeController(network);
        for (int rack = 0; rack < 4; rack++) {
            for (int host = 0; host < 4; host++) {
                nodes.node("r" + rack + "h" + host).setUpgradeDomain("domain" + host % 3);
            }
        }
    }

    @AfterEach
    void stop() {
        controller.close();
    }

    private Harness open(String policy) throws Exception {
        Configuration conf = Harness.conf(controller.address(), policy);
        conf.set("dfs.leeward.snapshot.max-age", "5s");
        Harness harness = new Harness(nodes, nodes.open(new LeewardUpgradeDomainPlacementPolicy(), conf));
        Eventually.holds("the first snapshot", () -> Jmx.hasSnapshot("LeewardInfo"));
        return harness;
    }

    @ParameterizedTest
    @ValueSource(strings = {"sinbad", "ccp", "rehdfs", "leeward"})
    void noTwoCopiesShareAnUpgradeDomain(String policy) throws Exception {
        Harness harness = open(policy);
        for (int block = 0; block < 100; block++) {
            Set<String> domains = new HashSet<>();
            List<String> hosts = harness.place("r0h0");
            hosts.forEach(host -> domains.add(nodes.node(host).getUpgradeDomain()));
            assertEquals(3, domains.size(), hosts.toString());
            assertEquals(2, hosts.stream().map(Harness::rack).distinct().count(), hosts.toString());
        }
        assertTrue(Harness.count(Reason.RANKED) >= 90, "ranked: " + Harness.count(Reason.RANKED));
        assertEquals(0, Harness.count(Reason.ERROR));
    }

    @Test
    void theCoolestRackGetsTheCopiesOnItsHostsOfOtherUpgradeDomains() throws Exception {
        network.measure("r1:downlink", 1_900_000_000L).measure("r3:downlink", 1_950_000_000L);
        assertEquals(Set.of("r0h0", "r2h1", "r2h2"), new HashSet<>(open("leeward").place("r0h0")));
    }

    @Test
    void ofTwoCopiesInOneUpgradeDomainTheOneBehindTheHotterLinkLeaves() throws Exception {
        network.measure("r1:uplink", 1_900_000_000L).measure("r3:uplink", 1_950_000_000L);
        Harness harness = open("leeward");
        List<DatanodeStorageInfo> copies = new ArrayList<>();
        List<StorageType> types = new ArrayList<>();
        for (String host : List.of("r0h0", "r1h3", "r2h1", "r3h2")) {
            copies.add(nodes.storage(host));
            types.add(StorageType.DISK);
        }
        List<DatanodeStorageInfo> deleted =
                harness.policy.chooseReplicasToDelete(copies, copies, 3, types, null, null);
        assertEquals(List.of(nodes.storage("r1h3")), deleted, "r3h2 is alone in its upgrade domain");
    }
}
