package dev.leeward.hdfs.topology;

import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeDescriptor;

/** Storage of the DataNodes, as their heartbeats report it to the NameNode. Sizes are bytes. */
public final class Storage {

    /** Number of copies from which their average size says something. */
    private static final long ENOUGH_COPIES = 1_000;

    private final double[] hostFill;
    private final double[] rackFill;
    private final long[] rackCapacity;
    private final long[] rackFree;
    private final double meanFill;

    private Storage(double[] hostFill, double[] rackFill, long[] rackCapacity, long[] rackFree, double meanFill) {
        this.hostFill = hostFill;
        this.rackFill = rackFill;
        this.rackCapacity = rackCapacity;
        this.rackFree = rackFree;
        this.meanFill = meanFill;
    }

    /** Reads the storage of all DataNodes. */
    public static Storage of(Topology topology) {
        double[] hostFill = new double[topology.hostCount()];
        double[] rackFill = new double[topology.rackCount()];
        long[] rackCapacity = new long[topology.rackCount()];
        long[] rackFree = new long[topology.rackCount()];
        double used = 0.0;
        double total = 0.0;
        for (int rack = 0; rack < topology.rackCount(); rack++) {
            for (int host = topology.firstHost(rack); host < topology.firstHost(rack + 1); host++) {
                DatanodeDescriptor node = topology.node(host);
                hostFill[host] = fill(node.getCapacity(), node.getRemaining());
                rackCapacity[rack] += node.getCapacity();
                rackFree[rack] += node.getRemaining();
            }
            rackFill[rack] = fill(rackCapacity[rack], rackFree[rack]);
            used += rackCapacity[rack] - rackFree[rack];
            total += rackCapacity[rack];
        }
        return new Storage(hostFill, rackFill, rackCapacity, rackFree, total > 0.0 ? used / total : 0.0);
    }

    /** Average size in bytes of a stored copy or chunk; 0 while the NameNode knows of too few. */
    public static long meanCopy(Topology topology) {
        long used = 0;
        long copies = 0;
        for (int host = 0; host < topology.hostCount(); host++) {
            used += topology.node(host).getBlockPoolUsed();
            copies += topology.node(host).numBlocks();
        }
        return copies >= ENOUGH_COPIES ? Math.max(1, used / copies) : 0;
    }

    private static double fill(long capacity, long free) {
        return capacity > 0 ? Math.max(0.0, Math.min(1.0, (double) (capacity - free) / capacity)) : 0.0;
    }

    /** Used share of a host's storage. */
    public double hostFill(int host) {
        return hostFill[host];
    }

    /** Used share of a rack's storage. */
    public double rackFill(int rack) {
        return rackFill[rack];
    }

    /** Used share of all storage. */
    public double meanFill() {
        return meanFill;
    }

    /** Storage of a rack. */
    public long rackCapacity(int rack) {
        return rackCapacity[rack];
    }

    /** Free storage of a rack. */
    public long rackFree(int rack) {
        return rackFree[rack];
    }
}
