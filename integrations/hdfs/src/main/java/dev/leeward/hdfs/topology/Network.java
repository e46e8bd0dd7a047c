package dev.leeward.hdfs.topology;

import dev.leeward.hdfs.snapshot.Snapshot;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeDescriptor;
import org.apache.hadoop.net.Node;

/**
 * The links and disks of the DataNodes: numbers of rows of a snapshot, valid for its numbering.
 *
 * <p>A DataNode is the host of the snapshot with its host name, else with its IP address. Its rack in the snapshot must
 * have the last name of its location in HDFS, or else its last names joined by dots: {@code rack7} or
 * {@code row1.rack7} for {@code /row1/rack7}. An import of a cluster names racks so that share their last name. A
 * DataNode elsewhere is unknown, because the load of its links would be that of another rack.
 */
public final class Network {

    private static final int NONE = -1;

    private final Topology topology;
    private final String numbering;
    /** For each rack, its number in the snapshot; -1 if no host of it is known. */
    private final int[] rackRow;
    private final int[] uplink;
    private final int[] downlink;
    private final int[] podUplink;
    private final int[] podDownlink;
    private final int[] hostRow;
    private final int[] egress;
    private final int[] ingress;
    private final int[][] disks;
    private final Sender[] senders;
    private final int[] unknown;

    private Network(Topology topology, Snapshot snapshot) {
        this.topology = topology;
        int racks = topology.rackCount();
        int hosts = topology.hostCount();
        numbering = snapshot == null ? null : snapshot.numbering();
        rackRow = none(racks);
        uplink = none(racks);
        downlink = none(racks);
        podUplink = none(racks);
        podDownlink = none(racks);
        hostRow = none(hosts);
        egress = none(hosts);
        ingress = none(hosts);
        disks = new int[hosts][];
        if (snapshot != null) {
            join(snapshot);
        }
        List<Integer> missing = new ArrayList<>();
        for (int host = 0; host < hosts; host++) {
            if (hostRow[host] == NONE) {
                missing.add(host);
            }
        }
        unknown = missing.stream().mapToInt(Integer::intValue).toArray();
        senders = new Sender[hosts];
        for (int host = 0; host < hosts; host++) {
            int rack = topology.rackOf(host);
            senders[host] = new Sender(host, rack, hostRow[host], egress[host], uplink[rack], podUplink[rack]);
        }
    }

    /** Joins DataNodes with a snapshot; null stands for no snapshot, in which every host is unknown. */
    public static Network of(Topology topology, Snapshot snapshot) {
        return new Network(topology, snapshot);
    }

    private static int[] none(int length) {
        int[] rows = new int[length];
        Arrays.fill(rows, NONE);
        return rows;
    }

    private void join(Snapshot snapshot) {
        Map<String, List<Integer>> devices = devicesByHost(snapshot);
        for (int rack = 0; rack < topology.rackCount(); rack++) {
            int row = rackRow(snapshot, topology.location(rack));
            if (row == NONE) {
                continue;
            }
            rackRow[rack] = row;
            uplink[rack] = snapshot.uplink(row);
            downlink[rack] = snapshot.downlink(row);
            podUplink[rack] = podLink(snapshot, row, ":uplink");
            podDownlink[rack] = podLink(snapshot, row, ":downlink");
        }
        for (int host = 0; host < topology.hostCount(); host++) {
            int row = row(snapshot, topology.node(host));
            if (row == NONE || snapshot.rackOf(row) != rackRow[topology.rackOf(host)]) {
                continue;
            }
            String name = snapshot.hostName(row);
            hostRow[host] = row;
            egress[host] = snapshot.link(name + ":egress");
            ingress[host] = snapshot.link(name + ":ingress");
            List<Integer> rows = devices.get(name);
            disks[host] = rows == null ? null : rows.stream().mapToInt(Integer::intValue).toArray();
        }
    }

    /** Number of the rack at a location: that of the shortest name which the snapshot has. */
    private static int rackRow(Snapshot snapshot, String location) {
        int row = NONE;
        for (int from = location.length(); row == NONE && from > 0; ) {
            from = location.lastIndexOf('/', from - 1);
            row = snapshot.rack(location.substring(from + 1).replace('/', '.'));
        }
        return row;
    }

