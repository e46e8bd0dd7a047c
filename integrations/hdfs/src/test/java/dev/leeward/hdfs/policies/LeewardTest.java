package dev.leeward.hdfs.policies;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.leeward.hdfs.topology.Sender;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.net.Node;
import org.junit.jupiter.api.Test;

class LeewardTest {

    private final Policy leeward = new Leeward(0, 2.0);

    @Test
    void theSecondCopyGoesToTheRackWithTheMostRateAlongTheChain() {
        Scene scene = new Scene(4, 4).load("r1:downlink", 1.6).load("r2:downlink", 0.2).load("r3:downlink", 1.3);
        assertEquals(Map.of("r2", 100), scene.racksOf(leeward, "r0h0", 100));
    }

    @Test
    void aClientBesideTheDataNodesStaysInItsPodIfTheLinkOutOfItIsFull() {
        Scene scene = new Scene(4, 4);
        scene.network.addPods(2, 4 * Scene.GBPS);
        scene.load("p0:uplink", 4.0);
        assertEquals(Map.of("r1", 50), scene.firstRacksOf(leeward, "/r0/10.9.9.9", "~/r0", 50));
        assertEquals(
                Set.of("r1", "r2", "r3"), scene.firstRacksOf(leeward, "/elsewhere/10.9.9.9", "~/r0", 50).keySet());
    }

    @Test
    void placedBlocksCountBeforeTelemetryShowsThem() {
        Scene scene = new Scene(3, 4);
        scene.network.pend("r1:downlink", 1_700_000_000L);
        assertEquals(Map.of("r2", 50), scene.racksOf(leeward, "r0h0", 50));
    }

    @Test
    void amongRacksOfEqualRateTheEmptierWinsAndThenTheLargerUplink() {
        Scene scene = new Scene(4, 4);
        for (int host = 0; host < 4; host++) {
            for (int rack = 0; rack < 4; rack++) {
                scene.nodes.fill("r" + rack + "h" + host, rack == 2 ? 0.2 : 0.5);
            }
        }
        assertEquals(Map.of("r2", 50), scene.racksOf(leeward, "r0h0", 50));
        for (int host = 0; host < 4; host++) {
            scene.nodes.fill("r2h" + host, 0.5);
        }
        scene.network.setCapacity("r3:uplink", 6 * Scene.GBPS);
        assertEquals(Map.of("r3", 50), scene.racksOf(leeward, "r0h0", 50));
    }

    /**
     * Writers that fill their own links make the rate of the chain equal for all racks. The comparison then reached the
     * storage, and the rack without writers is the emptiest, whatever its link carries.
     */
    @Test
    void aFullLinkOfTheWriterDoesNotHideTheHotRack() {
        Scene scene = new Scene(4, 4)
                .load("r0h0:egress", 1.0).load("r1:downlink", 0.4).load("r2:downlink", 0.5).load("r3:downlink", 1.9);
        for (int rack = 0; rack < 4; rack++) {
            for (int host = 0; host < 4; host++) {
                scene.nodes.fill("r" + rack + "h" + host, rack == 3 ? 0.05 : 0.3);
            }
        }
        Map<String, Integer> counts = scene.racksOf(leeward, "r0h0", 90);
        assertEquals(0, counts.getOrDefault("r3", 0), "blocks in the hot rack: " + counts);
    }

    @Test
    void aFullUplinkOfTheWritersRackDoesNotHideTheHotRack() {
        Scene scene = new Scene(4, 4)
                .load("r0:uplink", 2.0).load("r1:downlink", 0.4).load("r2:downlink", 0.5).load("r3:downlink", 1.9);
        for (int host = 0; host < 4; host++) {
            scene.nodes.fill("r0h" + host, 0.4);
            scene.nodes.fill("r1h" + host, 0.4);
            scene.nodes.fill("r2h" + host, 0.4);
        }
        Map<String, Integer> counts = scene.racksOf(leeward, "r0h0", 90);
        assertEquals(0, counts.getOrDefault("r3", 0), "blocks in the hot rack: " + counts);
    }

    /** Writers in three racks fill their links. Each block loads the rack that it chose for six blocks. */
    @Test
    void overNinetyBlocksOfWritersWithFullLinksTheHotRackGetsNoneAlthoughItIsTheEmptiest() {
        Scene scene = new Scene(4, 4).load("r0h0:egress", 1.0).load("r1h0:egress", 1.0).load("r2h0:egress", 1.0);
        ArrayDeque<Integer> running = new ArrayDeque<>();
        Map<String, Double> fills = new TreeMap<>();
        int[] blocks = new int[4];
        for (int block = 0; block < 90; block++) {
            for (int rack = 0; rack < 4; rack++) {
                int there = Collections.frequency(running, rack);
                scene.load("r" + rack + ":downlink", Math.min(2.0, (rack == 3 ? 1.7 : 0.2) + 0.3 * there));
            }
            String writer = "r" + block % 3 + "h0";
            String host = scene.choose(leeward, writer, "~/" + writer.substring(0, 2), Set.of(writer), 2, block);
            blocks[host.charAt(1) - '0']++;
            running.addLast(host.charAt(1) - '0');
            if (running.size() > 6) {
                running.removeFirst();
            }
            fills.merge(writer, 0.01, Double::sum);
            fills.merge(host, 0.01, Double::sum);
            fills.forEach(scene.nodes::fill);
        }
        assertEquals(0, blocks[3], "blocks by rack: " + Arrays.toString(blocks));
        assertTrue(blocks[0] > 20 && blocks[1] > 20 && blocks[2] > 20, Arrays.toString(blocks));
    }

