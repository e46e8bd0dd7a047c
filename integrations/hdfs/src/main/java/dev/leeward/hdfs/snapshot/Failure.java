package dev.leeward.hdfs.snapshot;

import java.util.Locale;

/** Reason for which a request to the controller failed. */
public enum Failure {
    /** No connection. */
    UNREACHABLE,
    /** No complete answer in time. */
    TIMEOUT,
    /** The token is missing, unknown or without the role. */
    UNAUTHORIZED,
    /** The certificate is not accepted, or the handshake failed. */
    TLS,
    /** The answer is no snapshot. */
    INVALID,
    /** Another status, such as that of a follower without a leader. */
    STATUS,
    /** A fault of this program while it took in the answer, which is in the log. */
    ERROR;

    /** Name in metrics and logs. */
    public String text() {
        return name().toLowerCase(Locale.ROOT);
    }
}
