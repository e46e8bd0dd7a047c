package dev.leeward.hdfs;

import dev.leeward.hdfs.ledger.MissedReports;
import dev.leeward.hdfs.ledger.Numbers;
import dev.leeward.hdfs.settings.Settings;
import dev.leeward.hdfs.snapshot.Snapshot;
import java.util.Arrays;

/**
 * Capacity that Sinbad expects to remain on each link, without own placements, and Sinbad's rules for links without a
 * report (section 6.2). The rules need the last known loads, so an instance takes in all snapshots, one after another.
 * The controller must not count missing reports too: its own estimator has to be {@code strict}, as by default.
 */
final class ExpectedCapacities {

    private final Settings.Sinbad settings;
    private final long intervalNs;
    private String numbering;
    private double[] lastMeasured;
    private long[] lastUntil;

    ExpectedCapacities(Settings.Sinbad settings) {
        this.settings = settings;
        intervalNs = settings.reportMs() * 1_000_000;
    }

    /** The capacities of a snapshot in bit/s; NaN for a link of unknown load. */
    double[] of(Snapshot snapshot) {
        remember(snapshot);
        long[] capacities = snapshot.capacities();
        long[] measured = snapshot.measured();
        long[] expected = snapshot.expectedCapacity();
        double[] result = new double[capacities.length];
        for (int link = 0; link < result.length; link++) {
            if (measured[link] == Snapshot.UNKNOWN) {
                result[link] = ofUnknown(link, capacities[link], snapshot.timeNs());
                continue;
            }
            double load = settings.missingAsFull()
                    ? withMissing(link, measured[link], capacities[link], snapshot.timeNs())
                    : measured[link];
            if (settings.hysteresis() == Settings.Hysteresis.PAPER && expected[link] != Snapshot.UNKNOWN) {
                // The controller adds the pressure of the placements that it knows.
                result[link] = Math.max(0.0, expected[link] - (load - measured[link]));
            } else {
                result[link] = Numbers.expectedCapacity(capacities[link], load, 0);
            }
        }
        return result;
    }

    /**
     * A load after the reports that are missing since the last one: each counts as one of a full link. A report may be
     * late by half an interval.
     */
    private double withMissing(int link, double measured, long capacity, long now) {
        MissedReports missed = MissedReports.at(now, lastUntil[link], intervalNs, intervalNs / 2, settings.alpha());
        return missed == null ? measured : missed.afterFull(measured, capacity);
    }

    private void remember(Snapshot snapshot) {
        long[] measured = snapshot.measured();
        if (!snapshot.numbering().equals(numbering)) {
            numbering = snapshot.numbering();
            lastMeasured = new double[measured.length];
            Arrays.fill(lastMeasured, Double.NaN);
            lastUntil = new long[measured.length];
            Arrays.fill(lastUntil, snapshot.timeNs());
        }
        for (int link = 0; link < measured.length; link++) {
            if (measured[link] != Snapshot.UNKNOWN) {
                lastMeasured[link] = measured[link];
                long until = snapshot.until()[link];
                lastUntil[link] = until == Snapshot.UNKNOWN ? snapshot.timeNs() : until;
            }
        }
    }

    /** A link of unknown load: each missing report counts as one of a full link, or the link stays unknown. */
    private double ofUnknown(int link, long capacity, long now) {
        boolean seen = !Double.isNaN(lastMeasured[link]);
        if (!seen && !settings.initialZero()) {
            return Double.NaN;
        }
        if (!settings.missingAsFull()) {
            return seen ? Double.NaN : capacity;
        }
        double measured = seen ? lastMeasured[link] : 0.0;
        return Numbers.expectedCapacity(capacity, withMissing(link, measured, capacity, now), 0);
    }
}
