package dev.leeward.hdfs.policies;

import java.text.DecimalFormat;
import java.text.DecimalFormatSymbols;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** The candidates that a policy compared for one copy, best first. */
public final class Explanation {

    /** Number of candidates that are listed for each level. */
    private static final int LISTED = 8;
    private static final String[] RATES = {"bps", "kbps", "Mbps", "Gbps", "Tbps"};

    /**
     * A candidate.
     *
     * @param name location of a rack, or name of a host
     * @param value number by which the policy ranked it, in the unit of {@code unit}; finite
     * @param unit meaning of the value
     * @param detail what decides among equal values, or an empty text
     */
    public record Considered(String name, double value, String unit, String detail) {

        /** A candidate that ranks by a rate in bit/s; NaN stands for an unknown load, and is no number of JSON. */
        static Considered byRate(String name, double bps, String meaning, String detail) {
            return Double.isNaN(bps)
                    ? new Considered(name, 0.0, "bit/s, load unknown", detail)
                    : new Considered(name, bps, "bit/s " + meaning, detail);
        }
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

    /** A rate as text: {@code 1.25 Gbps}. */
    static String rate(double bps) {
        if (Double.isNaN(bps)) {
            return "unknown";
        }
        if (bps >= NetworkView.UNLIMITED) {
            return "without limit";
        }
        int unit = 0;
        double scaled = bps;
        while (scaled >= 1000.0 && unit < RATES.length - 1) {
            scaled /= 1000.0;
            unit++;
        }
        return new DecimalFormat("0.##", DecimalFormatSymbols.getInstance(Locale.ROOT)).format(scaled)
                + " " + RATES[unit];
    }

    /** The used share of storage as text: {@code 62 % full}. */
    static String fill(double share) {
        return Math.round(100.0 * share) + " % full";
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
