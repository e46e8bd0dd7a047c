package dev.leeward.hdfs;

import dev.leeward.hdfs.log.OncePerMinute;
import dev.leeward.hdfs.placements.Coding;
import dev.leeward.hdfs.policies.Candidates;
import dev.leeward.hdfs.policies.Ccp;
import dev.leeward.hdfs.policies.Explanation;
import dev.leeward.hdfs.policies.Leeward;
import dev.leeward.hdfs.policies.NetworkView;
import dev.leeward.hdfs.policies.Policy;
import dev.leeward.hdfs.policies.ReHdfs;
import dev.leeward.hdfs.policies.Request;
import dev.leeward.hdfs.policies.Scratch;
import dev.leeward.hdfs.policies.Sinbad;
import dev.leeward.hdfs.policies.Ties;
import dev.leeward.hdfs.settings.Settings;
import dev.leeward.hdfs.settings.SettingsException;
import dev.leeward.hdfs.settings.SettingsReader;
import dev.leeward.hdfs.snapshot.ControllerException;
import dev.leeward.hdfs.snapshot.Snapshot;
import dev.leeward.hdfs.topology.Sender;
import dev.leeward.hdfs.topology.Topology;
import java.lang.ref.Cleaner;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeDescriptor;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeStorageInfo;
import org.apache.hadoop.net.NetworkTopology;
import org.apache.hadoop.net.Node;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Leeward behind one placement policy of a NameNode. Decisions read an immutable view and do no I/O; no fault here
 * reaches HDFS: its own policy then chooses.
 */
public final class Engine {

    private static final Logger LOG = LoggerFactory.getLogger(Engine.class);
    private static final Cleaner CLEANER = Cleaner.create();

    /** Form of a block's data at its hosts. */
    public enum Layout {
        /** Whole copies; each host forwards the block to the next. */
        CHAIN,
        /** Chunks of an erasure code; the writer sends each. */
        STRIPE
    }

    /** A search of HDFS whose result is thrown away. */
    public interface Trial {
        /** The storages for the copies of a new block, with this decision as the running one. */
        DatanodeStorageInfo[] search(Decision decision, Node writer, long bytes, int copies);
    }

    private final Settings settings;
    private final Layout layout;
    private final NetworkTopology map;
    private final Policy policy;
    private final Link link;
    private final Metrics metrics;
    private final DecisionRing ring;
    private final PlacementLog placementLog;
    private final CurrentView views;
    private final ThreadLocal<Scratch> scratch = ThreadLocal.withInitial(Scratch::new);
    private final OncePerMinute warnings = new OncePerMinute();
    private volatile Trial trial;

    private Engine(Settings settings, Layout layout, NetworkTopology map, Link link) {
        this.settings = settings;
        this.layout = layout;
        this.map = map;
        this.link = link;
        policy = switch (settings.policy()) {
            case SINBAD -> new Sinbad(settings.sinbad(), settings.diskWriteRate());
            case CCP -> new Ccp(settings.ccp());
            case REHDFS -> new ReHdfs(settings.rehdfs());
            case LEEWARD -> new Leeward(settings.diskWriteRate(), settings.headroom());
            case DEFAULT -> null;
        };
        ring = new DecisionRing(settings.explain().stored());
        metrics = new Metrics(this);
        placementLog = link == null ? null : new PlacementLog(settings, layout, link);
        views = new CurrentView(settings, map, link);
    }

    /**
     * Opens the engine of a policy in a NameNode.
     *
     * @return null if the default policy shall place every block: by the settings, or because they are invalid. The log
     *     then has an error that names the property.
     * @throws IllegalArgumentException if the settings are invalid and {@code dfs.leeward.strict} is set
     */
    public static Engine open(Configuration conf, NetworkTopology map, Layout layout) {
        try {
            Settings settings = SettingsReader.read(conf);
            if (settings.policy() == Settings.PolicyName.DEFAULT) {
                Beans.remove(layout);
                return null;
            }
            return open(settings, map, layout);
        } catch (SettingsException | ControllerException e) {
            if (SettingsReader.isStrict(conf)) {
                throw new IllegalArgumentException(e.getMessage(), e);
            }
            LOG.error("Leeward is off, and the default policy places all blocks: {}", e.getMessage());
            Beans.show(layout, Metrics.withoutEngine(e.getMessage()));
            return null;
        } catch (RuntimeException | LinkageError e) {
            // A LinkageError: this Hadoop lacks a method that Leeward calls.
            if (SettingsReader.isStrict(conf)) {
                throw e;
            }
            LOG.error("Leeward is off, and the default policy places all blocks: a fault in Leeward", e);
            Beans.show(layout, Metrics.withoutEngine("a fault in Leeward: " + e));
            return null;
        }
    }

