package dev.leeward.hdfs.policies;

import dev.leeward.hdfs.snapshot.Snapshot;
import dev.leeward.hdfs.topology.Network;
import dev.leeward.hdfs.topology.Storage;

/** Classes of racks by uplink per storage, as in CCP (Hotspots, sections 4.3 and 5.2). */
public final class UplinkClasses {

    /** Less uplink than the guideline. */
    static final int LOW = 0;
    /** About the guideline, or unknown. */
    static final int MEDIUM = 1;
    /** More uplink than the guideline. */
    static final int HIGH = 2;

    /** Tolerance around the guideline: 10 % either way. The paper gives no number. */
    private static final double TOLERANCE = 0.1;
    private static final double BYTES_PER_TB = 1e12;

    private final byte[] classes;
    private final boolean known;

    private UplinkClasses(byte[] classes, boolean known) {
        this.classes = classes;
        this.known = known;
    }

    /**
     * Classes of all racks.
     *
     * @param perTb guideline in bit/s of uplink per TB of storage; 0 for the average of the racks
     */
    public static UplinkClasses of(Network network, Storage storage, Snapshot snapshot, long perTb) {
        int racks = network.topology().rackCount();
        double[] ratios = new double[racks];
        double uplinks = 0.0;
        double bytes = 0.0;
        for (int rack = 0; rack < racks; rack++) {
            int link = network.uplink(rack);
            ratios[rack] = Double.NaN;
            if (snapshot != null && link >= 0 && storage.rackCapacity(rack) > 0) {
                double uplink = snapshot.capacities()[link];
                ratios[rack] = uplink / storage.rackCapacity(rack);
                uplinks += uplink;
                bytes += storage.rackCapacity(rack);
            }
        }
        double guideline = perTb > 0 ? perTb / BYTES_PER_TB : uplinks / bytes;
        byte[] classes = new byte[racks];
        for (int rack = 0; rack < racks; rack++) {
            classes[rack] = (byte) classOf(ratios[rack] / guideline);
        }
        return new UplinkClasses(classes, bytes > 0.0);
    }

    private static int classOf(double ratio) {
        if (ratio > 1.0 + TOLERANCE) {
            return HIGH;
        }
        return ratio < 1.0 - TOLERANCE ? LOW : MEDIUM;
    }

    /** Class of a rack; higher is better. */
    int of(int rack) {
        return classes[rack];
    }

    /** True if the uplink and the storage of any rack are known. */
    boolean areKnown() {
        return known;
    }
}
