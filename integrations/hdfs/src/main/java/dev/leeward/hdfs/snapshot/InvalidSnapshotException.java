package dev.leeward.hdfs.snapshot;

/** An answer of the controller that is no snapshot. The message names the field and its value. */
final class InvalidSnapshotException extends Exception {
    InvalidSnapshotException(String message) {
        super(message);
    }
}
