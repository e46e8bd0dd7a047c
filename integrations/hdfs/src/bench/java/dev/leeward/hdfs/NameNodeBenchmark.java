package dev.leeward.hdfs;

import dev.leeward.hdfs.testing.FakeController;
import dev.leeward.hdfs.testing.FakeNetwork;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.commons.io.FileUtils;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.crypto.CryptoProtocolVersion;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DFSTestUtil;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.protocol.DatanodeID;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;
import org.apache.hadoop.hdfs.security.token.block.ExportedBlockKeys;
import org.apache.hadoop.hdfs.server.common.StorageInfo;
import org.apache.hadoop.hdfs.server.namenode.NNThroughputBenchmark;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.hdfs.server.protocol.DatanodeRegistration;
import org.apache.hadoop.hdfs.server.protocol.DatanodeStorage;
import org.apache.hadoop.hdfs.server.protocol.NamenodeProtocols;
import org.apache.hadoop.hdfs.server.protocol.NamespaceInfo;
import org.apache.hadoop.hdfs.server.protocol.SlowDiskReports;
import org.apache.hadoop.hdfs.server.protocol.SlowPeerReports;
import org.apache.hadoop.hdfs.server.protocol.StorageReport;
import org.apache.hadoop.io.EnumSetWritable;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.net.DNSToSwitchMapping;
import org.apache.hadoop.test.GenericTestUtils;
import org.apache.hadoop.test.GenericTestUtils.LogCapturer;
import org.apache.hadoop.util.VersionInfo;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/**
 * Operations of a NameNode per second with a policy of Leeward, relative to the default policy. The arguments are a
 * policy such as {@code sinbad} and, optionally, the time between two snapshots, such as {@code 5s}.
 *
 * <p>{@code creates} are those of HDFS's NNThroughputBenchmark, whose files have no blocks, so no policy takes part.
 * {@code writes} are creates with the first block of the file, at 3,000 DataNodes in 150 racks. Two NameNodes run in
 * this process, one for each policy, and take turns, so other work on the machine affects both alike. Other settings
 * have their defaults. The controller runs here too, so its work counts.
 */
public final class NameNodeBenchmark {

    private static final int RACKS = 150;
    private static final int HOSTS = 20;
    private static final int THREADS = 4;
    private static final int WRITES = 1_000;
    private static final int ROUNDS = 90;
    private static final int CREATES = 10_000;
    private static final int PAIRS = 20;
    private static final int WARMUP_PAIRS = 6;
    private static final long BLOCK = 128L << 20;
    private static final long CAPACITY = 1L << 44;
    private static final Pattern RATE = Pattern.compile("Ops per sec: ([0-9.]+)");

    private final ExecutorService handlers = Executors.newFixedThreadPool(THREADS);
    private final Path folder;
    private final String policy;
    /** Time between two snapshots; null for the default. */
    private final String interval;

