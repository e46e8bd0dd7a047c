package dev.leeward.hdfs.policies;

/**
 * A copy or chunk to place.
 *
 * @param bytes size of the block, or of a chunk
 * @param writer host that writes, as a number of the topology; -1 outside the cluster
 * @param source host from which the bytes come: the last placed copy of a chain, the writer of a stripe; or -1
 * @param placedRacks racks of the copies placed by this request so far
 * @param together copies that go to the same rack, this one included
 * @param nowNs time in ns, by any clock that does not run backwards
 * @param ties tie-breaking of this decision
 */
public record Request(
        long bytes, int writer, int source, int[] placedRacks, int together, long nowNs, Ties ties) {

    /** The same request for a copy that goes to its rack alone. */
    public Request alone() {
        return new Request(bytes, writer, source, placedRacks, 1, nowNs, ties);
    }
}