    /** Opens an engine with settings. */
    static Engine open(Settings settings, NetworkTopology map, Layout layout) throws ControllerException {
        Link link = settings.connection().controllers().isEmpty() ? null : Link.of(settings);
        Engine engine = new Engine(settings, layout, map, link);
        engine.keepUp(System.nanoTime());
        if (link != null) {
            if (link.feed().last() != null) {
                engine.views.accept(link.feed().last());
            }
            link.feed().addListener(engine.views);
        }
        Upkeep.start(engine, "leeward-datanodes" + (link == null ? "" : " " + link.controller().address()));
        Metrics metrics = engine.metrics;
        Beans.show(layout, metrics);
        // HDFS does not say when it replaces a policy by one of its own. Beans must not show the old one as running.
        CLEANER.register(engine, () -> Beans.remove(layout, metrics));
        LOG.info("Leeward places {} by policy {}; controller: {}",
                layout == Layout.CHAIN ? "replicated blocks" : "erasure-coded blocks",
                settings.policy().text(), settings.connection());
        return engine;
    }

    /** Sets the search of the policy in HDFS, for decisions that are explained on demand. */
    public void setTrial(Trial trial) {
        this.trial = trial;
    }

    // ---- decisions ------------------------------------------------------------------------------------------

    /**
     * Begins a call of {@code chooseTarget}. While the default policy places all blocks, this is all that Leeward does.
     *
     * @param path file of the block, or null
     * @param writer node that writes, or null
     * @param size size as HDFS gives it: the largest one of a new block or chunk, or that of an existing block, or of
     *     the data of a damaged stripe
     * @param copies number of new copies or chunks
     * @param chosen storages of earlier copies or chunks
     * @param excluded nodes that must not be chosen, or null; of a damaged stripe, with all that have chunks
     * @return null if the default policy places the block; it is counted then
     */
    public Decision begin(
            String path, Node writer, long size, int copies, List<DatanodeStorageInfo> chosen, Set<Node> excluded) {
        if (copies <= 0) {
            return null;
        }
        if (settings.policy().readsLoads() && link.feed().isAway()) {
            metrics.count(Reason.withoutSnapshot(link.feed().failure(), link.feed().last() != null));
            return null;
        }
        long nano = System.nanoTime();
        try {
            NetworkView current = views.last();
            Coding coding = layout == Layout.STRIPE ? ErasureCodes.withChunks(copies + chosen.size()) : null;
            long bytes = size;
            if (layout == Layout.STRIPE && !chosen.isEmpty()) {
                // Without a missing chunk, HDFS moves one to another rack.
                Coding whole = coding == null ? ErasureCodes.withChunks(chosen.size()) : coding;
                bytes = whole == null ? size : whole.chunkOf(size);
                coding = ErasureCodes.anyLeaves(excluded) ? null : coding;
            }
            ThreadLocalRandom random = ThreadLocalRandom.current();
            Reason reason = reasonAgainst(current, bytes, nano, random.nextDouble());
            if (reason == Reason.RANKED) {
                double sample = settings.explain().sample();
                DecisionRecord record =
                        sample > 0.0 && random.nextDouble() < sample ? record(current, path, writer, bytes) : null;
                long expected = chosen.isEmpty() ? views.expectedSize(bytes) : bytes;
                return new Decision(
                        writer, size, expected, coding, copies, chosen, current, nano,
                        new Ties(random.nextLong()), record);
            }
            metrics.count(reason);
        } catch (RuntimeException | LinkageError e) {
            warn("the default policy places the block", e);
            metrics.count(Reason.ERROR);
        }
        return null;
    }

    private DecisionRecord record(NetworkView current, String path, Node writer, long bytes) {
        String name = writer == null ? null : writer.getName();
        if (writer instanceof DatanodeDescriptor node) {
            name = node.getHostName();
        }
        String mode = current.snapshot() == null ? null : current.snapshot().mode();
        return new DecisionRecord(Instant.now(), path, name, bytes, settings.policy().text(), mode);
    }

    /**
     * Reason for which the default policy places a block, or {@link Reason#RANKED}.
     *
     * @param draw from 0 to below 1: the policy places the block if it is below the share of the controller's mode
     */
    private Reason reasonAgainst(NetworkView current, long bytes, long nano, double draw) {
        Snapshot snapshot = current.snapshot();
        return snapshot != null && draw >= snapshot.share() ? Reason.OFF : reasonAgainst(current, bytes, nano);
    }

