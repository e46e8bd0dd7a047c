package dev.leeward.hdfs.policies;

/**
 * Takes the best of numbered items, again and again. The best one nearly always wins, so a scan for each is cheaper
 * than sorting.
 */
final class Ranking {

    /** Key of an item that is out. */
    static final long OUT = Long.MIN_VALUE;

    private Ranking() {
    }

    /** Position of the largest key from {@code from} to {@code end}; equal ones by hash. -1 if all are out. */
    static int best(long[] keys, int from, int end, Ties ties) {
        int best = -1;
        long most = OUT;
        long rank = 0;
        for (int at = from; at < end; at++) {
            long key = keys[at];
            if (key < most || key == OUT) {
                continue;
            }
            if (key > most) {
                best = at;
                most = key;
                rank = ties.rank(at);
            } else {
                long other = ties.rank(at);
                if (other > rank) {
                    best = at;
                    rank = other;
                }
            }
        }
        return best;
    }
}