    private static int podLink(Snapshot snapshot, int rackRow, String way) {
        return snapshot.podOf(rackRow) == null ? NONE : snapshot.link(snapshot.podOf(rackRow) + way);
    }

    private static Map<String, List<Integer>> devicesByHost(Snapshot snapshot) {
        Map<String, List<Integer>> devices = new HashMap<>();
        String[] names = snapshot.deviceNames();
        for (int device = 0; device < names.length; device++) {
            int colon = names[device] == null ? -1 : names[device].lastIndexOf(':');
            if (colon > 0) {
                String host = names[device].substring(0, colon);
                devices.computeIfAbsent(host, name -> new ArrayList<>()).add(device);
            }
        }
        return devices;
    }

    private static int row(Snapshot snapshot, DatanodeDescriptor node) {
        int row = node.getHostName() == null ? NONE : snapshot.host(node.getHostName());
        return row != NONE || node.getIpAddr() == null ? row : snapshot.host(node.getIpAddr());
    }

    /** True if the numbers are those of a snapshot. */
    public boolean fits(Snapshot snapshot) {
        return snapshot == null ? numbering == null : snapshot.numbering().equals(numbering);
    }

    /** The DataNodes. */
    public Topology topology() {
        return topology;
    }

    /** Hosts that the snapshot does not have, or has in another rack. */
    public int[] unknown() {
        return unknown;
    }

    /** True if the snapshot has fewer than half of the DataNodes: it is that of another cluster. */
    public boolean isOfOtherCluster() {
        return numbering != null && 2 * unknown.length > topology.hostCount();
    }

    /** True if the snapshot has a host, in its rack. */
    public boolean isKnown(int host) {
        return hostRow[host] != NONE;
    }

    /** Number of a host in the snapshot; -1 if it is unknown. */
    public int hostRow(int host) {
        return hostRow[host];
    }

    /** A DataNode as a sender. */
    public Sender sender(int host) {
        return host < 0 ? Sender.UNKNOWN : senders[host];
    }

    /**
     * A node of HDFS as a sender. HDFS makes a node for a client that is no DataNode: its location is that of its
     * address by the mapping of HDFS, and its name is the address. Such a client has the links out of its rack, and
     * those out of its host if the snapshot has a host of this name there. No I/O: all of it is in memory.
     *
     * @param node the node, or null for an unknown one
     * @param snapshot the snapshot of this network, or null
     */
    public Sender sender(Node node, Snapshot snapshot) {
        int host = topology.host(node);
        if (host >= 0 || node == null || node.getNetworkLocation() == null) {
            return sender(host);
        }
        int rack = topology.rack(node.getNetworkLocation());
        int rackRow = snapshot == null ? NONE : rackRow(snapshot, node.getNetworkLocation());
        if (rackRow == NONE) {
            return new Sender(NONE, rack, NONE, NONE, NONE, NONE);
        }
        int row = node.getName() == null ? NONE : snapshot.host(node.getName());
        boolean isHost = row != NONE && snapshot.rackOf(row) == rackRow;
        return new Sender(
                NONE, rack, isHost ? row : NONE, isHost ? snapshot.link(node.getName() + ":egress") : NONE,
                snapshot.uplink(rackRow), podLink(snapshot, rackRow, ":uplink"));
    }

    /** Link out of a rack; -1 if there is none. */
    public int uplink(int rack) {
        return uplink[rack];
    }

    /** Link into a rack; -1 if there is none. */
    public int downlink(int rack) {
        return downlink[rack];
    }

    /** Link out of the pod of a rack; -1 if there is none. */
    public int podUplink(int rack) {
        return podUplink[rack];
    }

    /** Link into the pod of a rack; -1 if there is none. */
    public int podDownlink(int rack) {
        return podDownlink[rack];
    }

    /** True if bytes of a sender cross the links of pods on their way to another rack. */
    public boolean crossesPods(Sender from, int rack) {
        return !from.isPlaced() || from.podUplink() != podUplink[rack];
    }

    /** Link out of a host; -1 if it is unknown. */
    public int egress(int host) {
        return egress[host];
    }

    /** Link into a host; -1 if it is unknown. */
    public int ingress(int host) {
        return ingress[host];
    }

    /** Devices of a host in the snapshot, or null. */
    public int[] disks(int host) {
        return disks[host];
    }
}
