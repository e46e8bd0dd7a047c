package dev.leeward.hdfs.settings;

import java.net.URI;
import java.util.List;
import java.util.Locale;

/**
 * All settings of the policy. {@link SettingsReader} reads them from the configuration of Hadoop.
 *
 * @param policy the policy
 * @param remoteRacks racks for the copies of a replicated block besides the first: 1 as in HDFS, 2 as in Sinbad's
 *     pseudocode
 * @param diskWriteRate rate in bit/s at which a disk takes a block; 0 for no limit
 * @param meanSize whether a new block counts with the average size of stored copies, or with its largest size
 * @param connection connection to the controller
 * @param report whether and how placements are reported
 * @param sinbad settings of {@code sinbad}
 * @param ccp settings of {@code ccp}
 * @param rehdfs settings of {@code rehdfs}
 * @param headroom of {@code leeward}: multiple of the disk's rate above which more link rate has no value
 * @param explain which decisions are explained
 */
public record Settings(
        PolicyName policy,
        int remoteRacks,
        long diskWriteRate,
        boolean meanSize,
        Connection connection,
        Report report,
        Sinbad sinbad,
        Ccp ccp,
        ReHdfs rehdfs,
        double headroom,
        Explain explain) {

    /** The policies. */
    public enum PolicyName {
        /** Sinbad (SIGCOMM 2013): below the link with the most expected capacity. */
        SINBAD,
        /** Hotspots (Google), section 5.2: racks whose uplink is large for their storage. */
        CCP,
        /** Etalon, section 6: the next rack of the writer's. */
        REHDFS,
        /** This project: the best rate along the whole chain. */
        LEEWARD,
        /** The default policy of HDFS. */
        DEFAULT;

        /** True if the policy reads loads of links and therefore needs a fresh snapshot. */
        public boolean readsLoads() {
            return this == SINBAD || this == LEEWARD;
        }

        /** Name in settings and metrics. */
        public String text() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /**
     * Connection to the controller.
     *
     * @param controllers addresses, tried in turn; empty without a controller
     * @param client name under which this NameNode reports its placements
     * @param token bearer token, or null
     * @param tokenFile file of the token, which is read again if the controller rejects the token; null without one
     * @param authority PEM file of certificates that the controller's certificate must lead to, which is read again
     *     after a failed handshake; null for those of the JDK
     * @param intervalMs time between two snapshots
     * @param deadlineMs time for the answer of the controller, beyond the interval that it waits
     * @param maxAgeMs age from which a snapshot no longer counts
     */
    public record Connection(
            List<URI> controllers,
            String client,
            String token,
            String tokenFile,
            String authority,
            long intervalMs,
            long deadlineMs,
            long maxAgeMs) {

        /** Leaves out the token, which must not reach a log. */
        @Override
        public String toString() {
            return controllers + " as " + client + (token == null ? " without a token" : " with a token");
        }
    }

    /**
     * Reports of placements to the controller.
     *
     * @param enabled whether placements are reported
     * @param queue placements that may wait; further ones are dropped and counted
     * @param lastsMs time after which the controller forgets a placement
     */
    public record Report(boolean enabled, int queue, long lastsMs) {
    }

    /** Load of a placed block on its links until the next report. */
    public enum Hysteresis {
        /** Its bytes over the time to the next report, as in the paper. */
        PAPER,
        /** As in the paper, but at most the rate at which the writer can send and a disk can write. */
        RATE,
        /** Not at all. */
        OFF
    }

    /**
     * Settings of {@code sinbad}.
     *
     * @param threshold smallest block in bytes that the policy places
     * @param hysteresis how a placed block counts
     * @param missingAsFull whether a missing report counts as a report of a full link (section 6.2), or the link as
     *     unknown
     * @param initialZero whether the estimate of a link without any report starts at zero (section 6.2), or the link is
     *     unknown
     * @param alpha weight of a report (section 6.2)
     * @param reportMs time between two reports of a link
     */
    public record Sinbad(
            long threshold,
            Hysteresis hysteresis,
            boolean missingAsFull,
            boolean initialZero,
            double alpha,
            long reportMs) {
    }

    /**
     * Settings of {@code ccp}.
     *
     * @param uplinkPerTb guideline in bit/s of uplink per TB of storage; 0 for the average of the racks
     * @param sample hosts drawn as candidates for each copy
     * @param balance largest excess of a rack's fill over the average, as a share of its storage
     * @param byFreeSpace whether the emptiest rack and host of the best class are chosen, or any
     */
    public record Ccp(long uplinkPerTb, int sample, double balance, boolean byFreeSpace) {
    }

    /**
     * Settings of {@code rehdfs}.
     *
     * @param offsets racks from the writer's to that of the copies; several follow one another
     * @param periodMs duration of each offset
     */
    public record ReHdfs(List<Integer> offsets, long periodMs) {
    }

    /**
     * Explanations of decisions.
     *
     * @param sample share of decisions that are stored with their candidates
     * @param stored number of stored decisions
     */
    public record Explain(double sample, int stored) {
    }
}
