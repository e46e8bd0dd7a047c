package dev.leeward.hdfs;

import dev.leeward.hdfs.policies.NetworkView;
import dev.leeward.hdfs.snapshot.Failure;
import dev.leeward.hdfs.snapshot.SnapshotFeed;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Function;
import org.apache.hadoop.metrics2.MetricsCollector;
import org.apache.hadoop.metrics2.MetricsInfo;
import org.apache.hadoop.metrics2.MetricsRecordBuilder;
import org.apache.hadoop.metrics2.MetricsSource;
import org.apache.hadoop.metrics2.lib.Interns;

/**
 * Counts of an engine, as a source of Metrics2 and by JMX. Both hold it for as long as the process runs, so it refers
 * to the engine weakly: when HDFS replaces the policy, the daemons of the old one end.
 */
final class Metrics implements MetricsSource, LeewardMXBean {

    private static final int MOST_NAMES = 100;

    private final WeakReference<Engine> engine;
    /** Reason for which Leeward is off; null of a policy that runs. */
    private final String offBecause;
    private final Map<Reason, LongAdder> decisions = new EnumMap<>(Reason.class);
    private final LastHour lastHour = new LastHour(Reason.values().length, System.nanoTime());
    private final TimeHistogram times = new TimeHistogram();

    /** Counts of an engine. */
    Metrics(Engine engine) {
        this(engine, null);
    }

    private Metrics(Engine engine, String offBecause) {
        this.engine = new WeakReference<>(engine);
        this.offBecause = offBecause;
        for (Reason reason : Reason.values()) {
            decisions.put(reason, new LongAdder());
        }
    }

    /** The state without an engine: only the failure says something. */
    static Metrics withoutEngine(String offBecause) {
        return new Metrics(null, offBecause);
    }

    /** True if Leeward is off. */
    boolean isOff() {
        return offBecause != null;
    }

    void count(Reason reason) {
        decisions.get(reason).increment();
    }

    /** Stores the counts of each minute, at a monotonic time in ns. */
    void keepUp(long nano) {
        if (lastHour.isDue(nano)) {
            lastHour.store(totals(), nano);
        }
    }

    private long[] totals() {
        return decisions.values().stream().mapToLong(LongAdder::sum).toArray();
    }

    /** Adds the time of a block that the policy placed, in whole or in part. */
    void time(long nanoseconds) {
        times.add(nanoseconds);
    }

    // ---- Metrics2 -------------------------------------------------------------------------------------------

    @Override
    public void getMetrics(MetricsCollector collector, boolean all) {
        MetricsRecordBuilder record = collector.addRecord("leeward").setContext("dfs");
        record.tag(info("Policy", "policy"), getPolicy());
        for (Reason reason : Reason.values()) {
            record.addCounter(
                    info("Decisions_" + reason.text(), "blocks placed with this reason"),
                    decisions.get(reason).sum());
        }
        record.addCounter(info("PlaceTimeNumOps", "blocks that the policy placed, in whole or in part"), times.count());
        record.addCounter(info("PlaceTimeTotalNs", "time in chooseTarget for them, in ns"), times.sum());
        record.addGauge(info("PlaceTimeP50Ns", "median of it since the start, in ns"), times.quantile(0.5));
        record.addGauge(info("PlaceTimeP99Ns", "99th percentile of it, in ns"), times.quantile(0.99));
        record.addGauge(info("UnknownDataNodes", "DataNodes that the controller does not know"), unknownCount());
        Link link = read(Engine::link, null);
        if (link == null) {
            return;
        }
        record.addGauge(info("SnapshotAgeMs", "age of the last snapshot; -1 without one"), getSnapshotAgeMs());
        record.addCounter(info("SnapshotsWhole", "whole snapshots"), link.feed().wholeCount());
        record.addCounter(info("SnapshotsDifference", "differences between snapshots"), link.feed().differenceCount());
        for (Failure failure : Failure.values()) {
            record.addCounter(
                    info("SnapshotFailures_" + failure.text(), "failed requests for a snapshot"),
                    link.feed().failureCount(failure));
        }
        record.addGauge(info("PlacementsLocal", "own placements that no snapshot shows"), link.placements().size());
        record.addCounter(info("PlacementsEarly", "placements that left, or never counted, because too many waited"),
                link.placements().earlyCount());
        record.addGauge(info("ReportsWaiting", "placements in the queue for the controller"),
                link.reporter().waiting());
        record.addCounter(info("ReportsAccepted", "placements that the controller accepted"),
                link.reporter().acceptedCount());
        record.addCounter(info("ReportsRejected", "placements that the controller rejected, or lost"),
                link.reporter().rejectedCount());
        record.addCounter(info("ReportsDropped", "placements that found the queue full"),
                link.reporter().droppedCount());
    }

