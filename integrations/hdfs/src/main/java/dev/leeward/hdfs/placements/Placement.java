package dev.leeward.hdfs.placements;

/**
 * A placed block, as its links count it.
 *
 * <p>The pressure on a link leaves with the link's next window, as in Sinbad; if decisions read numbers of the snapshot
 * that have the pressure of counted placements, it leaves when the snapshot counts the placement. The rate leaves when
 * the snapshot counts the placement, or when the transfer is over at that rate. If the controller does not learn of the
 * placement, the rate leaves with the next window too.
 */
public final class Placement {

    /** Stands for a link on which the placement no longer counts. */
    private static final int LEFT = -1;
    private static final long NOT_SENT = Long.MAX_VALUE;

    private final LocalLoads loads;
    private final long atNs;
    /** Links whose pressure counts, and the pressure on each. */
    private final int[] pressed;
    private final long[] pressures;
    /** True if decisions read numbers of the snapshot that include the pressure of counted placements. */
    private final boolean inSnapshot;
    /** Links whose rate counts. */
    private final int[] crossed;
    private final long rate;
    private final long endNs;
    private volatile boolean awaited;
    private volatile long sequence = NOT_SENT;

    /**
     * A placement.
     *
     * @param loads loads that count it
     * @param atNs its time by the controller's clock, in ns since 1970
     * @param pressed links whose pressure counts
     * @param pressures pressure in bit/s on each of them
     * @param inSnapshot whether decisions read numbers of the snapshot that have the pressure of counted placements
     * @param crossed links whose rate counts
     * @param rate rate of the block in bit/s
     * @param bytes size of the block
     */
    public Placement(
            LocalLoads loads,
            long atNs,
            int[] pressed,
            long[] pressures,
            boolean inSnapshot,
            int[] crossed,
            long rate,
            long bytes) {
        this.loads = loads;
        this.atNs = atNs;
        this.pressed = pressed;
        this.pressures = pressures;
        this.inSnapshot = inSnapshot;
        this.crossed = crossed;
        this.rate = rate;
        this.endNs = atNs + (rate > 0 ? (long) Math.min(1e18, bytes * 8.0 / rate * 1e9) : 0);
    }

    /** Number under which the placement is reported; above all numbers until then. */
    long sequence() {
        return sequence;
    }

    void setSequence(long sequence) {
        this.sequence = sequence;
    }

    /** Says whether the controller will learn of the placement. */
    void setAwaited(boolean awaited) {
        this.awaited = awaited;
    }

    /**
     * Takes in that the controller rejected the report, or that its answer was lost. The number of a later report must
     * not count this one too. If the controller took it although the answer was lost, it counts twice until the next
     * window of its links: less harm than a load that nothing counts.
     */
    void withdraw() {
        awaited = false;
        sequence = NOT_SENT;
    }

    long atNs() {
        return atNs;
    }

    void count() {
        for (int i = 0; i < pressed.length; i++) {
            loads.addPressure(pressed[i], pressures[i]);
        }
        for (int link : crossed) {
            loads.addRate(link, rate, 1);
        }
    }

    /**
     * Drops what a snapshot shows. Only one thread calls this.
     *
     * @param current loads of the snapshot's numbering
     * @param until end of the last window of each link
     * @param nowNs time of the snapshot
     * @param counted whether the snapshot counts the placement
     * @param late whether the placement is too old to count at all
     * @return true if nothing of the placement counts any more
     */
    boolean drop(LocalLoads current, long[] until, long nowNs, boolean counted, boolean late) {
        if (current != loads) {
            return true;
        }
        boolean remains = false;
        boolean shown = counted || late || nowNs > endNs;
        boolean pressureShown = late || (counted && inSnapshot);
        for (int i = 0; i < pressed.length; i++) {
            if (pressed[i] != LEFT && (pressureShown || until[pressed[i]] > atNs)) {
                loads.addPressure(pressed[i], -pressures[i]);
                pressed[i] = LEFT;
            }
            remains |= pressed[i] != LEFT;
        }
        for (int i = 0; i < crossed.length; i++) {
            if (crossed[i] != LEFT && (shown || (!awaited && until[crossed[i]] > atNs))) {
                loads.addRate(crossed[i], -rate, -1);
                crossed[i] = LEFT;
            }
            remains |= crossed[i] != LEFT;
        }
        return !remains;
    }
}
