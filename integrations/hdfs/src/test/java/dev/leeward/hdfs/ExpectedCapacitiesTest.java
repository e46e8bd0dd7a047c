package dev.leeward.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.leeward.hdfs.settings.Settings;
import dev.leeward.hdfs.settings.Settings.Hysteresis;
import dev.leeward.hdfs.snapshot.Snapshot;
import dev.leeward.hdfs.snapshot.Snapshots;
import dev.leeward.hdfs.testing.FakeNetwork;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Sinbad's rules for links without a report (section 6.2), with reports each second of weight 0.2. */
class ExpectedCapacitiesTest {

    private final FakeNetwork network = new FakeNetwork(2, 1, 1000, 2000);

    private static ExpectedCapacities capacities(Hysteresis hysteresis, boolean missingAsFull, boolean initialZero) {
        return new ExpectedCapacities(
                new Settings.Sinbad(0, hysteresis, missingAsFull, initialZero, 0.2, 1000));
    }

    private double of(ExpectedCapacities capacities, String link) {
        Snapshot snapshot = Snapshots.read(network.whole(), 0);
        return capacities.of(snapshot)[snapshot.link(link)];
    }

    @Test
    void aKnownLinkHasItsCapacityLessItsLoad() {
        network.measure("r1:downlink", 700L);
        assertEquals(1300, of(capacities(Hysteresis.RATE, false, false), "r1:downlink"));
        assertEquals(1300, of(capacities(Hysteresis.PAPER, false, false), "r1:downlink"));
        network.measure("r1:downlink", 2600L);
        assertEquals(0, of(capacities(Hysteresis.RATE, false, false), "r1:downlink"));
    }

    @Test
    void aLinkWithoutAReportIsUnknownByDefault() {
        ExpectedCapacities strict = capacities(Hysteresis.RATE, false, false);
        network.measure("r1:downlink", 700L);
        assertEquals(1300, of(strict, "r1:downlink"));
        network.measure("r1:downlink", null);
        assertEquals(Double.NaN, of(strict, "r1:downlink"));
        assertEquals(Double.NaN, of(capacities(Hysteresis.RATE, true, false), "r1:downlink"));
    }

    @Test
    void eachMissingReportCountsAsOneOfAFullLink() {
        ExpectedCapacities sinbad = capacities(Hysteresis.RATE, true, false);
        network.measure("r1:downlink", 1000L);
        assertEquals(1000, of(sinbad, "r1:downlink"));
        network.measure("r1:downlink", null);
        assertEquals(1000, of(sinbad, "r1:downlink"), 1e-9);
        // A report is late from half an interval on, and missing one interval later.
        network.pass(1_499);
        assertEquals(1000, of(sinbad, "r1:downlink"), 1e-9);
        network.pass(1);
        assertEquals(800, of(sinbad, "r1:downlink"), 1e-9);
        network.pass(2_000);
        assertEquals(512, of(sinbad, "r1:downlink"), 1e-9);
        network.advance(0).measure("r1:downlink", 300L);
        assertEquals(1700, of(sinbad, "r1:downlink"), 1e-9);
    }

    /** The controller still shows its last load for some intervals. */
    @ParameterizedTest
    @EnumSource(value = Hysteresis.class, names = {"RATE", "PAPER"})
    void aMissingReportCountsAlsoWhileTheControllerKnowsTheLink(Hysteresis hysteresis) {
        ExpectedCapacities sinbad = capacities(hysteresis, true, false);
        network.measure("r1:downlink", 1000L);
        assertEquals(1000, of(sinbad, "r1:downlink"), 1e-9);
        network.pass(1_499);
        assertEquals(1000, of(sinbad, "r1:downlink"), 1e-9);
        network.pass(1);
        assertEquals(800, of(sinbad, "r1:downlink"), 1e-9);
        network.pass(1_000);
        assertEquals(640, of(sinbad, "r1:downlink"), 1e-9);
        assertEquals(1000, of(capacities(hysteresis, false, false), "r1:downlink"), 1e-9);
        network.advance(1_000);
        assertEquals(1000, of(sinbad, "r1:downlink"), 1e-9, "a report has come");
    }

    @Test
    void anEstimateMayStartAtZero() {
        network.forgetAll();
        assertEquals(2000, of(capacities(Hysteresis.RATE, false, true), "r1:downlink"));
        ExpectedCapacities sinbad = capacities(Hysteresis.RATE, true, true);
        assertEquals(2000, of(sinbad, "r1:downlink"));
        network.pass(2_500);
        assertEquals(1280, of(sinbad, "r1:downlink"), 1e-9);
    }

    @Test
    void anIdleLinkThatStopsToReportIsNotOneThatNeverReported() {
        ExpectedCapacities zero = capacities(Hysteresis.RATE, false, true);
        assertEquals(2000, of(zero, "r1:downlink"));
        network.measure("r1:downlink", null);
        assertEquals(Double.NaN, of(zero, "r1:downlink"));
    }

    @Test
    void aNewVersionOfTheClusterForgetsEarlierLoads() {
        ExpectedCapacities sinbad = capacities(Hysteresis.RATE, true, false);
        network.measure("r1:downlink", 1000L);
        assertEquals(1000, of(sinbad, "r1:downlink"));
        network.measure("r1:downlink", null).setClusterVersion("2");
        assertEquals(Double.NaN, of(sinbad, "r1:downlink"));
    }
}
