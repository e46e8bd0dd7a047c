package dev.leeward.hdfs.policies;

import dev.leeward.hdfs.topology.Sender;

/**
 * A copy or chunk to place.
 *
 * @param bytes size of the block, or of a chunk
 * @param writer machine that writes
 * @param source machine from which the bytes come: the last placed copy of a chain, or the writer of a stripe
 * @param placedRacks racks of the copies placed by this request so far
 * @param together copies that go to the same rack, this one included
 * @param nowNs time in ns since 1970 by the clock of the NameNode; NameNodes with one time agree on schedules
 * @param networkNs time in ns since 1970 by the clock of the snapshot; 0 without a snapshot
 * @param ties tie-breaking of this decision
 */
public record Request(
        long bytes, Sender writer, Sender source, int[] placedRacks, int together, long nowNs, long networkNs,
        Ties ties) {

    /** The same request for a copy that goes to its rack alone. */
    public Request alone() {
        return new Request(bytes, writer, source, placedRacks, 1, nowNs, networkNs, ties);
    }
}
