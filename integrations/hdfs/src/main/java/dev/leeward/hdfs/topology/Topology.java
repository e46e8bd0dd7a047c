package dev.leeward.hdfs.topology;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeDescriptor;
import org.apache.hadoop.net.NetworkTopology;
import org.apache.hadoop.net.Node;
import org.apache.hadoop.net.NodeBase;

/**
 * The DataNodes of a NameNode at one time. Racks are numbered in the natural order of their locations, and hosts rack
 * by rack.
 */
public final class Topology {

    private final String[] locations;
    private final int[] firstHost;
    private final DatanodeDescriptor[] hosts;
    private final int[] rackOf;
    private final Map<String, Integer> racks = new HashMap<>();
    private final Map<Node, Integer> numbers = new IdentityHashMap<>();

    private Topology(TreeMap<String, List<DatanodeDescriptor>> byRack) {
        int count = byRack.values().stream().mapToInt(List::size).sum();
        locations = byRack.keySet().toArray(new String[0]);
        firstHost = new int[locations.length + 1];
        hosts = new DatanodeDescriptor[count];
        rackOf = new int[count];
        int host = 0;
        for (int rack = 0; rack < locations.length; rack++) {
            firstHost[rack] = host;
            racks.put(locations[rack], rack);
            for (DatanodeDescriptor node : byRack.get(locations[rack])) {
                hosts[host] = node;
                rackOf[host] = rack;
                numbers.put(node, host++);
            }
        }
        firstHost[locations.length] = host;
    }

    /**
     * The DataNodes that a NameNode knows now. HDFS has no method that lists them under its lock. If one joins or
     * leaves meanwhile, another may be missing, or HDFS throws an exception; the number of DataNodes then makes the
     * next reader look again.
     */
    public static Topology of(NetworkTopology map) {
        Set<DatanodeDescriptor> nodes = new LinkedHashSet<>();
        for (Node leaf : map.getLeaves(NodeBase.ROOT)) {
            if (leaf instanceof DatanodeDescriptor node) {
                nodes.add(node);
            }
        }
        return of(new ArrayList<>(nodes));
    }

    /** A topology of these DataNodes. */
    public static Topology of(List<DatanodeDescriptor> nodes) {
        Map<String, List<DatanodeDescriptor>> byRack = new HashMap<>();
        for (DatanodeDescriptor node : nodes) {
            byRack.computeIfAbsent(node.getNetworkLocation(), location -> new ArrayList<>()).add(node);
        }
        // Locations are compared after the nodes are in their racks: there are far fewer of them.
        TreeMap<String, List<DatanodeDescriptor>> sorted = new TreeMap<>(new NaturalOrder());
        sorted.putAll(byRack);
        return new Topology(sorted);
    }

    /** Number of racks. */
    public int rackCount() {
        return locations.length;
    }

    /** Number of hosts. */
    public int hostCount() {
        return hosts.length;
    }

    /** Location of a rack, such as {@code /row1/rack7}. */
    public String location(int rack) {
        return locations[rack];
    }

    /** Number of a rack by its location; -1 if no DataNode is there. */
    public int rack(String location) {
        return racks.getOrDefault(location, -1);
    }

    /** Number of the first host of a rack; that of {@link #rackCount} is {@link #hostCount}. */
    public int firstHost(int rack) {
        return firstHost[rack];
    }

    /** Rack of a host. */
    public int rackOf(int host) {
        return rackOf[host];
    }

    /** The DataNode of a host. */
    public DatanodeDescriptor node(int host) {
        return hosts[host];
    }

    /** Number of a DataNode; -1 if the topology does not have it. */
    public int host(Node node) {
        return node == null ? -1 : numbers.getOrDefault(node, -1);
    }
}
