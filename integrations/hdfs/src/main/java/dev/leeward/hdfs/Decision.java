package dev.leeward.hdfs;

import dev.leeward.hdfs.placements.Coding;
import dev.leeward.hdfs.policies.NetworkView;
import dev.leeward.hdfs.policies.Ties;
import dev.leeward.hdfs.topology.Sender;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeDescriptor;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeStorageInfo;
import org.apache.hadoop.net.Node;

/**
 * One call of {@code chooseTarget}, from its begin to its end, in one thread. The policy in HDFS's package passes it
 * what HDFS tells along the way.
 */
public final class Decision {

    /**
     * Largest number of hosts that HDFS may reject. Each choice looks at all racks again, while HDFS's own draw does
     * not, and a cluster may have thousands of hosts that HDFS rejects, because they are full or busy.
     */
    static final int MOST_REJECTED = 64;

    /** Stands for a block that the default policy places. */
    public static final Decision BY_DEFAULT = new Decision(null, 0, 0, null, 0, List.of(), null, 0, new Ties(0), null);

    private final long size;
    private final long bytes;
    private final Coding coding;
    private final int copies;
    private final List<DatanodeDescriptor> existing = new ArrayList<>();
    private final NetworkView view;
    private final Sender writer;
    private final Sender source;
    private final long beganNano;
    private final Ties ties;
    private final DecisionRecord record;
    private Reason reason = Reason.RANKED;
    private int choices;
    private List<DatanodeStorageInfo> results = List.of();
    private int mostPerRack = Integer.MAX_VALUE;
    private DatanodeStorageInfo[] targets = DatanodeStorageInfo.EMPTY_ARRAY;

    Decision(
            Node writer,
            long size,
            long bytes,
            Coding coding,
            int copies,
            List<DatanodeStorageInfo> chosen,
            NetworkView view,
            long beganNano,
            Ties ties,
            DecisionRecord record) {
        this.size = size;
        this.bytes = bytes;
        this.coding = coding;
        this.copies = copies;
        this.view = view;
        this.beganNano = beganNano;
        this.ties = ties;
        this.record = record;
        for (DatanodeStorageInfo storage : chosen) {
            existing.add(storage.getDatanodeDescriptor());
        }
        this.writer = view == null ? Sender.UNKNOWN : view.sender(writer);
        boolean fromExisting = this.writer.host() < 0 && !existing.isEmpty();
        source = fromExisting ? view.sender(existing.get(0)) : this.writer;
    }

    /**
     * Takes in the state of a search in HDFS.
     *
     * @param results storages chosen so far, with those of earlier copies; HDFS adds to the list
     * @param mostPerRack largest number of copies in a rack
     */
    public void onSearch(List<DatanodeStorageInfo> results, int mostPerRack) {
        this.results = results;
        this.mostPerRack = mostPerRack;
    }

    /** Takes in the storages that HDFS returns. */
    public void take(DatanodeStorageInfo[] targets) {
        this.targets = targets;
    }

    /** True if the block is new: no copy existed before. */
    public boolean isNewBlock() {
        return existing.isEmpty();
    }

    /** Takes in that the default policy chose a node, because Leeward had no candidate. */
    public void onDefaultChoice() {
        fallBack(Reason.NO_CANDIDATE);
    }

    /** Machine that writes. */
    Sender writer() {
        return writer;
    }

    /** Machine that sends the first new copy: the writer, or an earlier copy if no DataNode writes. */
    Sender source() {
        return source;
    }

    /** Size as HDFS gives it, for which it requires room at each host. */
    long size() {
        return size;
    }

    /** Size of each copy or chunk in loads and reports; of a new one, the expected size. */
    long bytes() {
        return bytes;
    }

    /** Code of the stripe that the placement writes or rebuilds; null if it places copies of blocks or chunks. */
    Coding coding() {
        return coding;
    }

    /** Number of new copies. */
    int copies() {
        return copies;
    }

    List<DatanodeDescriptor> existing() {
        return existing;
    }

    NetworkView view() {
        return view;
    }

    long beganNano() {
        return beganNano;
    }

    /** Ties of the next choice: another draw for each. */
    Ties nextTies() {
        return new Ties(ties.rank(choices++));
    }

    /** True if HDFS has rejected the largest number of hosts, and its default policy shall continue. */
    boolean isRejected() {
        return choices - copies >= MOST_REJECTED;
    }

    DecisionRecord record() {
        return record;
    }

    Reason reason() {
        return reason;
    }

    /** The first reason against the policy counts for the whole decision. */
    void fallBack(Reason why) {
        if (reason == Reason.RANKED) {
            reason = why;
        }
    }

    List<DatanodeStorageInfo> results() {
        return results;
    }

    int mostPerRack() {
        return mostPerRack;
    }

    /** Storages that HDFS returns; none before the end. */
    DatanodeStorageInfo[] targets() {
        return targets;
    }
}
