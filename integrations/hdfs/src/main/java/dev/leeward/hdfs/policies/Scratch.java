package dev.leeward.hdfs.policies;

/** Reusable memory of one thread. */
public final class Scratch {

    private long[] racks = new long[0];
    private long[] hosts = new long[0];
    private final Best bestRacks = new Best(Leeward.RACKS_EXAMINED);

    /** Keys of racks; the content is undefined. */
    long[] racks(int count) {
        if (racks.length < count) {
            racks = new long[count];
        }
        return racks;
    }

    /** Keys of hosts; the content is undefined. */
    long[] hosts(int count) {
        if (hosts.length < count) {
            hosts = new long[count];
        }
        return hosts;
    }

    /** The racks whose hosts {@link Leeward} examines next. */
    Best bestRacks() {
        return bestRacks;
    }
}
