package dev.leeward.hdfs.placements;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.leeward.hdfs.snapshot.Snapshot;
import dev.leeward.hdfs.snapshot.Snapshots;
import dev.leeward.hdfs.testing.FakeNetwork;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

class PlacementsTest {

    private final FakeNetwork network = new FakeNetwork(2, 2, 1000, 2000);
    private final Placements placements = new Placements("nn");
    private long bytes = 1 << 20;
    private boolean inSnapshot;
    private long time;

    private Snapshot snapshot() {
        Snapshot snapshot = Snapshots.read(network.whole(), 0);
        placements.onSnapshot(snapshot);
        time = snapshot.timeNs();
        return snapshot;
    }

    private Placement add(int pressed, int crossed) {
        Placement placement = new Placement(
                placements.loads(), time, new int[] {pressed}, new long[] {70}, inSnapshot,
                new int[] {crossed}, 30, bytes);
        placements.add(placement);
        return placement;
    }

    private static void send(Placement placement, long sequence) {
        placement.setAwaited(true);
        placement.setSequence(sequence);
    }

    private void assertLoads(long pressure, long rate, long flows) {
        LocalLoads loads = placements.loads();
        assertEquals(
                List.of(pressure, rate, flows), List.of(loads.pressure(1), loads.rate(2), loads.flows(2)));
    }

    @Test
    void pressureLeavesWithTheNextWindowOfItsLink() {
        snapshot();
        add(1, 2).setAwaited(true);
        assertLoads(70, 30, 1);
        network.pass(500);
        snapshot();
        assertLoads(70, 30, 1);
        network.advance(500);
        snapshot();
        assertLoads(0, 30, 1);
    }

    @Test
    void pressureThatTheSnapshotHasLeavesWhenItCountsThePlacement() {
        snapshot();
        inSnapshot = true;
        send(add(1, 2), 100);
        send(add(1, 2), 101);
        network.pass(100).count("nn", 100);
        snapshot();
        assertLoads(70, 30, 1);
        network.advance(500);
        snapshot();
        assertLoads(0, 30, 1);
    }

    @Test
    void theRateLeavesWhenTheSnapshotCountsThePlacement() {
        snapshot();
        send(add(1, 2), 100);
        send(add(1, 2), 101);
        network.advance(1000).count("nn", 100);
        snapshot();
        assertLoads(0, 30, 1);
        assertEquals(1, placements.size());
        network.count("nn", 101).count("other", 900);
        snapshot();
        assertLoads(0, 0, 0);
        assertEquals(0, placements.size());
    }

    @Test
    void theRateOfAPlacementThatIsNotReportedLeavesWithTheNextWindow() {
        snapshot();
        add(1, 2);
        network.pass(500);
        snapshot();
        assertLoads(70, 30, 1);
        network.advance(500);
        snapshot();
        assertLoads(0, 0, 0);
    }

    @Test
    void aRejectedPlacementIsNotCountedWithALaterOneThatIsAccepted() {
        snapshot();
        Placement rejected = add(1, 2);
        send(rejected, 100);
        rejected.withdraw();
        send(add(1, 2), 101);
        network.pass(100).count("nn", 101);
        snapshot();
        assertLoads(140, 30, 1);
        network.advance(500);
        snapshot();
        assertLoads(0, 0, 0);
    }

    @Test
    void theRateLeavesWhenTheTransferIsOver() {
        snapshot();
        // 30 bit/s for two seconds.
        bytes = 7;
        add(1, 2).setAwaited(true);
        network.pass(1_500);
        snapshot();
        assertLoads(70, 30, 1);
        network.pass(500);
        snapshot();
        assertLoads(70, 0, 0);
    }

    @Test
    void aReportThatWasLostCountsForHalfAMinuteAtMost() {
        snapshot();
        add(1, 2).setAwaited(true);
        network.advance(29_000);
        snapshot();
        assertLoads(0, 30, 1);
        network.advance(2_000);
        snapshot();
        assertLoads(0, 0, 0);
    }

    @Test
    void placementsLeaveAlthoughTheClockOfTheControllerIsSetBack() {
        snapshot();
        add(1, 2).setAwaited(true);
        network.advance(-3_600_000);
        snapshot();
        assertLoads(0, 0, 0);
        assertEquals(0, placements.size());
    }

    @Test
    void whileTheDaemonIsLatePlacementsDoNotFillTheMemory() {
        snapshot();
        for (int i = 0; i < Placements.MOST_WAITING + 10; i++) {
            add(1, 2).setAwaited(true);
        }
        assertEquals(Placements.MOST_WAITING, placements.size());
        assertEquals(10, placements.earlyCount());
        assertLoads(70L * Placements.MOST_WAITING, 30L * Placements.MOST_WAITING, Placements.MOST_WAITING);
    }

    @Test
    void aNewVersionOfTheClusterStartsWithoutLoads() {
        snapshot();
        add(1, 2);
        network.setClusterVersion("2");
        snapshot();
        assertLoads(0, 0, 0);
        assertEquals(0, placements.size());
    }

    @Test
    void tooManyPlacementsLeaveEarlyOldestFirst() {
        snapshot();
        for (int i = 0; i < Placements.MOST + 10; i++) {
            add(1, 2).setAwaited(true);
        }
        snapshot();
        assertEquals(Placements.MOST, placements.size());
        assertEquals(10, placements.earlyCount());
        assertLoads(70L * Placements.MOST, 30L * Placements.MOST, Placements.MOST);
    }

    @Test
    void loadsAddUpToNothingAfterThreadsAddAndSnapshotsDrop() throws Exception {
        snapshot();
        CountDownLatch done = new CountDownLatch(4);
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 4; t++) {
            Thread thread = new Thread(() -> {
                for (int i = 0; i < 25_000; i++) {
                    add(1, 2);
                }
                done.countDown();
            });
            threads.add(thread);
            thread.start();
        }
        while (done.getCount() > 0) {
            network.advance(10);
            snapshot();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        network.advance(60_000);
        snapshot();
        snapshot();
        assertLoads(0, 0, 0);
        assertEquals(0, placements.size());
    }
}
