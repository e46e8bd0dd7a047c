package dev.leeward.hdfs.policies;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.leeward.hdfs.topology.Topology;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
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
        Candidates candidates = new Candidates(topology, null, scope, Set.of(), null, 0, held, mostPerRack);
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
        Candidates all = new Candidates(topology, null, "", without, StorageType.DISK, 0, new int[0], 9);
        int excluded = topology.host(nodes.node("d1-r1-b"));
        int leaving = topology.host(nodes.node("d2-r1-a"));
        assertTrue(all.allows(topology.host(nodes.node("d1-r1-a"))));
        assertFalse(all.allows(excluded));
        nodes.node("d2-r1-a").startDecommission();
        assertFalse(all.allows(leaving));
        Candidates ssd = new Candidates(topology, null, "", Set.of(), StorageType.SSD, 0, new int[0], 9);
        assertFalse(ssd.allows(excluded));
    }

    @Test
    void aHostNeedsRoomForTheCopy() {
        nodes.fill("d1-r1-a", 1.0);
        Candidates candidates = new Candidates(topology, null, "", Set.of(), StorageType.DISK, 1, new int[0], 9);
        assertFalse(candidates.allows(topology.host(nodes.node("d1-r1-a"))));
        assertTrue(candidates.allows(topology.host(nodes.node("d1-r1-b"))));
    }

    @Test
    void aClosedHostIsNoCandidate() {
        boolean[] closed = new boolean[topology.hostCount()];
        int down = topology.host(nodes.node("d1-r2-a"));
        closed[down] = true;
        Candidates candidates = new Candidates(topology, closed, "/d1/r2", Set.of(), null, 0, new int[0], 9);
        assertFalse(candidates.allows(down));
        for (int seed = 0; seed < 50; seed++) {
            assertEquals(topology.host(nodes.node("d1-r2-b")), candidates.draw(new Ties(seed)));
        }
    }

    /** Number of draws of each host, of 3,000. */
    private Map<String, Integer> draws(Candidates candidates) {
        Map<String, Integer> counts = new TreeMap<>();
        for (int seed = 0; seed < 3_000; seed++) {
            int host = candidates.draw(new Ties(seed * 7919L));
            counts.merge(host < 0 ? "none" : topology.node(host).getHostName(), 1, Integer::sum);
        }
        return counts;
    }

    @Test
    void allCandidatesOfAScopeAreDrawnEquallyOften() {
        int[] held = {topology.rack("/d2/r1")};
        Set<Node> excluded = Set.of(nodes.node("d1-r1-b"));
        nodes.fill("d1-r10-a", 1.0);
        Candidates candidates = new Candidates(topology, null, "~/d1/r2", excluded, null, 1, held, 1);
        Map<String, Integer> counts = draws(candidates);
        assertEquals(Set.of("d1-r1-a", "d1-r10-b", "d10-r1-a", "d10-r1-b"), counts.keySet());
        counts.values().forEach(count -> assertTrue(count > 630 && count < 870, counts.toString()));
    }

    @Test
    void theOnlyCandidateOfManyHostsIsDrawn() {
        Set<Node> excluded = new HashSet<>(nodes.nodes());
        Node left = nodes.node("d2-r1-b");
        excluded.remove(left);
        Candidates one = new Candidates(topology, null, "", excluded, null, 0, new int[0], 9);
        assertEquals(Map.of("d2-r1-b", 3_000), draws(one));
        excluded.add(left);
        assertEquals(Map.of("none", 3_000), draws(one));
        Candidates nowhere = new Candidates(topology, null, "~", Set.of(), null, 0, new int[0], 9);
        assertEquals(Map.of("none", 3_000), draws(nowhere));
    }
}
