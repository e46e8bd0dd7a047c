package dev.leeward.hdfs;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/** The last explained decisions. */
final class DecisionRing {

    private final int most;
    private final ArrayDeque<DecisionRecord> records = new ArrayDeque<>();

    DecisionRing(int most) {
        this.most = most;
    }

    synchronized void add(DecisionRecord record) {
        if (records.size() == most) {
            records.removeFirst();
        }
        records.addLast(record);
    }

    /** The decisions of paths that contain a text, the latest first. */
    List<String> search(String text) {
        List<String> found = new ArrayList<>();
        for (DecisionRecord record : latestFirst()) {
            if (record.path().contains(text)) {
                found.add(record.json());
            }
        }
        return found;
    }

    /** A copy: no handler of the NameNode waits while a reader turns records into text. */
    private synchronized List<DecisionRecord> latestFirst() {
        List<DecisionRecord> copy = new ArrayList<>(records.size());
        records.descendingIterator().forEachRemaining(copy::add);
        return copy;
    }
}
