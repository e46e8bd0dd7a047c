package dev.leeward.hdfs;

import java.util.List;
import java.util.Map;

/** The state of Leeward in a NameNode, by JMX: {@code Hadoop:service=NameNode,name=LeewardInfo}. */
public interface LeewardMXBean {

    /** Name of the policy. */
    String getPolicy();

    /** Address of the controller that is asked next; empty without one. */
    String getController();

    /** Age of the last snapshot in ms; -1 without one. */
    long getSnapshotAgeMs();

    /** Epoch of the last snapshot; -1 without one. */
    long getSnapshotEpoch();

    /** Reason of the last request's failure; empty if it succeeded. */
    String getFailure();

    /** Message of the last failure. */
    String getFailureDetail();

    /** Number of DataNodes. */
    int getDataNodes();

    /** Names of at most 100 DataNodes that the controller does not know, or has in another rack. */
    List<String> getUnknownDataNodes();

    /** Decisions by {@link Reason}. */
    Map<String, Long> getDecisionsByReason();

    /**
     * Explained decisions, the latest first, as JSON.
     *
     * @param path text that the path of the file contains; empty for all
     */
    List<String> findDecisions(String path);

    /** All explained decisions, the latest first, as JSON. The page {@code /jmx} of Hadoop shows attributes only. */
    List<String> getExplainedDecisions();

    /**
     * The choice for a second copy of a block now, explained, as JSON. Nothing is placed.
     *
     * @param writer host name or IP address of the writing DataNode; another text stands for a writer outside
     * @param bytes size of the block
     * @param copies number of copies
     */
    String explain(String writer, long bytes, int copies);
}
