package dev.leeward.hdfs.policies;

/** The few best of many numbered items, best first, as one pass finds them. */
final class Best {

    private final int[] items;
    private final long[] ranks;
    private int count;

    /**
     * No items.
     *
     * @param most largest number of items
     */
    Best(int most) {
        items = new int[most];
        ranks = new long[most];
    }

    /** Finds the items with the largest keys from {@code from} to {@code end}; equal ones by hash. */
    void find(long[] keys, int from, int end, Ties ties) {
        count = 0;
        for (int item = from; item < end; item++) {
            long key = keys[item];
            if (key == Ranking.OUT || (count == items.length && key < keys[items[count - 1]])) {
                continue;
            }
            long rank = ties.rank(item);
            int place = count;
            while (place > 0 && isBefore(key, rank, keys[items[place - 1]], ranks[place - 1])) {
                place--;
            }
            if (place < items.length) {
                insert(item, rank, place);
            }
        }
    }

    private static boolean isBefore(long key, long rank, long otherKey, long otherRank) {
        return key > otherKey || (key == otherKey && rank > otherRank);
    }

    private void insert(int item, long rank, int place) {
        count = Math.min(count + 1, items.length);
        for (int to = count - 1; to > place; to--) {
            items[to] = items[to - 1];
            ranks[to] = ranks[to - 1];
        }
        items[place] = item;
        ranks[place] = rank;
    }

    /** Number of items. */
    int count() {
        return count;
    }

    /** The item at a place; 0 is the best. */
    int item(int place) {
        return items[place];
    }
}
