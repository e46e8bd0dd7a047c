package dev.leeward.hdfs.policies;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.leeward.hdfs.topology.Topology;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.server.blockmanagement.FakeDataNodes;
import org.apache.hadoop.net.Node;
import org.junit.jupiter.api.Test;

class CandidatesTest {

    private final FakeDataNodes nodes = new FakeDataNodes(0, 0);
    private final Topology topology;

    CandidatesTest() {
        for (String location : List.of("/d1/r1", "/d1/r2", "/d1/r10", "/d2/r1", "/d10/r1")) {
            nodes.add(location, location.substring(1).replace('/', '-') + "-a");
            nodes.add(location, location.substring(1).replace('/', '-') + "-b");
        }
        topology = Topology.of(nodes.map());
    }

    private List<String> racks(String scope, int mostPerRack, int... held) {
        Candidates candidates = new Candidates(topology, scope, Set.of(), null, 0, held, mostPerRack);
        List<String> racks = new ArrayList<>();
        for (int rack = candidates.firstRack(); rack < candidates.endRack(); rack++) {
            if (candidates.allowsRack(rack, 1)) {
                racks.add(topology.location(rack));
            }
        }
        return racks;
    }

    @Test
    void racksAreInNaturalOrder() {
        assertEquals(List.of("/d1/r1", "/d1/r2", "/d1/r10", "/d2/r1", "/d10/r1"), racks("", 9));
    }

    @Test
    void aScopeIsARackOrAllButARackOrALevelAbove() {
        assertEquals(List.of("/d1/r10"), racks("/d1/r10", 9));
        assertEquals(List.of("/d1/r1", "/d1/r10", "/d2/r1", "/d10/r1"), racks("~/d1/r2", 9));
        assertEquals(List.of("/d1/r1", "/d1/r2", "/d1/r10"), racks("/d1", 9));
        assertEquals(List.of("/d2/r1", "/d10/r1"), racks("~/d1", 9));
        assertEquals(List.of(), racks("/d3/r9", 9));
        assertEquals(List.of(), racks("~", 9));
    }

    @Test
    void aRackWithTheMostCopiesIsClosed() {
        assertEquals(List.of("/d1/r1", "/d1/r2", "/d1/r10", "/d10/r1"), racks("", 1, 3));
        assertEquals(List.of("/d1/r2", "/d1/r10", "/d2/r1", "/d10/r1"), racks("", 2, 0, 3, 0));
    }

    @Test
    void aHostNeedsTheTypeOfStorageAndMustBeInServiceAndNotExcluded() {
        Set<Node> without = Set.of(nodes.node("d1-r1-b"));
        Candidates all = new Candidates(topology, "", without, StorageType.DISK, 0, new int[0], 9);
        int excluded = topology.host(nodes.node("d1-r1-b"));
        int leaving = topology.host(nodes.node("d2-r1-a"));
        assertTrue(all.includes(topology.host(nodes.node("d1-r1-a"))));
        assertFalse(all.includes(excluded));
        nodes.node("d2-r1-a").startDecommission();
        assertFalse(all.includes(leaving));
        Candidates ssd = new Candidates(topology, "", Set.of(), StorageType.SSD, 0, new int[0], 9);
        assertFalse(ssd.includes(excluded));
    }

    @Test
    void aHostNeedsRoomForTheCopy() {
        nodes.fill("d1-r1-a", 1.0);
        Candidates candidates = new Candidates(topology, "", Set.of(), StorageType.DISK, 1, new int[0], 9);
        assertFalse(candidates.includes(topology.host(nodes.node("d1-r1-a"))));
        assertTrue(candidates.includes(topology.host(nodes.node("d1-r1-b"))));
    }
}
