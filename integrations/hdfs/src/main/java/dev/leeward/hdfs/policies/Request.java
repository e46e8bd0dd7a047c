package dev.leeward.hdfs.policies;

/**
 * A copy or chunk to place.
 *
 * @param bytes size of the block, or of a chunk
 * @param writer host that writes, as a number of the topology; -1 outside the cluster
 * @param source host from which the bytes come: the last placed copy of a chain, the writer of a stripe; or -1
 * @param placedRacks racks of the copies placed by this request so far
 * @param together copies that go to the same rack, this one included
 * @param nowNs time in ns since 1970 by the clock of the NameNode; NameNodes with one time agree on schedules
 * @param networkNs time in ns since 1970 by the clock of the snapshot; 0 without a snapshot
 * @param ties tie-breaking of this decision
 */
public record Request(
        long bytes, int writer, int source, int[] placedRacks, int together, long nowNs, long networkNs, Ties ties) {

    /** The same request for a copy that goes to its rack alone. */
    public Request alone() {
        return new Request(bytes, writer, source, placedRacks, 1, nowNs, networkNs, ties);
    }
}