    /** One pending block can fill a link, and shares it with the next one; other traffic stays. */
    @Test
    void aLinkWithPendingBlocksIsBetterThanOneThatOtherTrafficFills() {
        Scene scene = new Scene(4, 4).load("r1:downlink", 1.4);
        scene.network.pend("r2:downlink", 2 * Scene.GBPS).pend("r3:downlink", 2 * Scene.GBPS);
        Map<String, Integer> counts = scene.racksOf(leeward, "r0h0", 60);
        assertEquals(0, counts.getOrDefault("r1", 0), "blocks in the hot rack: " + counts);
    }

    @Test
    void aBlockGetsWhatIsLeftOrAFairShareBesidePendingBlocks() {
        Scene scene = new Scene(4, 1).load("r0:downlink", 0.5).load("r1:downlink", 0.5).load("r2:downlink", 2.0);
        scene.network.pend("r1:downlink", 1_500_000_000L).pend("r3:downlink", 200_000_000L);
        NetworkView view = scene.view();
        double[] shares = {1.5e9, 0.6e9, 0.0, 1.8e9};
        for (int rack = 0; rack < 4; rack++) {
            assertEquals(shares[rack], view.share(view.network().downlink(rack), 1e9), 1.0, "r" + rack);
        }
        assertEquals(NetworkView.UNLIMITED, view.share(-1, 1e9));
    }

    @Test
    void forAWriterOutsideTheWidestLinkIsTheScaleAndNotThatOfTheFirstHost() {
        Scene scene = new Scene(3, 4).load("r0:downlink", 1.9).load("r1:downlink", 1.9).load("r2:downlink", 1.4);
        scene.network.setCapacity("r0h0:ingress", Scene.GBPS / 20);
        for (int seed = 0; seed < 30; seed++) {
            String host = scene.choose(leeward, null, "", Set.of(), 1, seed);
            assertEquals("r2", host.substring(0, 2));
        }
    }

    @Test
    void aRackIsWorthNoMoreThanItsHosts() {
        Scene scene = new Scene(3, 2).load("r1h0:ingress", 0.95).load("r1h1:ingress", 0.95).load("r2:downlink", 1.0);
        assertEquals(Map.of("r2", 50), scene.racksOf(leeward, "r0h0", 50));
    }

    @Test
    void twoCopiesNeedTwoGoodHosts() {
        Scene scene = new Scene(3, 2).load("r1h1:ingress", 0.95).load("r2:downlink", 1.25);
        assertEquals("r1h0", scene.choose(leeward, "r0h0", "~/r0", Set.of("r0h0"), 1, 5));
        assertEquals(Map.of("r2", 50), scene.racksOf(leeward, "r0h0", 50));
    }

    @Test
    void aBusyDiskMakesAHostWorse() {
        Policy withDisks = new Leeward(400_000_000L, 2.0);
        Scene scene = new Scene(2, 3);
        scene.network.addDevice("r1h0:sda", 0.1).addDevice("r1h1:sda", 0.9).addDevice("r1h2:sda", 0.2);
        for (int seed = 0; seed < 20; seed++) {
            assertEquals("r1h1", scene.choose(withDisks, "r0h0", "~/r0", Set.of("r0h0"), 1, seed));
        }
    }

    @Test
    void aRackOfUnknownLoadTakesNoPart() {
        Scene scene = new Scene(3, 4).load("r2:downlink", 1.95);
        scene.network.measure("r1:downlink", null);
        assertEquals(Map.of("r2", 50), scene.racksOf(leeward, "r0h0", 50));
        scene.network.measure("r2:downlink", null);
        assertNull(scene.choose(leeward, "r0h0", "~/r0", Set.of("r0h0"), 1, 1));
    }

    @Test
    void aWriterOutsideTheClusterGetsTheRackWithTheMostRateInto() {
        Scene scene = new Scene(3, 4).load("r0:downlink", 1.5).load("r2:downlink", 1.5);
        assertEquals("r1", scene.choose(leeward, null, "", Set.of(), 1, 9).substring(0, 2));
    }

    @Test
    void excludedHostsAreNeverChosen() {
        Scene scene = new Scene(3, 3);
        for (int seed = 0; seed < 200; seed++) {
            String host = scene.choose(leeward, "r0h0", "", Set.of("r0h0", "r1h0", "r1h1", "r2h2"), 1, seed);
            assertFalse(Set.of("r0h0", "r1h0", "r1h1", "r2h2").contains(host), host);
        }
    }

