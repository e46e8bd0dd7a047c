package dev.leeward.hdfs;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class LastHourTest {

    private static final long MINUTE = 60_000_000_000L;

    /** Two blocks a minute by the first reason, and an outage of 100 blocks in the tenth minute. */
    private static long[] totals(int minute) {
        return new long[] {2L * minute, minute < 10 ? 0 : 100};
    }

    @Test
    void countsLeaveAfterAnHour() {
        long start = Long.MAX_VALUE - 3 * MINUTE;
        LastHour hour = new LastHour(2, start);
        for (int minute = 1; minute <= 200; minute++) {
            long nano = start + minute * MINUTE;
            assertFalse(hour.isDue(nano - 1));
            assertTrue(hour.isDue(nano));
            hour.store(totals(minute), nano);
            long[] increase = hour.increase(totals(minute));
            assertEquals(Math.min(2 * minute, 118), increase[0], "minute " + minute);
            boolean seen = minute >= 10 && minute < 69;
            assertEquals(seen ? 100 : 0, increase[1], "minute " + minute);
        }
    }

    @Test
    void countsOfTheRunningMinuteCount() {
        LastHour hour = new LastHour(1, 0);
        assertArrayEquals(new long[] {7}, hour.increase(new long[] {7}));
        hour.store(new long[] {7}, MINUTE);
        assertArrayEquals(new long[] {9}, hour.increase(new long[] {9}));
    }
}