    /** As above, whatever the mode of the controller. */
    private Reason reasonAgainst(NetworkView current, long bytes, long nano) {
        if (settings.policy() == Settings.PolicyName.SINBAD && bytes < settings.sinbad().threshold()) {
            return Reason.SMALL;
        }
        if (settings.policy() == Settings.PolicyName.REHDFS) {
            return Reason.RANKED;
        }
        // Capacities stay right for as long as the controller is away; loads do not.
        long maxAgeMs = settings.policy().readsLoads() ? settings.connection().maxAgeMs() : Long.MAX_VALUE;
        if (!current.isFresh(nano, maxAgeMs)) {
            return Reason.withoutSnapshot(link.feed().failure(), current.snapshot() != null);
        }
        return current.network().isOfOtherCluster() ? Reason.OTHER_CLUSTER : Reason.RANKED;
    }

    /**
     * The host for one copy.
     *
     * @param scope location of HDFS, or {@code ~} and a location for all hosts outside it
     * @param excluded nodes that must not be chosen
     * @param type type of storage, or null
     * @return null if the default policy shall choose
     */
    public DatanodeDescriptor choose(Decision decision, String scope, Collection<Node> excluded, StorageType type) {
        if (decision.reason() == Reason.ERROR) {
            return null;
        }
        if (decision.isRejected()) {
            decision.fallBack(Reason.REJECTED_HOSTS);
            return null;
        }
        try {
            DecisionRecord record = decision.record();
            Explanation why = record == null || record.isFull() ? null : new Explanation();
            int host = choose(decision, scope, excluded, type, why);
            DatanodeDescriptor node = host < 0 ? null : decision.view().topology().node(host);
            if (node != null && !map.contains(node)) {
                // The DataNode left after the view was built.
                views.expire();
                node = null;
            }
            if (record != null) {
                record.addStep(
                        scope, node == null ? null : node.getHostName(),
                        node == null ? Reason.NO_CANDIDATE : Reason.RANKED, why);
            }
            return node;
        } catch (RuntimeException | LinkageError e) {
            warn("the default policy chooses the host", e);
            decision.fallBack(Reason.ERROR);
            return null;
        }
    }

    private int choose(
            Decision decision, String scope, Collection<Node> excluded, StorageType type, Explanation why) {
        NetworkView current = decision.view();
        Topology topology = current.topology();
        if (topology.hostCount() == 0) {
            return Policy.NONE;
        }
        List<DatanodeStorageInfo> results = decision.results();
        int[] held = new int[results.size()];
        int[] placed = new int[Math.max(0, results.size() - decision.existing().size())];
        Sender source = decision.source();
        int news = 0;
        for (int i = 0; i < held.length; i++) {
            DatanodeDescriptor node = results.get(i).getDatanodeDescriptor();
            int host = topology.host(node);
            held[i] = host < 0 ? -1 : topology.rackOf(host);
            if (news < placed.length && !decision.existing().contains(node)) {
                placed[news++] = held[i];
                source = layout == Layout.CHAIN && host >= 0 ? current.network().sender(host) : source;
            }
        }
        long nano = System.nanoTime();
        // All hosts count as open if the snapshot is too old, or of another cluster.
        boolean[] closed = current.isCurrent(nano, settings.connection().maxAgeMs()) ? current.closed() : null;
        Candidates candidates = new Candidates(
                topology, closed, scope, excluded, type, decision.size(), held, decision.mostPerRack());
        Ties ties = decision.nextTies();
        int unknown = settings.policy().readsLoads() ? drawUnknown(current, candidates, ties) : Policy.NONE;
        if (unknown >= 0) {
            decision.fallBack(Reason.UNKNOWN_HOST);
            return unknown;
        }
        Snapshot snapshot = current.snapshot();
        long networkNs = snapshot == null ? 0 : snapshot.timeAt(nano);
        Request request = new Request(
                decision.bytes(), decision.writer(), source, placed, together(decision, scope),
                System.currentTimeMillis() * 1_000_000, networkNs, ties);
        int host = policy.choose(current, request, candidates, scratch.get(), why);
        if (host < 0 && request.together() > 1) {
            host = policy.choose(current, request.alone(), candidates, scratch.get(), why);
        }
        return host;
    }

    /** Copies that HDFS will place in the rack of the next one: the second and third of a new block. */
    private int together(Decision decision, String scope) {
        boolean remote = layout == Layout.CHAIN && decision.isNewBlock() && scope.startsWith("~");
        boolean two = decision.results().size() == 1 && decision.copies() >= 3 && settings.remoteRacks() == 1;
        return remote && two ? 2 : 1;
    }

