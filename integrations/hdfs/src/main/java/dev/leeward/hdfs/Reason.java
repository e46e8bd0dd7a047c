package dev.leeward.hdfs;

import dev.leeward.hdfs.snapshot.Failure;
import java.util.Locale;

/** Result of a decision: the policy chose the host, or the reason why HDFS's default policy did. */
public enum Reason {
    /** The policy chose every host that HDFS left open. */
    RANKED,
    /** The mode for replicas at the controller is off or shadow, or its canary did not draw the block. */
    OFF,
    /** The block is smaller than {@code dfs.leeward.sinbad.threshold}. */
    SMALL,
    /** No snapshot has come yet. */
    NO_SNAPSHOT,
    /** The last snapshot is older than {@code dfs.leeward.snapshot.max-age}. */
    STALE,
    /** As {@link #STALE} or {@link #NO_SNAPSHOT}; the controller has no connection. */
    UNREACHABLE,
    /** As {@link #STALE} or {@link #NO_SNAPSHOT}; the controller does not answer in time. */
    TIMEOUT,
    /** As {@link #STALE} or {@link #NO_SNAPSHOT}; the controller rejects the token. */
    UNAUTHORIZED,
    /** As {@link #STALE} or {@link #NO_SNAPSHOT}; the certificate is not accepted. */
    TLS,
    /** As {@link #STALE} or {@link #NO_SNAPSHOT}; the answer is no snapshot. */
    INVALID,
    /** As {@link #STALE} or {@link #NO_SNAPSHOT}; the controller answers with an error. */
    STATUS,
    /** The snapshot has fewer than half of the DataNodes. */
    OTHER_CLUSTER,
    /** A host that the controller does not know took its share of the copies. */
    UNKNOWN_HOST,
    /** No allowed host has a known load. */
    NO_CANDIDATE,
    /** HDFS rejected {@link Decision#MOST_REJECTED} hosts, and its default policy continued. */
    REJECTED_HOSTS,
    /** A fault of this program, in the decision or while it took in snapshots. The log has it. */
    ERROR;

    /** Name in metrics and records. */
    public String text() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Reason for a missing or stale snapshot. */
    static Reason withoutSnapshot(Failure failure, boolean everCame) {
        if (failure == null) {
            return everCame ? STALE : NO_SNAPSHOT;
        }
        return switch (failure) {
            case UNREACHABLE -> UNREACHABLE;
            case TIMEOUT -> TIMEOUT;
            case UNAUTHORIZED -> UNAUTHORIZED;
            case TLS -> TLS;
            case INVALID -> INVALID;
            case STATUS -> STATUS;
            case ERROR -> ERROR;
        };
    }
}
