package dev.leeward.hdfs.snapshot;

import java.util.function.DoubleSupplier;

/** Pauses between failed requests: they double up to a limit, with jitter so that NameNodes do not come together. */
final class Backoff {

    private static final long FIRST_MS = 250;
    private static final long LONGEST_MS = 10_000;

    private final DoubleSupplier random;
    private long next = FIRST_MS;

    /**
     * A back-off.
     *
     * @param random numbers from 0 to 1
     */
    Backoff(DoubleSupplier random) {
        this.random = random;
    }

    void reset() {
        next = FIRST_MS;
    }

    /** The next pause in ms: from half of the doubled pause to all of it. */
    long pause() {
        long longest = next;
        next = Math.min(2 * next, LONGEST_MS);
        return Math.round(longest * (0.5 + 0.5 * random.getAsDouble()));
    }
}
