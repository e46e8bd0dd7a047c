package dev.leeward.hdfs.policies;

/** Random choice of an allowed host. */
final class Draw {

    /** Number of draws before all hosts are looked at. */
    private static final int TRIES = 4;

    private Draw() {
    }

    /** An allowed host of {@code count} hosts from {@code first}, each with equal probability; -1 if there is none. */
    static int host(Candidates candidates, int first, int count, Ties ties) {
        for (int draw = 0; draw < TRIES && count > 0; draw++) {
            int host = first + ties.draw(1000 + draw, count);
            if (candidates.allows(host)) {
                return host;
            }
        }
        int best = Policy.NONE;
        long rank = 0;
        for (int host = first; host < first + count; host++) {
            long other = ties.rank(host);
            if ((best < 0 || other > rank) && candidates.allows(host)) {
                best = host;
                rank = other;
            }
        }
        return best;
    }
}
