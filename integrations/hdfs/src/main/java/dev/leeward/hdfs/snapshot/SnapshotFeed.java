package dev.leeward.hdfs.snapshot;

import java.lang.ref.WeakReference;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.LongAdder;

/** The last snapshot, for any number of readers that never wait, and counts of how it came. */
public final class SnapshotFeed {

    /** A reader that is called after each new snapshot, by the daemon. */
    public interface Listener {
        /** Takes in a snapshot. */
        void accept(Snapshot snapshot);
    }

    private volatile Snapshot last;
    private final long maxAgeMs;
    private volatile Failure failure;
    private volatile boolean away;
    private volatile String detail = "";
    private final LongAdder whole = new LongAdder();
    private final LongAdder differences = new LongAdder();
    private final Map<Failure, LongAdder> failures = new EnumMap<>(Failure.class);
    private final List<WeakReference<Listener>> listeners = new CopyOnWriteArrayList<>();

    /**
     * An empty feed.
     *
     * @param maxAgeMs age from which a snapshot no longer counts
     */
    public SnapshotFeed(long maxAgeMs) {
        this.maxAgeMs = maxAgeMs;
        for (Failure kind : Failure.values()) {
            failures.put(kind, new LongAdder());
        }
    }

    /** Adds a reader. The feed does not keep it from the garbage collector. */
    public void addListener(Listener listener) {
        listeners.removeIf(reference -> reference.get() == null);
        listeners.add(new WeakReference<>(listener));
    }

    /** The last snapshot, or null. */
    public Snapshot last() {
        return last;
    }

    /** True if the daemon fails, and the last snapshot is too old or missing. Readers need no clock then. */
    public boolean isAway() {
        return away;
    }

    /** True if the last snapshot is too old at a local monotonic time, or missing. */
    public boolean isStale(long nano) {
        Snapshot snapshot = last;
        return snapshot == null || nano - snapshot.advancedNano() > maxAgeMs * 1_000_000;
    }

    /** Reason of the last request's failure; null if it succeeded, or before the first request. */
    public Failure failure() {
        return failure;
    }

    /** Message of the last failure. */
    public String detail() {
        return detail;
    }

    /** Number of whole snapshots. */
    public long wholeCount() {
        return whole.sum();
    }

    /** Number of differences. */
    public long differenceCount() {
        return differences.sum();
    }

    /** Number of failed requests by a reason. */
    public long failureCount(Failure kind) {
        return failures.get(kind).sum();
    }

    /** Publishes a snapshot. A reader that fails keeps it from no other one; the first fault is thrown at the end. */
    public void publish(Snapshot snapshot) {
        Throwable fault = null;
        for (WeakReference<Listener> reference : listeners) {
            Listener listener = reference.get();
            try {
                if (listener != null) {
                    listener.accept(snapshot);
                }
            } catch (RuntimeException | Error e) {
                fault = fault == null ? e : fault;
            }
        }
        last = snapshot;
        failure = null;
        away = false;
        (snapshot.isDifference() ? differences : whole).increment();
        if (fault instanceof Error error) {
            throw error;
        }
        if (fault instanceof RuntimeException exception) {
            throw exception;
        }
    }

    void fail(Failure kind, String message) {
        failures.get(kind).increment();
        detail = message;
        failure = kind;
        away = isStale(System.nanoTime());
    }
}
