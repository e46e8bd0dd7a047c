package dev.leeward.hdfs.topology;

/**
 * A machine that sends blocks: a DataNode, or a client of HDFS beside them. Numbers are -1 where there is nothing, or
 * nothing is known.
 *
 * @param host its number among the DataNodes
 * @param rack number of its rack among those with DataNodes
 * @param row its number among the hosts of the snapshot
 * @param egress link out of it
 * @param uplink link out of its rack
 * @param podUplink link out of its pod
 */
public record Sender(int host, int rack, int row, int egress, int uplink, int podUplink) {

    /** A machine of which nothing is known. */
    public static final Sender UNKNOWN = new Sender(-1, -1, -1, -1, -1, -1);

    /** True if its rack is known, so that its bytes cross known links. */
    public boolean isPlaced() {
        return rack >= 0 || uplink >= 0;
    }
}
