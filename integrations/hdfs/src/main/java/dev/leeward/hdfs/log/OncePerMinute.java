package dev.leeward.hdfs.log;

/** Lets at most one warning a minute into the log. Several threads may use it. */
public final class OncePerMinute {

    private static final long MINUTE_NS = 60_000_000_000L;

    private boolean taken;
    private long takenNano;

    /** True if the log may have a warning at a monotonic time in ns; the next one then waits for a minute. */
    public synchronized boolean take(long nano) {
        if (taken && nano - takenNano < MINUTE_NS) {
            return false;
        }
        taken = true;
        takenNano = nano;
        return true;
    }
}
