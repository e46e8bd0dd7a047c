package dev.leeward.hdfs.policies;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.leeward.hdfs.placements.Placement;
import dev.leeward.hdfs.placements.Placements;
import dev.leeward.hdfs.settings.Settings;
import dev.leeward.hdfs.settings.Settings.Hysteresis;
import dev.leeward.hdfs.topology.Sender;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.fs.StorageType;
import org.junit.jupiter.api.Test;

class SinbadTest {

    private final Policy sinbad = sinbad(Hysteresis.RATE, 0);

    /** The policy, with reports each second. */
    private static Policy sinbad(Hysteresis hysteresis, long diskWriteRate) {
        return new Sinbad(new Settings.Sinbad(0, hysteresis, false, false, 0.2, 1_000), diskWriteRate);
    }

    @Test
    void theSecondCopyGoesBelowTheLinkWithTheMostExpectedCapacity() {
        Scene scene = new Scene(4, 4).load("r1:downlink", 1.9).load("r2:downlink", 0.3).load("r3:downlink", 1.0);
        assertEquals(Map.of("r2", 100), scene.racksOf(sinbad, "r0h0", 100));
    }

    @Test
    void theHostOfARackIsTheOneBelowTheLinkWithTheMostExpectedCapacity() {
        Scene scene = new Scene(2, 4)
                .load("r1h0:ingress", 0.5).load("r1h1:ingress", 0.2)
                .load("r1h2:ingress", 0.9).load("r1h3:ingress", 0.7);
        assertEquals("r1h1", scene.choose(sinbad, "r0h0", "~/r0", Set.of("r0h0"), 1, 1));
        assertEquals("r1h0", scene.choose(sinbad, "r0h0", "/r1", Set.of("r0h0", "r1h1"), 1, 1));
    }

    @Test
    void equalRacksShareTheBlocks() {
        Map<String, Integer> counts = new Scene(4, 4).racksOf(sinbad, "r0h0", 3000);
        assertEquals(Set.of("r1", "r2", "r3"), counts.keySet());
        counts.values().forEach(count -> assertTrue(count > 850 && count < 1150, counts.toString()));
    }

    @Test
    void racksThatTheDiskLimitsAreEqual() {
        Scene scene = new Scene(3, 4).load("r1:downlink", 1.0).load("r2:downlink", 0.1);
        Map<String, Integer> counts = scene.racksOf(sinbad(Hysteresis.RATE, 400_000_000L), "r0h0", 1000);
        assertTrue(counts.get("r1") > 400 && counts.get("r2") > 400, counts.toString());
    }

    @Test
    void aLinkOfUnknownLoadTakesNoPart() {
        Scene scene = new Scene(4, 4).load("r2:downlink", 1.99).load("r3:downlink", 1.98);
        scene.network.measure("r1:downlink", null);
        assertEquals(Map.of("r3", 50), scene.racksOf(sinbad, "r0h0", 50));
        scene.network.measure("r3h0:ingress", null);
        for (int seed = 0; seed < 50; seed++) {
            assertNotEquals("r3h0", scene.choose(sinbad, "r0h0", "~/r0", Set.of("r0h0"), 1, seed));
        }
    }

    @Test
    void withoutAnyKnownLoadTheDefaultPolicyChooses() {
        Scene scene = new Scene(3, 4);
        scene.network.forgetAll();
        assertNull(scene.choose(sinbad, "r0h0", "~/r0", Set.of("r0h0"), 1, 1));
    }

    @Test
    void hostsWithoutCountersAreDrawn() {
        Scene scene = new Scene(2, 4);
        for (int host = 0; host < 4; host++) {
            scene.network.measure("r1h" + host + ":ingress", null);
        }
        Set<String> chosen = new TreeSet<>();
        for (int seed = 0; seed < 100; seed++) {
            chosen.add(scene.choose(sinbad, "r0h0", "~/r0", Set.of("r0h0"), 1, seed));
        }
        assertEquals(Set.of("r1h0", "r1h1", "r1h2", "r1h3"), chosen);
    }

    @Test
    void ifNoHostOfTheBestRackIsAllowedTheNextRackFollows() {
        Scene scene = new Scene(3, 2).load("r2:downlink", 1.0);
        assertEquals("r2", scene.choose(sinbad, "r0h0", "~/r0", Set.of("r0h0", "r1h0", "r1h1"), 1, 3).substring(0, 2));
        assertNull(scene.choose(
                sinbad, "r0h0", "~/r0", Set.of("r0h0", "r1h0", "r1h1", "r2h0", "r2h1"), 1, 3));
    }

    @Test
    void ownPlacementsPressOnTheLinkUntilTheNextReport() {
        Scene scene = new Scene(3, 4).load("r2:downlink", 0.5);
        NetworkView view = scene.view();
        assertEquals("r1", scene.choose(view, sinbad, "r0h0", "~/r0", Set.of("r0h0"), 1, 1, null).substring(0, 2));
        int link = view.network().downlink(view.topology().rack("/r1"));
        press(view, link, Scene.GBPS);
        assertEquals("r2", scene.choose(view, sinbad, "r0h0", "~/r0", Set.of("r0h0"), 1, 1, null).substring(0, 2));
    }

    private static void press(NetworkView view, int link, long bps) {
        Placements placements = new Placements("test");
        placements.add(new Placement(
                view.loads(), 0, new int[] {link}, new long[] {bps}, false, new int[0], 0, 0));
    }