    /** Draws as HDFS does, and takes a host that the controller does not know: such hosts get their share of copies. */
    private static int drawUnknown(NetworkView current, Candidates candidates, Ties ties) {
        if (current.network().unknown().length == 0) {
            return Policy.NONE;
        }
        int drawn = candidates.draw(ties);
        return drawn >= 0 && !current.network().isKnown(drawn) ? drawn : Policy.NONE;
    }

    /** Ends a call of {@code chooseTarget}: counts it, and records and reports the placement. */
    public void end(Decision decision) {
        if (decision.targets().length == 0) {
            decision.fallBack(Reason.NO_CANDIDATE);
        }
        try {
            if (placementLog != null) {
                placementLog.add(decision);
            }
            if (decision.record() != null) {
                decision.record().finish(hostNames(decision), existingNames(decision), decision.reason());
                ring.add(decision.record());
            }
        } catch (RuntimeException | LinkageError e) {
            warn("the placement is neither counted nor reported", e);
        }
        metrics.count(decision.reason());
        metrics.time(System.nanoTime() - decision.beganNano());
    }

    private static List<String> hostNames(Decision decision) {
        List<String> hosts = new ArrayList<>();
        for (DatanodeStorageInfo storage : decision.targets()) {
            hosts.add(storage.getDatanodeDescriptor().getHostName());
        }
        return hosts;
    }

    private static List<String> existingNames(Decision decision) {
        return decision.existing().stream().map(DatanodeDescriptor::getHostName).toList();
    }

    /**
     * The rate in bit/s left on the links out of a host, for the choice of a copy to delete; NaN if it is unknown or no
     * policy reads loads. No I/O, no lock.
     *
     * @param draw from 0 to below 1, one for all copies of the choice: Leeward takes part if it is below the share of
     *     the controller's mode
     */
    public double leftOut(DatanodeDescriptor node, double draw) {
        NetworkView current = views.last();
        if (!settings.policy().readsLoads()) {
            return Double.NaN;
        }
        try {
            boolean fresh = reasonAgainst(current, Long.MAX_VALUE, System.nanoTime(), draw) == Reason.RANKED;
            return fresh ? placementLog.leftOut(current, node) : Double.NaN;
        } catch (RuntimeException | LinkageError e) {
            // The caller is a thread without which the NameNode stops.
            warn("the default rule chooses the copy to delete", e);
            return Double.NaN;
        }
    }

    /** Number of racks for the copies besides the first. */
    public int remoteRacks() {
        return settings.remoteRacks();
    }

    /** Keeps the view and the counts of the last hour up to date, at a monotonic time in ns. */
    void keepUp(long nano) {
        try {
            metrics.keepUp(nano);
            views.keepUp(nano);
        } catch (RuntimeException | Error e) {
            // HDFS throws exceptions while DataNodes join. No fault may end the daemon.
            warn("decisions continue with the DataNodes as they were", e);
        }
    }

    private void warn(String consequence, Throwable e) {
        if (warnings.take(System.nanoTime())) {
            LOG.error("a fault in Leeward; {}", consequence, e);
        }
    }

    // ---- for metrics ----------------------------------------------------------------------------------------

    Settings settings() {
        return settings;
    }

    Link link() {
        return link;
    }

    NetworkView view() {
        return views.last();
    }

    DecisionRing ring() {
        return ring;
    }

    Metrics metrics() {
        return metrics;
    }

    /**
     * An explained decision about a new block now, by HDFS's own search, whatever the mode of the controller. Nothing
     * is placed, counted or reported.
     *
     * @param writerName host name or IP address of a DataNode; another text stands for a writer outside
     */
    String explain(String writerName, long bytes, int copies) {
        long nano = System.nanoTime();
        NetworkView current = views.last();
        DatanodeDescriptor writer = node(current.topology(), writerName);
        DecisionRecord record = record(current, "", writer, bytes);
        Reason reason = reasonAgainst(current, bytes, nano);
        List<String> hosts = List.of();
        if (reason == Reason.RANKED) {
            Decision decision = new Decision(
                    writer, bytes, views.expectedSize(bytes), null, copies, List.of(), current, nano,
                    new Ties(ThreadLocalRandom.current().nextLong()), record);
            decision.take(trial.search(decision, writer, bytes, copies));
            hosts = hostNames(decision);
            reason = hosts.isEmpty() ? Reason.NO_CANDIDATE : decision.reason();
        }
        record.finish(hosts, List.of(), reason);
        return record.json();
    }

    private static DatanodeDescriptor node(Topology topology, String name) {
        for (int host = 0; host < topology.hostCount(); host++) {
            DatanodeDescriptor node = topology.node(host);
            if (name.equals(node.getHostName()) || name.equals(node.getIpAddr())) {
                return node;
            }
        }
        return null;
    }
}
