package dev.leeward.hdfs;

import java.util.List;
import java.util.Map;

/** The state of Leeward in a NameNode, by JMX: {@code Hadoop:service=NameNode,name=LeewardInfo}. */
public interface LeewardMXBean {

    /** Name of the policy; empty if Leeward is off, because its settings are invalid. */
    String getPolicy();

    /** Address of the controller that is asked next; empty without one. */
    String getController();

    /** Age in ms of the snapshot that decisions read; -1 without one. */
    long getSnapshotAgeMs();

    /** Age in ms from which a snapshot no longer counts; -1 if the policy reads no loads, so that any age serves it. */
    long getSnapshotMaxAgeMs();

    /** Epoch of the snapshot that decisions read; -1 without one. */
    long getSnapshotEpoch();

    /**
     * Reason of the last request's failure; empty if it succeeded. {@code settings} if Leeward is off, because its
     * settings are invalid or cannot be used.
     */
    String getFailure();

    /** Message of the last failure. That of invalid settings begins with the name of the property. */
    String getFailureDetail();

    /** Number of DataNodes that decisions know; one that joined is among them within 0.1 s. */
    int getDataNodes();

    /** Names of at most 100 DataNodes that the controller does not know, or has in another rack. */
    List<String> getUnknownDataNodes();

    /** Decisions since the start by {@link Reason}. */
    Map<String, Long> getDecisionsByReason();

    /** Decisions of the last hour by {@link Reason}; the hour is exact to a minute. */
    Map<String, Long> getDecisionsOfLastHour();

    /**
     * Stored decisions, the latest first, as JSON. The page {@code /jmx} has the same as the attribute
     * {@code Decisions,TEXT}.
     *
     * @param path text that the path of the file contains; empty for all
     */
    List<String> findDecisions(String path);

    /**
     * The decision about a new block now, explained, as JSON. HDFS makes all its checks, and nothing is placed. In the
     * modes {@code off} and {@code shadow} it is the decision that the policy would make. The page
     * {@code /jmx} has the same as the attribute {@code Explain,WRITER,BYTES,COPIES}.
     *
     * @param writer host name or IP address of the writing DataNode; another text stands for a writer outside
     * @param bytes size of the block, or of each chunk of a stripe
     * @param copies number of copies or chunks
     */
    String explain(String writer, long bytes, int copies);
}
