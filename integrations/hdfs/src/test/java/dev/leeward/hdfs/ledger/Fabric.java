package dev.leeward.hdfs.ledger;

import java.util.List;

/**
 * The links of a ledger.
 *
 * @param capacities capacity of each link, in bit/s
 * @param hosts for each host the number of the link out of it and of the link into it
 * @param sums links without a counter of their own
 * @param promises whether rates can be reserved
 */
public record Fabric(List<Long> capacities, List<int[]> hosts, List<Sum> sums, boolean promises) {

    /**
     * A link whose load is the sum of the loads of other links, unless it has a counter.
     *
     * @param resource number of the link
     * @param of numbers of the links below; none of them is a sum
     */
    public record Sum(int resource, int[] of) {
    }

    /**
     * Checks the numbers of links.
     *
     * @throws IllegalArgumentException if a number is not that of a link
     */
    public Fabric {
        for (int[] links : hosts) {
            for (int link : links) {
                check(link, capacities);
            }
        }
        for (Sum sum : sums) {
            check(sum.resource, capacities);
            for (int link : sum.of) {
                check(link, capacities);
            }
        }
    }

    private static void check(int link, List<Long> capacities) {
        if (link < 0 || link >= capacities.size()) {
            throw new IllegalArgumentException("link " + link + ": expected a number below " + capacities.size());
        }
    }
}
