package dev.leeward.hdfs.snapshot;

import java.util.Collections;
import java.util.HashMap;
import java.util.Map;

/**
 * The network at one time, as columns. Rates are bits per second; {@link #UNKNOWN} stands for an unknown value. Arrays
 * must not be changed.
 */
public final class Snapshot {

    /** Stands for an unknown number or time. */
    public static final long UNKNOWN = Table.UNKNOWN;

    private final String id;
    private final long epoch;
    private final long timeNs;
    private final String clusterVersion;
    private final double resolution;
    private final String mode;
    private final double share;
    private final long advancedNano;
    private final boolean difference;
    private final Table links;
    private final Table racks;
    private final Table hosts;
    private final Table devices;
    // Columns that decisions read.
    private final long[] capacities;
    private final long[] measured;
    private final long[] until;
    private final long[] residual;
    private final double[] unused;
    private final double[] pending;
    private final long[] expectedCapacity;
    private final long[] deviceSteps;
    private final long[] deviceUntil;
    private final long[] up;
    private final long[] draining;
    private final Map<String, Long> clients;
    private final Names names;

    /** Numbers of the rows by their names. Differences share them. */
    private static final class Names {
        final Map<String, Integer> links = new HashMap<>();
        final Map<String, Integer> racks = new HashMap<>();
        final Map<String, Integer> hosts = new HashMap<>();
        String numbering;
    }

    Snapshot(Head head, Map<Columns, Table> tables, Map<String, Long> clients, Snapshot base, long receivedNano) {
        id = head.id;
        epoch = head.epoch;
        timeNs = head.timeNs;
        clusterVersion = head.clusterVersion;
        resolution = head.resolution;
        mode = head.mode;
        share = head.share;
        difference = head.since != null;
        links = tables.get(Columns.LINKS);
        racks = tables.get(Columns.RACKS);
        hosts = tables.get(Columns.HOSTS);
        devices = tables.get(Columns.DEVICES);
        capacities = links.values("capacity_bps");
        measured = links.values("measured_bps");
        until = links.values("until");
        residual = links.values("residual_bps");
        unused = unused(capacities, measured);
        pending = pending(unused, residual);
        expectedCapacity = links.values("expected_capacity_bps");
        deviceSteps = devices.values("residual_steps");
        deviceUntil = devices.values("until");
        up = hosts.values("up");
        draining = hosts.values("draining");
        this.clients = Collections.unmodifiableMap(clients);
        // A controller that answers with the same state again and again is as stale as that state.
        boolean advanced = base == null || timeNs != base.timeNs;
        advancedNano = advanced ? receivedNano : base.advancedNano;
        boolean sharesNames = base != null && links.names("link") == base.links.names("link");
        names = sharesNames ? base.names : index();
    }

    private static double[] unused(long[] capacities, long[] measured) {
        double[] rates = new double[measured.length];
        for (int link = 0; link < rates.length; link++) {
            double capacity = capacities[link];
            rates[link] = measured[link] == UNKNOWN ? Double.NaN : Math.max(0.0, capacity - measured[link]);
        }
        return rates;
    }

    private static double[] pending(double[] unused, long[] residual) {
        double[] rates = new double[unused.length];
        for (int link = 0; link < rates.length; link++) {
            rates[link] = Math.max(0.0, unused[link] - residual[link]);
        }
        return rates;
    }

    /** Fields of a snapshot beside its tables. */
    static final class Head {
        String id;
        String since;
        long epoch;
        long timeNs;
        String clusterVersion;
        double resolution;
        /** A controller without modes leaves every block to the policy. */
        String mode = "on";
        double share = 1.0;
    }

    private Names index() {
        Names index = new Names();
        fill(index.links, links.names("link"));
        fill(index.racks, racks.names("rack"));
        fill(index.hosts, hosts.names("host"));
        long hash = 0;
        for (Columns columns : Columns.values()) {
            for (Map.Entry<String, Table.Kind> column : columns.kinds().entrySet()) {
                if (column.getValue() == Table.Kind.NAME) {
                    hash = hash(hash, table(columns).names(column.getKey()));
                }
            }
        }
        index.numbering = clusterVersion + ":" + links.rows() + ":" + Long.toHexString(hash);
        return index;
    }

    private static long hash(long start, String[] names) {
        long hash = start * 31 + names.length;
        for (String name : names) {
            // An odd factor and a shift: all bits of the hash depend on all names and their order.
            hash = (hash ^ (name == null ? 0 : name.hashCode())) * 0x9E3779B97F4A7C15L;
            hash ^= hash >>> 32;
        }
        return hash;
    }

    private static void fill(Map<String, Integer> index, String[] names) {
        for (int row = 0; row < names.length; row++) {
            if (names[row] != null) {
                index.put(names[row], row);
            }
        }
    }

    /** Id for {@code since} of the next request. */
    public String id() {
        return id;
    }

