package dev.leeward.hdfs.snapshot;

/** Snapshots for tests of other packages. */
public final class Snapshots {

    private Snapshots() {
    }

    /** Reads a whole snapshot that arrives at a local monotonic time. */
    public static Snapshot read(byte[] json, long receivedNano) {
        try {
            return SnapshotReader.read(json, null, receivedNano);
        } catch (InvalidSnapshotException e) {
            throw new AssertionError(e);
        }
    }
}