    @Test
    void theLinksOfPodsCountBetweenPodsAndNotWithinOne() {
        Scene scene = new Scene(6, 2);
        scene.network.addPods(2, 3 * Scene.GBPS);
        scene.load("p1:downlink", 2.9).load("p2:downlink", 1.0).load("r1:downlink", 1.4).load("r5:downlink", 1.5);
        // r1 is in the writer's pod and has 0.6 left, r4 has 1.0 of the writer's link, r2 and r3 have 0.1 of their pod.
        assertEquals(Map.of("r4", 50), scene.racksOf(leeward, "r0h0", 50));
        scene.load("p0:uplink", 2.8);
        assertEquals(Map.of("r1", 50), scene.racksOf(leeward, "r0h0", 50));
    }

    /** HDFS's checks read many objects. Racks that lose by their rates do without them. */
    @Test
    void hostsOfRacksThatCannotWinAreNotChecked() {
        Scene scene = new Scene(8, 6);
        for (int rack = 1; rack < 8; rack++) {
            scene.network.pend("r" + rack + ":downlink", 200_000_000L * rack);
            for (int host = 0; host < 6; host++) {
                scene.network.pend("r" + rack + "h" + host + ":ingress", 3 * Scene.GBPS);
            }
        }
        NetworkView view = scene.view();
        List<Node> checked = new ArrayList<>();
        Set<Node> excluded = new HashSet<>() {
            @Override
            public boolean contains(Object node) {
                checked.add((Node) node);
                return super.contains(node);
            }
        };
        Sender sender = view.sender(scene.nodes.node("r0h0"));
        int[] held = {sender.rack()};
        Candidates candidates =
                new Candidates(view.topology(), view.closed(), "~/r0", excluded, StorageType.DISK, 0, held, 2);
        Request request = new Request(Scene.BLOCK, sender, sender, held, 2, 0, 0, new Ties(1));
        assertTrue(leeward.choose(view, request, candidates, new Scratch(), null) >= 0);
        assertEquals(2, checked.size(), "checked: " + checked);
    }

    @Test
    void anExplanationListsTheHostsOfTheChosenRack() {
        Scene scene = new Scene(3, 3).load("r1h1:ingress", 0.5).load("r2:downlink", 0.4).load("r2h0:ingress", 0.2);
        Explanation why = new Explanation();
        String chosen = scene.choose(scene.view(), leeward, "r0h0", "~/r0", List.of("r0h0", "r1h2"), 1, 1, why);
        assertEquals("r1h0", chosen);
        assertEquals(List.of("/r1", "/r2"), why.racks().stream().map(Explanation.Considered::name).toList());
        assertEquals(List.of("r1h0", "r1h1"), why.hosts().stream().map(Explanation.Considered::name).toList());
        assertEquals(0.5e9, why.hosts().get(1).value());
    }

    /** Before the first report, and for a copy whose rack is given. NaN is no number of JSON. */
    @Test
    void anUnknownLoadIsListedAsUnknownAndNotAsANumber() {
        Scene scene = new Scene(3, 3);
        scene.network.forgetAll();
        Explanation why = new Explanation();
        assertNotNull(scene.choose(scene.view(), leeward, "r0h0", "/r1", List.of("r0h0"), 1, 1, why));
        Explanation.Considered rack = why.racks().get(0);
        assertEquals("/r1", rack.name());
        assertEquals(0.0, rack.value());
        assertEquals("bit/s, load unknown", rack.unit());
        assertTrue(rack.detail().startsWith("own links unknown, "), rack.detail());
        why.hosts().forEach(host -> assertTrue(Double.isFinite(host.value()), host.toString()));
    }

    /** If the writer's link is the bottleneck, all racks have one rate along the chain. */
    @Test
    void anExplanationShowsWhatDecidesAmongRacksOfTheSameRate() {
        Scene scene = new Scene(3, 1).load("r0h0:egress", 1.0).load("r1:downlink", 0.75).load("r2:downlink", 1.9);
        scene.nodes.fill("r1h0", 0.62);
        Explanation why = new Explanation();
        assertEquals("r1h0", scene.choose(scene.view(), leeward, "r0h0", "~/r0", List.of("r0h0"), 1, 1, why));
        assertEquals(List.of(0.0, 0.0), why.racks().stream().map(Explanation.Considered::value).toList());
        assertEquals("own links 1.25 Gbps, 62 % full, uplink class 1", why.racks().get(0).detail());
        assertEquals("own links 100 Mbps, 0 % full, uplink class 1", why.racks().get(1).detail());
        assertEquals("62 % full", why.hosts().get(0).detail());
    }

    @Test
    void equalRacksShareTheBlocks() {
        Map<String, Integer> counts = new Scene(4, 4).racksOf(leeward, "r0h0", 3000);
        counts.values().forEach(count -> assertTrue(count > 850 && count < 1150, counts.toString()));
    }
}