    /** True if the controller sent the difference from the snapshot before. */
    public boolean isDifference() {
        return difference;
    }

    /** State of the controller's ledger. */
    public long epoch() {
        return epoch;
    }

    /** Time of the state by the controller's clock, in nanoseconds since 1970. */
    public long timeNs() {
        return timeNs;
    }

    /** Version of the cluster in one run of the controller. */
    String clusterVersion() {
        return clusterVersion;
    }

    /**
     * Identifies the names and the order of all rows: numbers of links and hosts mean the same in snapshots of the same
     * numbering. The version of the cluster alone does not: a controller that restarts without its store counts from 1
     * again.
     */
    public String numbering() {
        return names.numbering;
    }

    /** The controller's mode for replicas, such as {@code canary:5%}. */
    public String mode() {
        return mode;
    }

    /** Share of blocks that the policy places, by the controller's mode for replicas, from 0 to 1. */
    public double share() {
        return share;
    }

    /** Local monotonic time, in ns, at which the first snapshot of this {@link #timeNs} arrived. */
    public long advancedNano() {
        return advancedNano;
    }

    /** The controller's time at a local monotonic time. */
    public long timeAt(long nano) {
        return timeNs + Math.max(0, nano - advancedNano);
    }

    /** Last sequence of a client that the snapshot counts; -1 if it counts none. */
    public long counted(String client) {
        return clients.getOrDefault(client, -1L);
    }

    Map<String, Long> clients() {
        return clients;
    }

    Table table(Columns columns) {
        return switch (columns) {
            case LINKS -> links;
            case RACKS -> racks;
            case HOSTS -> hosts;
            case DEVICES -> devices;
        };
    }

    // ---- links ----------------------------------------------------------------------------------------------

    /** Number of links. */
    public int linkCount() {
        return links.rows();
    }

    /** Number of a link by its name; -1 if there is none. */
    public int link(String name) {
        return names.links.getOrDefault(name, -1);
    }

    /** Capacity of each link. */
    public long[] capacities() {
        return capacities;
    }

    /** Measured load of each link. */
    public long[] measured() {
        return measured;
    }

    /** End of the last accepted window of each link, in nanoseconds since 1970. */
    public long[] until() {
        return until;
    }

    /** Rate of each link that best-effort work may still use; 0 if its load is unknown. */
    public long[] residual() {
        return residual;
    }

    /** Rate of each link that its measured load leaves; NaN if the load is unknown. */
    public double[] unused() {
        return unused;
    }

    /** Rate of the placed work on each link that its measured load does not show; NaN if the load is unknown. */
    public double[] pending() {
        return pending;
    }

    /** Capacity that Sinbad expects to remain on each link, less the placements that the snapshot counts. */
    public long[] expectedCapacity() {
        return expectedCapacity;
    }

    // ---- racks, hosts, devices ------------------------------------------------------------------------------

    /** Number of racks. */
    public int rackCount() {
        return racks.rows();
    }

    /** Number of a rack by its name; -1 if there is none. */
    public int rack(String name) {
        return names.racks.getOrDefault(name, -1);
    }

    /** Name of the pod of a rack, or null. */
    public String podOf(int rack) {
        return racks.names("pod")[rack];
    }

    /** Number of the link out of a rack; -1 if there is none. */
    public int uplink(int rack) {
        return linkOrNone(racks.names("uplink")[rack]);
    }

    /** Number of the link into a rack; -1 if there is none. */
    public int downlink(int rack) {
        return linkOrNone(racks.names("downlink")[rack]);
    }

    private int linkOrNone(String name) {
        return name == null ? -1 : link(name);
    }

    /** Number of hosts. */
    public int hostCount() {
        return hosts.rows();
    }

    /** Number of a host by its name; -1 if there is none. */
    public int host(String name) {
        return names.hosts.getOrDefault(name, -1);
    }

    /** Name of a host. */
    public String hostName(int host) {
        return hosts.names("host")[host];
    }

    /** Number of the rack of a host; -1 if the snapshot has no such rack. */
    public int rackOf(int host) {
        String rack = hosts.names("rack")[host];
        return rack == null ? -1 : rack(rack);
    }

    /** True if a host takes copies: it is up, or its state is unknown, and it is not known to drain. */
    public boolean isOpen(int host) {
        return up[host] != 0 && draining[host] != 1;
    }

    /** Names of all devices, such as {@code node7:sda}. */
    public String[] deviceNames() {
        return devices.names("device");
    }

    /** Share of a device's time that is free, from 0 to 1; NaN if no report was ever accepted. */
    public double deviceFree(int device) {
        long steps = deviceSteps[device];
        boolean reported = deviceUntil[device] != UNKNOWN;
        return steps == UNKNOWN || !reported ? Double.NaN : Math.max(0.0, Math.min(1.0, steps * resolution));
    }
}
