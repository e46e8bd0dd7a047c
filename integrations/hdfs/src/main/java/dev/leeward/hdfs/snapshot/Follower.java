package dev.leeward.hdfs.snapshot;

import dev.leeward.hdfs.log.OncePerMinute;
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

    private final Controller controller;
    private final WeakReference<SnapshotFeed> feed;
    private final Consumer<Snapshot> first;
    private final Backoff backoff = new Backoff(() -> ThreadLocalRandom.current().nextDouble());
    /** The last snapshot, or null. */
    private Snapshot last;
    /** True if the next snapshot must be whole. */
    private boolean whole = true;
    private final OncePerMinute warnings = new OncePerMinute();
    /** True if the log has the present outage. */
    private boolean announced;

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
            while (feed.get() != null) {
                follow();
            }
        } catch (InterruptedException e) {
            LOG.debug("interrupted", e);
        }
    }

    /** Requests and publishes one snapshot. */
    private void follow() throws InterruptedException {
        long started = System.nanoTime();
        boolean atOnce = whole;
        try {
            last = controller.snapshot(last, whole);
            whole = false;
            backoff.reset();
            publish(last);
            pace(started, atOnce);
        } catch (ControllerException e) {
            failed(e.failure(), e.getMessage(), null);
        } catch (RuntimeException | Error e) {
            // No fault of this program may end the daemon, and it is not one of the controller.
            failed(Failure.ERROR, "a fault in Leeward: " + e, e);
        }
    }

    /** Waits if a controller does not. The first difference follows the whole snapshot at once. */
    private void pace(long started, boolean atOnce) throws InterruptedException {
        long least = atOnce ? 0 : controller.intervalMs() / 2;
        long passed = (System.nanoTime() - started) / 1_000_000;
        if (passed < least) {
            Thread.sleep(least - passed);
        }
    }

    /**
     * Passes a snapshot on. A reader that fails keeps its earlier view, and the default policy decides in its place
     * once that is too old. The other readers get further snapshots in time.
     */
    private void publish(Snapshot next) {
        SnapshotFeed target = feed.get();
        if (target == null) {
            return;
        }
        try {
            first.accept(next);
            target.publish(next);
        } catch (RuntimeException | Error e) {
            note(target, Failure.ERROR, "a fault in Leeward: " + e, e);
            return;
        }
        if (announced) {
            LOG.info("Leeward at {} is back: epoch {} with {} links", controller.address(), next.epoch(),
                    next.linkCount());
        }
        announced = false;
    }

    private void failed(Failure failure, String message, Throwable fault) throws InterruptedException {
        SnapshotFeed target = feed.get();
        if (target == null) {
            return;
        }
        note(target, failure, message, fault);
        // An answer that does not fit the last snapshot is requested whole the next time.
        whole |= failure == Failure.INVALID || failure == Failure.STATUS || failure == Failure.ERROR;
        Thread.sleep(backoff.pause());
    }

    private void note(SnapshotFeed target, Failure failure, String message, Throwable fault) {
        target.fail(failure, message);
        if (warnings.take(System.nanoTime())) {
            LOG.warn("Leeward has no new snapshot ({}): {}; blocks are placed by the default policy once the last one"
                    + " is too old", failure.text(), message, fault);
            announced = true;
        }
    }
}
