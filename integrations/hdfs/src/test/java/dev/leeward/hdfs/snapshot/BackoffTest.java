package dev.leeward.hdfs.snapshot;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class BackoffTest {

    /** Shortest and longest pause after each failure, in ms. */
    private static final long[][] PAUSES = {
        {125, 250}, {250, 500}, {500, 1_000}, {1_000, 2_000}, {2_000, 4_000}, {4_000, 8_000}, {5_000, 10_000},
        {5_000, 10_000}};

    private double random;
    private final Backoff backoff = new Backoff(() -> random);

    @Test
    void pausesDoubleUpToTenSecondsWithJitterAndBeginAgainAfterASuccess() {
        for (int extreme = 0; extreme < 2; extreme++) {
            random = extreme;
            for (long[] pause : PAUSES) {
                assertEquals(pause[extreme], backoff.pause());
            }
            backoff.reset();
        }
        random = 0.5;
        assertEquals(188, backoff.pause());
    }
}
