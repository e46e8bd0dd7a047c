package dev.leeward.hdfs.testing;

import static org.junit.jupiter.api.Assertions.fail;

import java.util.function.BooleanSupplier;

/** Waits for what other threads do. */
public final class Eventually {

    private static final long LONGEST_MS = 30_000;

    private Eventually() {
    }

    /** Waits until a condition holds, at most half a minute. */
    public static void holds(String what, BooleanSupplier condition) throws InterruptedException {
        long end = System.nanoTime() + LONGEST_MS * 1_000_000;
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > end) {
                fail("not within " + LONGEST_MS + " ms: " + what);
            }
            Thread.sleep(20);
        }
    }
}