    private static MetricsInfo info(String name, String description) {
        return Interns.info(name, description);
    }

    private int unknownCount() {
        NetworkView view = read(Engine::view, null);
        return view == null || view.snapshot() == null ? 0 : view.network().unknown().length;
    }

    /** A value of the engine; {@code gone} if HDFS has replaced its policy, or instead of null. */
    private <T> T read(Function<Engine, T> value, T gone) {
        Engine current = engine.get();
        T found = current == null ? null : value.apply(current);
        return found == null ? gone : found;
    }

    private <T> T readFeed(Function<SnapshotFeed, T> value, T gone) {
        return read(current -> current.link() == null ? null : value.apply(current.link().feed()), gone);
    }

    // ---- JMX ------------------------------------------------------------------------------------------------

    @Override
    public String getPolicy() {
        return read(current -> current.settings().policy().text(), "");
    }

    @Override
    public String getController() {
        return read(
                current -> current.link() == null ? null : current.link().controller().address().toString(), "");
    }

    @Override
    public long getSnapshotAgeMs() {
        // That of the view: a fault in Leeward may keep a snapshot from decisions.
        NetworkView view = read(Engine::view, null);
        long nano = System.nanoTime();
        return view == null || view.snapshot() == null
                ? -1
                : Math.max(0, nano - view.snapshot().advancedNano()) / 1_000_000;
    }

    @Override
    public long getSnapshotMaxAgeMs() {
        return read(current -> current.settings().policy().readsLoads()
                ? current.settings().connection().maxAgeMs()
                : null, -1L);
    }

    @Override
    public long getSnapshotEpoch() {
        NetworkView view = read(Engine::view, null);
        return view == null || view.snapshot() == null ? -1 : view.snapshot().epoch();
    }

    @Override
    public String getFailure() {
        Failure failure = readFeed(SnapshotFeed::failure, null);
        String text = failure == null ? "" : failure.text();
        return isOff() ? "settings" : text;
    }

    @Override
    public String getFailureDetail() {
        return isOff() ? offBecause : readFeed(SnapshotFeed::detail, "");
    }

    @Override
    public int getDataNodes() {
        NetworkView view = read(Engine::view, null);
        return view == null ? 0 : view.topology().hostCount();
    }

    @Override
    public List<String> getUnknownDataNodes() {
        NetworkView view = read(Engine::view, null);
        List<String> names = new ArrayList<>();
        if (view != null && view.snapshot() != null) {
            for (int host : view.network().unknown()) {
                if (names.size() < MOST_NAMES) {
                    names.add(view.topology().node(host).getHostName());
                }
            }
        }
        return names;
    }

    @Override
    public Map<String, Long> getDecisionsByReason() {
        return byReason(totals());
    }

    @Override
    public Map<String, Long> getDecisionsOfLastHour() {
        return byReason(lastHour.increase(totals()));
    }

    private static Map<String, Long> byReason(long[] counts) {
        Map<String, Long> table = new TreeMap<>();
        for (Reason reason : Reason.values()) {
            table.put(reason.text(), counts[reason.ordinal()]);
        }
        return table;
    }

    @Override
    public List<String> findDecisions(String path) {
        return read(current -> current.ring().search(path), List.of());
    }

    @Override
    public String explain(String writer, long bytes, int copies) {
        return read(current -> current.explain(writer, bytes, copies), "");
    }
}
