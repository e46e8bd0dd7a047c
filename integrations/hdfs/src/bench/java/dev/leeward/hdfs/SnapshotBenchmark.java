package dev.leeward.hdfs;

import dev.leeward.hdfs.placements.Placements;
import dev.leeward.hdfs.policies.NetworkView;
import dev.leeward.hdfs.settings.SettingsReader;
import dev.leeward.hdfs.snapshot.Snapshot;
import dev.leeward.hdfs.snapshot.Snapshots;
import dev.leeward.hdfs.testing.FakeNetwork;
import java.time.Instant;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.server.blockmanagement.FakeDataNodes;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Time of the daemon from the body of a snapshot until decisions read it: it parses the body, drops own placements that
 * the snapshot shows, reads the storage of all DataNodes, and builds the view. A whole snapshot is of another version
 * of the cluster than the one before, so all names are joined again. In a difference, each link and disk has a new
 * window and load. {@code parse} is the first part of a whole snapshot alone.
 */
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Warmup(iterations = 3, time = 2)
@Measurement(iterations = 4, time = 2)
@Fork(value = 1, jvmArgs = "-Xmx1g")
@State(Scope.Benchmark)
public class SnapshotBenchmark {

    private static final int HOSTS = 20;
    private static final int DISKS = 4;
    private static final long NIC = 10_000_000_000L;
    private static final long RACK = 100_000_000_000L;

    /** Number of racks of 20 hosts. */
    @Param({"150", "500"})
    public int racks;

    private final Random random = new Random(1);
    private final Placements placements = new Placements("nn");
    private CurrentView views;
    private byte[][] whole;
    private byte[] difference;
    private Snapshot base;
    private int turn;

    @Setup
    public void start() throws Exception {
        Configuration conf = new Configuration();
        // Nothing connects to it.
        conf.set("dfs.leeward.controller", "http://localhost:7600");
        views = new CurrentView(SettingsReader.read(conf), new FakeDataNodes(racks, HOSTS).map(), null);
        FakeNetwork network = new FakeNetwork(racks, HOSTS, NIC, RACK);
        // As a service writes them, times have fractions of a second.
        report(network, "2026-01-31T12:00:00.123456Z");
        byte[] first = network.since(null);
        base = Snapshots.read(first, 0);
        report(network, "2026-01-31T12:00:01.234567Z");
        difference = network.since(base.id());
        whole = new byte[][] {first, network.setClusterVersion("2").whole()};
        takeIn(first, null);
        System.out.printf("%d hosts, %d disks each: whole %.2f MB, difference %.2f MB%n",
                HOSTS * racks, DISKS, first.length / 1e6, difference.length / 1e6);
    }

    /** Reports of all agents: new windows and loads of links and disks. */
    private void report(FakeNetwork network, String until) {
        for (int rack = 0; rack < racks; rack++) {
            network.measure("r" + rack + ":uplink", random.nextLong(RACK));
            network.measure("r" + rack + ":downlink", random.nextLong(RACK));
            for (int host = 0; host < HOSTS; host++) {
                String name = "r" + rack + "h" + host;
                network.measure(name + ":egress", random.nextLong(NIC));
                network.measure(name + ":ingress", random.nextLong(NIC));
                for (int disk = 0; disk < DISKS; disk++) {
                    network.addDevice(name + ":disk" + disk, random.nextDouble());
                }
            }
        }
        network.setTime(Instant.parse(until));
    }

    private NetworkView takeIn(byte[] body, Snapshot before) {
        Snapshot snapshot = Snapshots.read(body, before, System.nanoTime());
        placements.onSnapshot(snapshot);
        views.accept(snapshot);
        return views.last();
    }

    @Benchmark
    public Object whole() {
        return takeIn(whole[turn++ & 1], null);
    }

    @Benchmark
    public Object difference() {
        return takeIn(difference, base);
    }

    @Benchmark
    public Object parse() {
        return Snapshots.read(whole[0], 0);
    }
}
