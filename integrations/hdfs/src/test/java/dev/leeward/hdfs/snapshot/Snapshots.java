package dev.leeward.hdfs.snapshot;

/** Snapshots for tests of other packages. */
public final class Snapshots {

    private Snapshots() {
    }

    /** Reads a whole snapshot that arrives at a local monotonic time. */
    public static Snapshot read(byte[] json, long receivedNano) {
        return read(json, null, receivedNano);
    }

    /** Reads a snapshot, or the difference from another one, that arrives at a local monotonic time. */
    public static Snapshot read(byte[] json, Snapshot base, long receivedNano) {
        try {
            return SnapshotReader.read(json, base, receivedNano);
        } catch (InvalidSnapshotException e) {
            throw new AssertionError(e);
        }
    }

    /** Parameters of a request for all columns that the daemon asks for. */
    public static String query() {
        return Columns.query();
    }
}