    private NameNodeBenchmark(Path folder, String policy, String interval) {
        this.folder = folder;
        this.policy = policy;
        this.interval = interval;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length < 1 || arguments.length > 2) {
            System.err.println("expected a policy, such as sinbad or leeward, and optionally a time such as 5s");
            System.exit(2);
        }
        DefaultMetricsSystem.setMiniClusterMode(true);
        Path folder = Files.createTempDirectory("leeward-namenode");
        FakeNetwork network = new FakeNetwork(RACKS, HOSTS, 10_000_000_000L, 100_000_000_000L);
        ScheduledExecutorService agents = Executors.newSingleThreadScheduledExecutor();
        try (FakeController controller = new FakeController(network)) {
            // Agents report each second, so each difference has a new window of every link.
            agents.scheduleAtFixedRate(() -> network.advance(0), 1, 1, TimeUnit.SECONDS);
            String interval = arguments.length == 2 ? arguments[1] : null;
            NameNodeBenchmark benchmark = new NameNodeBenchmark(folder, arguments[0], interval);
            benchmark.runCreates(controller);
            benchmark.runWrites(controller);
        } finally {
            agents.shutdownNow();
            FileUtils.deleteDirectory(folder.toFile());
        }
        System.exit(0);
    }

    // ---- NameNodes ------------------------------------------------------------------------------------------

    /** Racks {@code /r0}, ... of hosts {@code r0h0}, .... Other names have no rack. */
    public static final class RackOfName implements DNSToSwitchMapping {
        @Override
        public List<String> resolve(List<String> names) {
            List<String> racks = new ArrayList<>();
            for (String name : names) {
                if (!name.matches("r[0-9]+h[0-9]+")) {
                    return null;
                }
                racks.add("/" + name.substring(0, name.indexOf('h')));
            }
            return racks;
        }

        @Override
        public void reloadCachedMappings() {
        }

        @Override
        public void reloadCachedMappings(List<String> names) {
        }
    }

    private Configuration conf(String name, FakeController controller) throws IOException {
        Configuration conf = new HdfsConfiguration();
        Path home = folder.resolve(name);
        FileUtils.deleteDirectory(home.toFile());
        Files.createDirectories(home);
        conf.set("hadoop.tmp.dir", home.toString());
        conf.set("dfs.namenode.name.dir", home.resolve("name").toUri().toString());
        conf.set("dfs.namenode.http-address", "localhost:0");
        conf.setBoolean("dfs.namenode.edits.noeditlogchannelflush", true);
        conf.setLong("dfs.namenode.fs-limits.min-block-size", 0);
        conf.setClass("net.topology.node.switch.mapping.impl", RackOfName.class, DNSToSwitchMapping.class);
        if (controller != null) {
            conf.set("dfs.block.replicator.classname",
                    "org.apache.hadoop.hdfs.server.blockmanagement.LeewardBlockPlacementPolicy");
            conf.set("dfs.leeward.controller", controller.address());
            conf.set("dfs.leeward.policy", policy);
            conf.set("dfs.leeward.strict", "true");
            if (interval != null) {
                conf.set("dfs.leeward.snapshot.interval", interval);
                // Snapshots must stay fresh for more than two intervals.
                conf.set("dfs.leeward.snapshot.max-age", "3m");
            }
        }
        return conf;
    }

    // ---- creates --------------------------------------------------------------------------------------------

    private void runCreates(FakeController controller) throws Exception {
        double[] ratios = new double[PAIRS];
        double[] rates = new double[PAIRS];
        for (int pair = -WARMUP_PAIRS; pair < PAIRS; pair++) {
            boolean first = (pair & 1) == 0;
            double one = creates(first ? controller : null);
            double other = creates(first ? null : controller);
            if (pair >= 0) {
                rates[pair] = first ? one : other;
                ratios[pair] = first ? one / other : other / one;
            }
        }
        print("creates", rates, ratios, 0);
    }

    /** Creates per second. */
    private double creates(FakeController controller) throws Exception {
        Configuration conf = conf("creates", controller);
        FileSystem.setDefaultUri(conf, "file:///");
        Configuration formatted = new Configuration(conf);
        FileSystem.setDefaultUri(formatted, "hdfs://localhost:0");
        DFSTestUtil.formatNameNode(formatted);
        Logger logger = LoggerFactory.getLogger(NNThroughputBenchmark.class);
        GenericTestUtils.setLogLevel(logger, Level.INFO);
        LogCapturer log = LogCapturer.captureLogs(logger);
        try {
            NNThroughputBenchmark.runBenchmark(conf, new String[] {
                "-op", "create", "-threads", Integer.toString(THREADS), "-files", Integer.toString(CREATES),
                "-filesPerDir", "1000", "-close"});
        } finally {
            log.stopCapturing();
        }
        Matcher rate = RATE.matcher(log.getOutput());
        if (!rate.find()) {
            throw new IllegalStateException("NNThroughputBenchmark printed no rate: " + log.getOutput());
        }
        return Double.parseDouble(rate.group(1));
    }

    // ---- writes ---------------------------------------------------------------------------------------------

    private void runWrites(FakeController controller) throws Exception {
        NamenodeProtocols leeward = start("leeward", controller);
        NamenodeProtocols standard = start("standard", null);
        Thread.sleep(10_000);
        double[] ratios = new double[ROUNDS];
        double[] rates = new double[ROUNDS];
        for (int round = -ROUNDS / 3; round < ROUNDS; round++) {
            boolean first = (round & 1) == 0;
            double one = writes(first ? leeward : standard);
            double other = writes(first ? standard : leeward);
            if (round >= 0) {
                rates[round] = first ? one : other;
                ratios[round] = first ? one / other : other / one;
            }
        }
        print("writes", rates, ratios, Harness.count(Reason.RANKED));
    }

    private NamenodeProtocols start(String name, FakeController controller) throws IOException {
        Configuration conf = conf(name, controller);
        FileSystem.setDefaultUri(conf, "hdfs://localhost:0");
        DFSTestUtil.formatNameNode(conf);
        NamenodeProtocols rpc = NameNode.createNameNode(new String[0], conf).getRpcServer();
        rpc.setSafeMode(HdfsConstants.SafeModeAction.SAFEMODE_LEAVE, false);
        NamespaceInfo namespace = rpc.versionRequest();
        for (int host = 0; host < RACKS * HOSTS; host++) {
            DatanodeRegistration node = rpc.registerDatanode(new DatanodeRegistration(
                    new DatanodeID("10.0." + host / 256 + "." + host % 256, "r" + host / HOSTS + "h" + host % HOSTS,
                            UUID.randomUUID().toString(), 9866, 9864, 9865, 9867),
                    new StorageInfo(namespace), new ExportedBlockKeys(), VersionInfo.getVersion()));
            node.setNamespaceInfo(namespace);
            StorageReport report = new StorageReport(
                    new DatanodeStorage(UUID.randomUUID().toString(), DatanodeStorage.State.NORMAL, StorageType.DISK),
                    false, CAPACITY, 0, CAPACITY, 0, 0);
            rpc.sendHeartbeat(node, new StorageReport[] {report}, 0, 0, 0, 0, 0, null, false,
                    SlowPeerReports.EMPTY_REPORT, SlowDiskReports.EMPTY_REPORT);
        }
        return rpc;
    }

    /** Files created with their first block, per second. */
    private double writes(NamenodeProtocols rpc) throws Exception {
        long start = System.nanoTime();
        List<Future<?>> threads = new ArrayList<>();
        for (int thread = 0; thread < THREADS; thread++) {
            String client = "client-" + thread;
            threads.add(handlers.submit(() -> {
                for (int file = 0; file < WRITES / THREADS; file++) {
                    write(rpc, "/writes/" + client + "/" + file, client);
                }
                return null;
            }));
        }
        for (Future<?> thread : threads) {
            try {
                thread.get();
            } catch (ExecutionException e) {
                throw new IllegalStateException(e.getCause());
            }
        }
        double rate = WRITES * 1e9 / (System.nanoTime() - start);
        rpc.delete("/writes", true);
        return rate;
    }

    private static void write(NamenodeProtocols rpc, String path, String client) throws IOException {
        rpc.create(path, FsPermission.getDefault(), client, new EnumSetWritable<>(EnumSet.of(CreateFlag.CREATE)),
                true, (short) 3, BLOCK, CryptoProtocolVersion.supported(), null, null);
        int copies = rpc.addBlock(path, client, null, null, HdfsConstants.GRANDFATHER_INODE_ID, null, null)
                .getLocations().length;
        if (copies != 3) {
            throw new IllegalStateException(path + ": " + copies + " copies");
        }
    }

    private void print(String operation, double[] rates, double[] ratios, long ranked) {
        Arrays.sort(rates);
        Arrays.sort(ratios);
        int rounds = ratios.length;
        // Ranks of a 95 % interval of the median: n/2 -+ 0.98 sqrt(n).
        int spread = Math.min(rounds / 2, (int) Math.ceil(0.98 * Math.sqrt(rounds)));
        System.out.printf(Locale.ROOT,
                "%s: %s per second: median %.0f, and %.4f (%.4f to %.4f) of the default policy's; %d ranked%n",
                policy, operation, rates[rounds / 2], ratios[rounds / 2], ratios[rounds / 2 - spread],
                ratios[Math.min(rounds - 1, rounds / 2 + spread)], ranked);
    }
}
