package dev.leeward.hdfs.policies;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.leeward.hdfs.settings.Settings;
import dev.leeward.hdfs.topology.Sender;
import dev.leeward.hdfs.topology.Topology;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.fs.StorageType;
import org.junit.jupiter.api.Test;

class ReHdfsTest {

    private static Policy rehdfs(Integer... offsets) {
        return new ReHdfs(new Settings.ReHdfs(List.of(offsets), 10_000));
    }

    @Test
    void copiesGoToTheRackAfterTheWriters() {
        Scene scene = new Scene(12, 2);
        assertEquals(Map.of("r4", 20), scene.racksOf(rehdfs(1), "r3h0", 20));
        assertEquals(Map.of("r0", 20), scene.racksOf(rehdfs(1), "r11h0", 20));
        assertEquals(Map.of("r2", 20), scene.racksOf(rehdfs(3), "r11h1", 20));
    }

    @Test
    void racksAreInTheOrderOfTheirNumbers() {
        Scene scene = new Scene(12, 1);
        assertEquals(Map.of("r10", 5), scene.racksOf(rehdfs(1), "r9h0", 5));
    }

    @Test
    void severalOffsetsFollowOneAnother() {
        Scene scene = new Scene(8, 2);
        String racks = "";
        for (int turn = 0; turn < 4; turn++) {
            scene.nowNs = turn * 10_000_000_000L + 5;
            racks += scene.racksOf(rehdfs(1, 2, 5), "r0h0", 3).keySet();
        }
        assertEquals("[r1][r2][r5][r1]", racks);
    }

    @Test
    void aFullRackIsPassedOver() {
        Scene scene = new Scene(4, 2);
        String host = scene.choose(rehdfs(1), "r0h0", "~/r0", Set.of("r0h0", "r1h0", "r1h1"), 1, 1);
        assertEquals("r2", host.substring(0, 2));
    }

    @Test
    void aFurtherRackOfABlockIsTheOneAfterTheLast() {
        Scene scene = new Scene(6, 2);
        NetworkView view = scene.view();
        Topology topology = view.topology();
        int[] held = {0, 1, 2};
        Candidates candidates = new Candidates(topology, null, "", Set.of(), StorageType.DISK, 0, held, 1);
        Sender writer = view.sender(scene.nodes.node("r0h0"));
        Request request = new Request(Scene.BLOCK, writer, writer, held, 1, 0, 0, new Ties(1));
        int host = rehdfs(1).choose(view, request, candidates, new Scratch(), null);
        assertEquals("/r3", topology.location(topology.rackOf(host)));
    }

    @Test
    void theFirstCopyOfAWriterOutsideGoesToAnyHost() {
        Scene scene = new Scene(3, 2);
        Map<String, Integer> counts = new TreeMap<>();
        for (int seed = 0; seed < 3_000; seed++) {
            counts.merge(scene.choose(rehdfs(1), null, "", Set.of("r1h1"), 1, seed), 1, Integer::sum);
        }
        assertEquals(Set.of("r0h0", "r0h1", "r1h0", "r2h0", "r2h1"), counts.keySet());
        counts.forEach((host, count) -> assertTrue(count > 400 && count < 1_100, counts.toString()));
    }

    @Test
    void aClientInARackOfDataNodesStartsFromThatRack() {
        assertEquals(Map.of("r2", 5), new Scene(4, 2).firstRacksOf(rehdfs(1), "/r1/10.9.9.9", "~/r1", 5));
    }

    @Test
    void anOffsetOfZeroStaysInTheWritersRackIfHdfsAllowsIt() {
        Scene scene = new Scene(4, 2);
        assertEquals("r1", scene.choose(rehdfs(0), "r0h0", "~/r0", Set.of("r0h0"), 1, 1).substring(0, 2));
        assertEquals("r0h1", scene.choose(rehdfs(0), "r0h0", "/r0", Set.of("r0h0"), 1, 1));
    }
}
