package dev.leeward.hdfs.policies;

import dev.leeward.hdfs.ledger.Numbers;
import dev.leeward.hdfs.ledger.Times;
import dev.leeward.hdfs.settings.Settings;
import dev.leeward.hdfs.snapshot.Snapshot;
import dev.leeward.hdfs.topology.Sender;

/**
 * Load of a placed block on a link until the next report of the link (Sinbad, pseudocode 2, line 23). Placements of
 * this NameNode and chunks of a running decision count by this one rule.
 */
public final class Pressure {

    private final Settings.Sinbad settings;
    private final long diskWriteRate;

    /**
     * The rule.
     *
     * @param diskWriteRate rate in bit/s at which a disk takes a block; 0 for no limit
     */
    public Pressure(Settings.Sinbad settings, long diskWriteRate) {
        this.settings = settings;
        this.diskWriteRate = diskWriteRate;
    }

    /** False if placed blocks do not count at all. */
    public boolean counts() {
        return settings.hysteresis() != Settings.Hysteresis.OFF;
    }

    /** True if the expected capacities of a snapshot have the pressure of the placements that it counts. */
    public boolean isInSnapshot() {
        return settings.hysteresis() == Settings.Hysteresis.PAPER;
    }

    /**
     * The pressure of a block in bit/s.
     *
     * @param bytes size of the block
     * @param sender machine that sends the block
     * @param link number of the link
     * @param nowNs time by the clock of the snapshot, in ns since 1970
     */
    public long of(NetworkView view, long bytes, Sender sender, int link, long nowNs) {
        if (link < 0 || !counts()) {
            return 0;
        }
        Snapshot snapshot = view.snapshot();
        long until = snapshot.until()[link] == Snapshot.UNKNOWN ? snapshot.timeNs() : snapshot.until()[link];
        long interval = settings.reportMs() * 1_000_000;
        long toReport = interval - Times.since(nowNs, until) % interval;
        long pressure = Numbers.pressure(bytes * 8.0, toReport);
        if (settings.hysteresis() == Settings.Hysteresis.PAPER) {
            return pressure;
        }
        long most = snapshot.capacities()[link];
        if (diskWriteRate > 0) {
            most = Math.min(most, diskWriteRate);
        }
        if (sender.egress() >= 0) {
            most = Math.min(most, snapshot.capacities()[sender.egress()]);
        }
        return Math.min(pressure, most);
    }
}
