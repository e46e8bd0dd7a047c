package dev.leeward.hdfs.testing;

/** Memory of this process. */
public final class Heap {

    private Heap() {
    }

    /** Bytes in use, after collections of garbage. */
    public static long used() {
        for (int i = 0; i < 3; i++) {
            System.gc();
        }
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }
}
