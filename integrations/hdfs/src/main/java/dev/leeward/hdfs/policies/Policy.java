package dev.leeward.hdfs.policies;

/** A rule that chooses a host for one copy. Implementations have no state. */
public interface Policy {

    /** No candidate: HDFS chooses by its default policy. */
    int NONE = -1;

    /**
     * The host for a copy.
     *
     * @param view the network
     * @param request the copy
     * @param candidates the allowed hosts
     * @param scratch memory of this thread
     * @param why takes the candidates, or null if the decision is not explained
     * @return number of the host in the topology, or {@link #NONE}
     */
    int choose(NetworkView view, Request request, Candidates candidates, Scratch scratch, Explanation why);
}
