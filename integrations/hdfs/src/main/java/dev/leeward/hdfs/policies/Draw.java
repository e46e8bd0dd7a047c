package dev.leeward.hdfs.policies;

/** Random choice of an allowed host. */
final class Draw {

    /** Number of draws before all hosts are looked at. */
    static final int TRIES = 4;

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
        return better(candidates, Policy.NONE, first, first + count, ties);
    }

    /** Of a host, or -1, and the allowed hosts from {@code first} to {@code end}, the first by hash. */
    static int better(Candidates candidates, int host, int first, int end, Ties ties) {
        int best = host;
        long rank = best < 0 ? 0 : ties.rank(best);
        for (int other = first; other < end; other++) {
            long otherRank = ties.rank(other);
            if ((best < 0 || otherRank > rank) && candidates.allows(other)) {
                best = other;
                rank = otherRank;
            }
        }
        return best;
    }
}
