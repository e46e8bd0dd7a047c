package dev.leeward.hdfs.policies;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.leeward.hdfs.settings.Settings;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class CcpTest {

    private static Policy ccp(int sample, boolean byFreeSpace) {
        return new Ccp(new Settings.Ccp(0, sample, 0.1, byFreeSpace));
    }

    /** Racks whose uplink for each disk differs threefold: r1 has the most, r3 the least. */
    private static Scene scene() {
        Scene scene = new Scene(4, 4);
        scene.network.setCapacity("r1:uplink", 6 * Scene.GBPS).setCapacity("r2:uplink", 3_300_000_000L);
        return scene;
    }

    @Test
    void racksWithTheMostUplinkForTheirStorageComeFirst() {
        assertEquals(Map.of("r1", 100), scene().racksOf(ccp(1000, false), "r0h0", 100));
    }

    @Test
    void aSmallSampleMakesTheClassAWeightAndNotALaw() {
        Map<String, Integer> counts = scene().racksOf(ccp(2, false), "r0h0", 3000);
        assertTrue(counts.get("r1") > counts.get("r2") && counts.get("r3") > 100, counts.toString());
    }

    @Test
    void aRackMuchFullerThanTheAverageComesLast() {
        Scene scene = scene();
        for (int host = 0; host < 4; host++) {
            scene.nodes.fill("r1h" + host, 0.8);
        }
        assertEquals(0, scene.racksOf(ccp(1000, false), "r0h0", 100).getOrDefault("r1", 0));
    }

    @Test
    void withinFreeTakesTheEmptiestHost() {
        Scene scene = scene();
        for (int host = 0; host < 4; host++) {
            scene.nodes.fill("r1h" + host, 0.1 * (4 - host));
        }
        scene.nodes.fill("r2h0", 0.9);
        scene.nodes.fill("r3h0", 0.9);
        assertEquals("r1h3", scene.choose(ccp(1000, true), "r0h0", "~/r0", Set.of("r0h0"), 1, 1));
    }

    @Test
    void theGuidelineCanBeAbsolute() {
        Scene scene = scene();
        // Each rack has 17.6 TB: 2 Gb/s of uplink are 114 Mb/s for a TB, 6 Gb/s are 341.
        scene.uplinkPerTb = 100_000_000L;
        NetworkView view = scene.view();
        assertEquals(UplinkClasses.HIGH, view.classes().of(1));
        assertEquals(UplinkClasses.HIGH, view.classes().of(0));
        scene.uplinkPerTb = 190_000_000L;
        assertEquals(UplinkClasses.MEDIUM, scene.view().classes().of(2));
        assertEquals(UplinkClasses.LOW, scene.view().classes().of(3));
    }

    @Test
    void loadsPlayNoPart() {
        Scene scene = scene();
        scene.network.forgetAll();
        assertEquals(Map.of("r1", 50), scene.racksOf(ccp(1000, false), "r0h0", 50));
    }

    @Test
    void aScopeOfOneRackGetsAHostOfIt() {
        assertEquals("r3", scene().choose(ccp(16, false), "r0h0", "/r3", Set.of("r0h0"), 1, 1).substring(0, 2));
        assertNull(scene().choose(
                ccp(16, false), "r0h0", "/r3", Set.of("r3h0", "r3h1", "r3h2", "r3h3"), 1, 1));
    }

    @Test
    void ifNoDrawnRackFitsAllRacksAreLookedAt() {
        Scene scene = scene();
        for (int seed = 0; seed < 50; seed++) {
            String host = scene.choose(ccp(1, false), "r0h0", "~/r0",
                    Set.of("r0h0", "r1h0", "r1h1", "r1h2", "r1h3", "r2h0", "r2h1", "r2h2", "r2h3"), 1, seed);
            assertEquals("r3", host.substring(0, 2));
        }
    }
}
