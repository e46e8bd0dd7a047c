package dev.leeward.hdfs.log;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class OncePerMinuteTest {

    private static final long MINUTE = 60_000_000_000L;

    /** Monotonic times have any sign, and overflow. */
    @ParameterizedTest
    @ValueSource(longs = {0, -5, Long.MIN_VALUE, Long.MAX_VALUE - 1})
    void aMinuteHasOneWarning(long start) {
        OncePerMinute warnings = new OncePerMinute();
        assertTrue(warnings.take(start));
        assertFalse(warnings.take(start));
        assertFalse(warnings.take(start + MINUTE - 1));
        assertTrue(warnings.take(start + MINUTE));
        assertFalse(warnings.take(start + MINUTE + 1));
    }

    @Test
    void aFlappingSourceHasOneWarningAMinute() {
        OncePerMinute warnings = new OncePerMinute();
        int taken = 0;
        for (long nano = 0; nano < 10 * MINUTE; nano += 250_000_000L) {
            taken += warnings.take(nano) ? 1 : 0;
        }
        assertTrue(taken == 10, "warnings: " + taken);
    }
}