    @Test
    void theLinkIntoAPodLimitsItsRacks() {
        Scene scene = new Scene(4, 2);
        scene.network.addPods(2, 3 * Scene.GBPS);
        scene.load("p1:downlink", 2.5).load("r1:downlink", 1.0);
        assertEquals(Map.of("r1", 50), scene.racksOf(sinbad, "r0h0", 50));
    }

    /**
     * Rack of the next chunk of a stripe by a writer (-1 for one outside), in a network of three racks whose first has
     * the most left.
     */
    private static String rackOfNextChunk(Policy policy, int host, int... placedRacks) {
        Scene scene = new Scene(3, 6).load("r1:downlink", 0.5).load("r2:downlink", 0.6);
        NetworkView view = scene.view();
        Candidates candidates = new Candidates(
                view.topology(), view.closed(), "", Set.of(), StorageType.DISK, 0, placedRacks, 9);
        Sender writer = host < 0 ? Sender.UNKNOWN : view.network().sender(host);
        Request request = new Request(Scene.BLOCK, writer, writer, placedRacks, 1, 0, 0, new Ties(1));
        int chosen = policy.choose(view, request, candidates, new Scratch(), null);
        return view.topology().location(view.topology().rackOf(chosen));
    }

    @Test
    void chunksOfAStripePressOnTheRacksThatTheyWentTo() {
        assertEquals("/r0", rackOfNextChunk(sinbad, -1));
        assertEquals("/r1", rackOfNextChunk(sinbad, -1, 0));
        assertEquals("/r2", rackOfNextChunk(sinbad, -1, 0, 0, 1));
    }

    @Test
    void chunksPressByTheSameRuleAsPlacedBlocks() {
        assertEquals("/r0", rackOfNextChunk(sinbad(Hysteresis.OFF, 0), -1, 0, 0, 1));
        assertEquals("/r0", rackOfNextChunk(sinbad, 0, 0, 0), "chunks in the writer's rack do not cross its link");
    }

    /** Rack of the next chunk of a stripe, in two pods of two racks; the first pod has more left. */
    private String rackOfNextChunkAmongPods(String writer, int... placedRacks) {
        Scene scene = new Scene(4, 6);
        scene.network.addPods(2, 2 * Scene.GBPS);
        scene.load("p1:downlink", 0.5);
        NetworkView view = scene.view();
        Candidates candidates = new Candidates(
                view.topology(), view.closed(), "", Set.of(), StorageType.DISK, 0, placedRacks, 9);
        Sender sender = writer == null ? Sender.UNKNOWN : view.sender(scene.nodes.node(writer));
        Request request = new Request(Scene.BLOCK, sender, sender, placedRacks, 1, 0, 0, new Ties(1));
        int chosen = sinbad.choose(view, request, candidates, new Scratch(), null);
        return view.topology().location(view.topology().rackOf(chosen));
    }

    @Test
    void chunksPressOnTheLinkIntoTheirPodForAllItsRacks() {
        assertTrue(Set.of("/r0", "/r1").contains(rackOfNextChunkAmongPods(null)));
        assertTrue(Set.of("/r2", "/r3").contains(rackOfNextChunkAmongPods(null, 0)));
        assertTrue(Set.of("/r2", "/r3").contains(rackOfNextChunkAmongPods(null, 0, 0, 2)));
    }

    @Test
    void chunksWithinThePodOfTheWriterDoNotPressOnTheLinkIntoIt() {
        assertEquals("/r1", rackOfNextChunkAmongPods("r1h0", 0), "the writer's rack, behind the idle link of its pod");
    }

    @Test
    void thePressureOfChunksCountsOnLinksAndNotOnTheDisk() {
        Scene scene = new Scene(2, 6).load("r1:downlink", 1.7);
        NetworkView view = scene.view();
        int[] placed = {0};
        Candidates candidates = new Candidates(
                view.topology(), view.closed(), "", Set.of(), StorageType.DISK, 0, placed, 9);
        Request request =
                new Request(Scene.BLOCK, Sender.UNKNOWN, Sender.UNKNOWN, placed, 1, 0, 0, new Ties(1));
        // A disk takes 400 Mb/s: the link into r0 still has that, and the one into r1 has less.
        int chosen = sinbad(Hysteresis.RATE, 400_000_000L).choose(view, request, candidates, new Scratch(), null);
        assertEquals("/r0", view.topology().location(view.topology().rackOf(chosen)));
    }

    @Test
    void anExplanationListsTheRacksAndHostsWithTheirValuesBestFirst() {
        Scene scene = new Scene(3, 2).load("r1:downlink", 0.5).load("r2:downlink", 1.5).load("r1h0:ingress", 0.25);
        Explanation why = new Explanation();
        scene.choose(scene.view(), sinbad, "r0h0", "~/r0", List.of("r0h0"), 1, 1, why);
        assertEquals(List.of("/r1", "/r2"), why.racks().stream().map(Explanation.Considered::name).toList());
        assertEquals(1.5e9, why.racks().get(0).value());
        assertEquals(List.of("r1h1", "r1h0"), why.hosts().stream().map(Explanation.Considered::name).toList());
    }

    @Test
    void anUnknownLoadIsListedAsUnknown() {
        Scene scene = new Scene(3, 2);
        scene.network.forgetAll();
        Explanation why = new Explanation();
        assertNotNull(scene.choose(scene.view(), sinbad, "r0h0", "/r1", List.of("r0h0"), 1, 1, why));
        List<Explanation.Considered> all = new ArrayList<>(why.racks());
        all.addAll(why.hosts());
        assertEquals(3, all.size());
        all.forEach(one -> assertEquals("bit/s, load unknown", one.unit()));
    }
}
