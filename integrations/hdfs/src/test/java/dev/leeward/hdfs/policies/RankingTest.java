package dev.leeward.hdfs.policies;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class RankingTest {

    private static final int MOST = 5;

    /** Items of a range in the order of their keys, and equal ones in that of their hashes. */
    private static List<Integer> sorted(long[] keys, int from, int end, Ties ties) {
        Comparator<Integer> order = Comparator.comparingLong(item -> keys[item]);
        order = order.thenComparingLong(item -> ties.rank(item)).reversed();
        return IntStream.range(from, end).boxed().filter(item -> keys[item] != Ranking.OUT).sorted(order).toList();
    }

    /** Few distinct keys, so that most are equal, and some items that are out. */
    private static long[] keys(Random random) {
        int distinct = 1 + random.nextInt(6);
        return random.longs(random.nextInt(40), 0, distinct)
                .map(key -> random.nextInt(4) == 0 ? Ranking.OUT : key)
                .toArray();
    }

    @Test
    void theBestItemIsThatWhichSortingPutsFirst() {
        for (int seed = 0; seed < 2_000; seed++) {
            Random random = new Random(seed);
            long[] keys = keys(random);
            int from = random.nextInt(keys.length + 1);
            Ties ties = new Ties(seed);
            List<Integer> sorted = sorted(keys, from, keys.length, ties);
            int best = Ranking.best(keys, from, keys.length, ties);
            assertEquals(sorted.isEmpty() ? -1 : sorted.get(0), best, "seed " + seed);
        }
    }

    @Test
    void theFewBestItemsAreThoseThatSortingPutsFirst() {
        Best best = new Best(MOST);
        for (int seed = 0; seed < 2_000; seed++) {
            Random random = new Random(seed);
            long[] keys = keys(random);
            int from = random.nextInt(keys.length + 1);
            Ties ties = new Ties(seed);
            best.find(keys, from, keys.length, ties);
            List<Integer> found = new ArrayList<>();
            for (int place = 0; place < best.count(); place++) {
                found.add(best.item(place));
            }
            List<Integer> sorted = sorted(keys, from, keys.length, ties);
            assertEquals(sorted.subList(0, Math.min(MOST, sorted.size())), found, "seed " + seed);
        }
    }
}
