package dev.leeward.hdfs.snapshot;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.leeward.hdfs.settings.Settings;
import dev.leeward.hdfs.testing.Eventually;
import dev.leeward.hdfs.testing.FakeController;
import dev.leeward.hdfs.testing.FakeController.Behavior;
import dev.leeward.hdfs.testing.FakeNetwork;
import java.lang.ref.Reference;
import java.net.URI;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class FollowerTest {

    private final FakeNetwork network = new FakeNetwork(2, 2, 1000, 2000);

    private static Controller controller(long deadlineMs, FakeController... controllers) throws ControllerException {
        List<URI> addresses = Arrays.stream(controllers).map(fake -> URI.create(fake.address())).toList();
        return new Controller(new Settings.Connection(addresses, "nn", null, null, null, 100, deadlineMs, 1_000));
    }

    @Test
    void anErrorInAReaderDoesNotEndTheDaemonAndIsNotOneOfTheController() throws Exception {
        try (FakeController fake = new FakeController(network)) {
            SnapshotFeed feed = new SnapshotFeed(1_000);
            AtomicInteger snapshots = new AtomicInteger();
            Thread daemon = Follower.start(controller(200, fake), feed, snapshot -> {
                if (snapshots.incrementAndGet() == 1) {
                    throw new StackOverflowError("of this test");
                }
            });
            Eventually.holds("a snapshot after the error", () -> feed.last() != null);
            assertTrue(daemon.isAlive());
            assertEquals(1, feed.failureCount(Failure.ERROR));
            assertEquals(0, feed.failureCount(Failure.INVALID));
        }
    }

    @Test
    void aReaderThatFailsKeepsSnapshotsFromNoOtherOne() throws Exception {
        try (FakeController fake = new FakeController(network)) {
            SnapshotFeed feed = new SnapshotFeed(1_000);
            SnapshotFeed.Listener broken = snapshot -> {
                throw new IllegalStateException("of this test");
            };
            AtomicInteger snapshots = new AtomicInteger();
            SnapshotFeed.Listener sound = snapshot -> snapshots.incrementAndGet();
            feed.addListener(broken);
            feed.addListener(sound);
            Thread daemon = Follower.start(controller(200, fake), feed, snapshot -> { });
            // With pauses after each fault, these would take half a minute.
            Eventually.holds("snapshots for the sound reader", () -> snapshots.get() >= 10);
            Eventually.holds("the fault is shown", () -> feed.failure() == Failure.ERROR);
            assertFalse(feed.isAway(), "decisions of the sound reader continue");
            assertTrue(daemon.isAlive());
            // The feed refers to them weakly.
            Reference.reachabilityFence(broken);
            Reference.reachabilityFence(sound);
        }
    }

    @Test
    void anAnswerWithoutAnEndIsCutOff() throws Exception {
        try (FakeController fake = new FakeController(network)) {
            fake.behave(Behavior.FLOODS);
            Controller controller = controller(6_000, fake);
            ControllerException error =
                    assertThrows(ControllerException.class, () -> controller.snapshot(null, true));
            assertEquals(Failure.INVALID, error.failure());
            assertTrue(error.getMessage().endsWith("the answer has more than 67108864 bytes"), error.getMessage());
            fake.behave(Behavior.WELL);
            assertEquals(4, controller.snapshot(null, true).hostCount());
        }
    }

    @Test
    void requestsThatFailAtOnceLeaveTheirAddressOnce() throws Exception {
        try (FakeController hangs = new FakeController(network); FakeController other = new FakeController(network)) {
            hangs.behave(Behavior.HANGS);
            // Whole snapshots have ten times the deadline.
            Controller controller = controller(50, hangs, other);
            CountDownLatch start = new CountDownLatch(1);
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 2; i++) {
                Thread thread = new Thread(() -> {
                    try {
                        start.await();
                    } catch (InterruptedException e) {
                        throw new AssertionError(e);
                    }
                    assertThrows(ControllerException.class, () -> controller.snapshot(null, true));
                });
                thread.start();
                threads.add(thread);
            }
            start.countDown();
            for (Thread thread : threads) {
                thread.join();
            }
            assertEquals(other.address(), controller.address().toString());
        }
    }
}
