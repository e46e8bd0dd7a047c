package dev.leeward.hdfs.policies;

import java.util.ArrayList;
import java.util.List;

/** The candidates that a policy compared for one copy, best first. */
public final class Explanation {

    /** Number of candidates that are listed for each level. */
    private static final int LISTED = 8;

    /**
     * A candidate.
     *
     * @param name location of a rack, or name of a host
     * @param value number by which the policy ranked it, in the unit of {@code unit}
     * @param unit meaning of the value
     */
    public record Considered(String name, double value, String unit) {
    }

    private final List<Considered> racks = new ArrayList<>();
    private final List<Considered> hosts = new ArrayList<>();
    private String note = "";

    /** Racks, best first. */
    public List<Considered> racks() {
        return racks;
    }

    /** Hosts of the chosen rack, best first. */
    public List<Considered> hosts() {
        return hosts;
    }

    /** Further reason, or an empty text. */
    public String note() {
        return note;
    }

    void setNote(String note) {
        this.note = note;
    }

    /** Names and displayed values of candidates. */
    interface Naming {
        /** The candidate with a number. */
        Considered of(int number);
    }

    /** Lists racks by their keys. */
    void listRacks(long[] keys, int from, int end, Ties ties, Naming naming) {
        list(racks, keys, from, end, ties, naming);
    }

    /** Lists hosts by their keys, in place of those of an earlier rack. */
    void listHosts(long[] keys, int from, int end, Ties ties, Naming naming) {
        hosts.clear();
        list(hosts, keys, from, end, ties, naming);
    }

    private static void list(
            List<Considered> into, long[] keys, int from, int end, Ties ties, Naming naming) {
        long[] left = keys.clone();
        while (into.size() < LISTED) {
            int best = Ranking.best(left, from, end, ties);
            if (best < 0) {
                return;
            }
            into.add(naming.of(best));
            left[best] = Ranking.OUT;
        }
    }
}
