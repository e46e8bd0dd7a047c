package dev.leeward.hdfs.snapshot;

import java.lang.ref.WeakReference;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The daemon thread that follows the controller. Nothing that the controller answers ends it. HDFS never closes a
 * placement policy, so the thread ends by itself when no policy refers to its feed any more.
 */
public final class Follower implements Runnable {

    private static final Logger LOG = LoggerFactory.getLogger(Follower.class);
    /** Time between two warnings of one outage, in ns. */
    private static final long WARNING_NS = 60_000_000_000L;

    private final Controller controller;
    private final WeakReference<SnapshotFeed> feed;
    private final Consumer<Snapshot> first;
    private final Backoff backoff = new Backoff(() -> ThreadLocalRandom.current().nextDouble());
    private boolean failing;
    private long warned;

    private Follower(Controller controller, SnapshotFeed feed, Consumer<Snapshot> first) {
        this.controller = controller;
        this.first = first;
        this.feed = new WeakReference<>(feed);
    }

    /**
     * Starts a thread that publishes snapshots of a controller in a feed.
     *
     * @param first takes in each snapshot before the readers of the feed; it must not refer to the feed
     */
    public static Thread start(Controller controller, SnapshotFeed feed, Consumer<Snapshot> first) {
        Thread thread = new Thread(
                new Follower(controller, feed, first), "leeward-snapshots " + controller.address());
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    @Override
    public void run() {
        try {
            Snapshot base = null;
            while (feed.get() != null) {
                base = follow(base);
            }
        } catch (InterruptedException e) {
            LOG.debug("interrupted", e);
        }
    }

    /** Requests one snapshot after {@code base}. Returns the base of the next request. */
    private Snapshot follow(Snapshot base) throws InterruptedException {
        long started = System.nanoTime();
        try {
            Snapshot next = controller.snapshot(base);
            publish(next);
            backoff.reset();
            pace(started, base == null);
            return next;
        } catch (ControllerException e) {
            return failed(e.failure(), e.getMessage(), base);
        } catch (RuntimeException e) {
            // A fault of this program must not end the daemon: placements continue by the default policy.
            return failed(Failure.INVALID, e.toString(), base);
        }
    }

    /** Waits if a controller does not. The first difference follows the whole snapshot at once. */
    private void pace(long started, boolean first) throws InterruptedException {
        long least = first ? 0 : controller.intervalMs() / 2;
        long passed = (System.nanoTime() - started) / 1_000_000;
        if (passed < least) {
            Thread.sleep(least - passed);
        }
    }

    private void publish(Snapshot next) {
        SnapshotFeed target = feed.get();
        if (target == null) {
            return;
        }
        first.accept(next);
        target.publish(next);
        if (failing) {
            LOG.info("Leeward at {} is back: epoch {} with {} links", controller.address(), next.epoch(),
                    next.linkCount());
        }
        failing = false;
    }

    private Snapshot failed(Failure failure, String message, Snapshot base) throws InterruptedException {
        SnapshotFeed target = feed.get();
        if (target == null) {
            return null;
        }
        target.fail(failure, message);
        long now = System.nanoTime();
        if (!failing || now - warned > WARNING_NS) {
            LOG.warn("Leeward is unavailable ({}): {}; blocks are placed by the default policy once the last snapshot"
                    + " is too old", failure.text(), message);
            warned = now;
        }
        failing = true;
        Thread.sleep(backoff.pause());
        // An answer that does not fit the base is requested whole the next time.
        return failure == Failure.INVALID || failure == Failure.STATUS ? null : base;
    }
}
