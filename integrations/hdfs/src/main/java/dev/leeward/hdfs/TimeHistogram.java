package dev.leeward.hdfs;

import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.LongAdder;

/** Durations in buckets that are an eighth of a power of two wide, from 64 ns on. Threads add without a lock. */
final class TimeHistogram {

    private static final int PER_DOUBLING = 8;
    private static final int FIRST_EXPONENT = 6;
    private static final int DOUBLINGS = 30;

    private final AtomicLongArray buckets = new AtomicLongArray(PER_DOUBLING * DOUBLINGS);
    private final LongAdder sum = new LongAdder();
    private final LongAdder count = new LongAdder();

    void add(long nanoseconds) {
        buckets.incrementAndGet(bucket(nanoseconds));
        sum.add(nanoseconds);
        count.increment();
    }

    private static int bucket(long nanoseconds) {
        long value = Math.max(nanoseconds, 1L << FIRST_EXPONENT);
        int exponent = 63 - Long.numberOfLeadingZeros(value);
        int part = (int) (value >>> (exponent - 3)) & (PER_DOUBLING - 1);
        return Math.min((exponent - FIRST_EXPONENT) * PER_DOUBLING + part, PER_DOUBLING * DOUBLINGS - 1);
    }

    long count() {
        return count.sum();
    }

    long sum() {
        return sum.sum();
    }

    /** Duration in ns that a share of all durations does not exceed, to an eighth; 0 without any. */
    long quantile(double share) {
        long left = (long) Math.ceil(share * count.sum());
        for (int bucket = 0; bucket < buckets.length() && left > 0; bucket++) {
            left -= buckets.get(bucket);
            if (left <= 0) {
                long base = 1L << (FIRST_EXPONENT + bucket / PER_DOUBLING);
                return base + base * (bucket % PER_DOUBLING + 1) / PER_DOUBLING;
            }
        }
        return 0;
    }
}
