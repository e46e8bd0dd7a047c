package dev.leeward.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.leeward.hdfs.placements.LocalLoads;
import dev.leeward.hdfs.snapshot.Snapshot;
import dev.leeward.hdfs.snapshot.Snapshots;
import dev.leeward.hdfs.testing.FakeNetwork;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Rate of an own placement on links of 1000 bit/s (hosts) and 2000 bit/s (racks). */
class PlacementRateTest {

    private final Snapshot snapshot = Snapshots.read(
            new FakeNetwork(4, 4, 1000, 2000).measure("r1:downlink", 1400L).measure("r2:downlink", 1950L).whole(), 0);
    private final LocalLoads loads = new LocalLoads(snapshot.numbering(), snapshot.linkCount());

    private long rate(long diskRate, String... links) {
        int[] crossed = Arrays.stream(links).mapToInt(snapshot::link).toArray();
        return PlacementLog.rate(snapshot, loads, crossed, diskRate);
    }

    @Test
    void theTightestLinkOrTheDiskLimits() {
        assertEquals(1000, rate(0, "r0h0:egress", "r3:downlink", "r3h0:ingress"));
        assertEquals(300, rate(300, "r0h0:egress", "r3:downlink", "r3h0:ingress"));
        assertEquals(2000, rate(0, "r1:downlink"), "a fair share, which is more than the 600 that are left");
        assertEquals(0, rate(0));
    }

    @Test
    void copiesThatCrossOneLinkShareIt() {
        assertEquals(500, rate(0, "r0h0:egress", "r3:downlink", "r0h0:egress", "r3:downlink"));
        assertEquals(333, rate(0, "r0h0:egress", "r3:downlink", "r0h0:egress", "r0h0:egress"));
    }

    @Test
    void theNumberOfCopiesOnEachLinkCountsWhateverTheirOrder() {
        Random random = new Random(5);
        for (int round = 0; round < 200; round++) {
            int[] crossed = random.ints(1 + random.nextInt(40), 0, snapshot.linkCount()).toArray();
            double expected = 1e18;
            for (int link : crossed) {
                double own = Arrays.stream(crossed).filter(other -> other == link).count();
                double left = snapshot.residual()[link] / own;
                expected = Math.min(expected, Math.max(left, snapshot.capacities()[link] / own));
            }
            assertEquals((long) expected, PlacementLog.rate(snapshot, loads, crossed, 0));
        }
    }
}
