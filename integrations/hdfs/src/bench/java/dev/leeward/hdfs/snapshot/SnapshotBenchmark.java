package dev.leeward.hdfs.snapshot;

import dev.leeward.hdfs.testing.FakeNetwork;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
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

/** Time of the daemon for a snapshot: a whole one, and a difference in which every link has a new window and load. */
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Warmup(iterations = 3, time = 2)
@Measurement(iterations = 4, time = 2)
@Fork(value = 1, jvmArgs = "-Xmx1g")
@State(Scope.Benchmark)
public class SnapshotBenchmark {

    /** Number of racks of 20 hosts. */
    @Param({"150", "500"})
    public int racks;

    private byte[] whole;
    private byte[] difference;
    private Snapshot base;

    @Setup
    public void start() throws Exception {
        whole = new FakeNetwork(racks, 20, 10_000_000_000L, 100_000_000_000L).whole();
        base = SnapshotReader.read(whole, null, 0);
        int links = base.linkCount();
        String json = "{\"id\":\"next\",\"since\":\"" + base.id() + "\",\"epoch\":2,"
                + "\"time\":\"2026-01-31T12:00:01.25Z\",\"cluster_version\":\"1\",\"resolution\":0.01,"
                + "\"links\":{\"rows\":[0" + ",1".repeat(links - 1) + "],"
                + "\"capacity_bps\":" + column("0", links) + ",\"measured_bps\":" + column("123456789", links)
                + ",\"until\":" + column("\"2026-01-31T12:00:01.123456789Z\"", links)
                + ",\"residual_bps\":" + column("-123456789", links)
                + ",\"expected_capacity_bps\":" + column("-123456789", links) + "},"
                + "\"racks\":{\"rows\":[]},\"hosts\":{\"rows\":[]},"
                + "\"devices\":{\"rows\":[],\"until\":[],\"residual_steps\":[]},\"clients\":[]}";
        difference = json.getBytes(StandardCharsets.UTF_8);
        System.out.printf("%d hosts: whole %.2f MB, difference %.2f MB%n",
                20 * racks, whole.length / 1e6, difference.length / 1e6);
    }

    private static String column(String value, int rows) {
        return "[" + value + ("," + value).repeat(rows - 1) + "]";
    }

    @Benchmark
    public Object whole() throws InvalidSnapshotException {
        return SnapshotReader.read(whole, null, 0);
    }

    @Benchmark
    public Object difference() throws InvalidSnapshotException {
        return SnapshotReader.read(difference, base, 0);
    }
}
