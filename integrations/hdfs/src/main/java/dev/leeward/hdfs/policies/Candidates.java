package dev.leeward.hdfs.policies;

import dev.leeward.hdfs.topology.Topology;
import java.util.Collection;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeDescriptor;
import org.apache.hadoop.net.Node;

/**
 * The hosts that HDFS and the controller allow for one copy: those in the scope, without the excluded and the closed
 * ones, with room and the type of storage, and in racks that may hold another copy.
 */
public final class Candidates {

    /** Number of the first draw in {@link #draw}, apart from those of policies. */
    private static final long FIRST_DRAW = Integer.MAX_VALUE;

    private final Topology topology;
    private final boolean[] closed;
    private final Collection<Node> excluded;
    private final StorageType type;
    private final long room;
    /** The only rack of the scope, or -1. */
    private int only = -1;
    /** The only rack that is not in the scope, or -1. */
    private int except = -1;
    /** Start of the locations of racks inside or outside the scope, for scopes above racks; else null. */
    private String inside;
    private String outside;
    private final int[] heldRacks;
    private final int mostPerRack;

    /**
     * The candidates of a scope.
     *
     * @param closed for each host, whether it takes no copies; null if all take copies
     * @param scope a location of HDFS, or {@code ~} and a location for all hosts outside it
     * @param excluded nodes that must not be chosen
     * @param type type of storage, or null for any
     * @param room bytes that a host must have free: HDFS rejects hosts with less
     * @param heldRacks racks of the copies of the block so far; -1 for a copy elsewhere
     * @param mostPerRack largest number of copies in a rack
     */
    public Candidates(
            Topology topology,
            boolean[] closed,
            String scope,
            Collection<Node> excluded,
            StorageType type,
            long room,
            int[] heldRacks,
            int mostPerRack) {
        this.topology = topology;
        this.closed = closed;
        this.excluded = excluded;
        this.type = type;
        this.room = room;
        this.heldRacks = heldRacks;
        this.mostPerRack = mostPerRack;
        boolean inverted = scope.startsWith("~");
        String location = inverted ? scope.substring(1) : scope;
        if (location.isEmpty() || location.equals("/")) {
            // The whole cluster, or nothing of it.
            inside = inverted ? "\0" : null;
            return;
        }
        int rack = topology.rack(location);
        if (rack >= 0) {
            only = inverted ? -1 : rack;
            except = inverted ? rack : -1;
        } else if (inverted) {
            outside = location + "/";
        } else {
            inside = location + "/";
        }
    }

    /** First rack to look at. */
    int firstRack() {
        return only >= 0 ? only : 0;
    }

    /** End of the racks to look at. */
    int endRack() {
        return only >= 0 ? only + 1 : topology.rackCount();
    }

    /** True if the scope is one rack. */
    boolean isOneRack() {
        return only >= 0;
    }

    /** True if a rack is in the scope and may hold {@code copies} more copies. */
    boolean allowsRack(int rack, int copies) {
        if (rack == except || (only >= 0 && rack != only)) {
            return false;
        }
        if (inside != null && !topology.location(rack).startsWith(inside)) {
            return false;
        }
        if (outside != null && topology.location(rack).startsWith(outside)) {
            return false;
        }
        int held = 0;
        for (int other : heldRacks) {
            held += other == rack ? 1 : 0;
        }
        return held + copies <= mostPerRack;
    }

    /** True if a host, of an allowed rack, may be chosen. */
    boolean allows(int host) {
        DatanodeDescriptor node = topology.node(host);
        return (closed == null || !closed[host])
                && node.isInService()
                && node.getRemaining() >= room
                && !excluded.contains(node)
                && (type == null || node.hasStorageType(type));
    }

    /** A candidate, each with equal probability, as HDFS draws one; {@link Policy#NONE} if there is none. */
    public int draw(Ties ties) {
        int hosts = 0;
        for (int rack = firstRack(); rack < endRack(); rack++) {
            hosts += allowsRack(rack, 1) ? size(rack) : 0;
        }
        for (int draw = 0; draw < Draw.TRIES && hosts > 0; draw++) {
            int host = hostAt(ties.draw(FIRST_DRAW - draw, hosts));
            if (allows(host)) {
                return host;
            }
        }
        int best = Policy.NONE;
        for (int rack = firstRack(); rack < endRack(); rack++) {
            if (allowsRack(rack, 1)) {
                best = Draw.better(this, best, topology.firstHost(rack), topology.firstHost(rack + 1), ties);
            }
        }
        return best;
    }

    private int size(int rack) {
        return topology.firstHost(rack + 1) - topology.firstHost(rack);
    }

    /** The host at a position among the hosts of the racks that may hold another copy. */
    private int hostAt(int position) {
        int left = position;
        int rack = firstRack();
        while (!allowsRack(rack, 1) || left >= size(rack)) {
            left -= allowsRack(rack, 1) ? size(rack) : 0;
            rack++;
        }
        return topology.firstHost(rack) + left;
    }
}
