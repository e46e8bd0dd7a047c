package dev.leeward.hdfs.testing;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockManager;

/** A NameNode and DataNodes of HDFS in this process, with the names of a {@link FakeNetwork}. */
public final class MiniCluster implements AutoCloseable {

    /** Size of a block. */
    public static final int BLOCK = 64 << 10;

    private final MiniDFSCluster cluster;
    private final Configuration conf;

    /** A running cluster. */
    public MiniCluster(Configuration conf, MiniDFSCluster cluster) {
        this.conf = conf;
        this.cluster = cluster;
    }

    /** Settings of HDFS for small blocks and quick reactions, with both policies of Leeward. */
    public static Configuration conf(String controller, String policy) {
        Configuration conf = new HdfsConfiguration();
        String policies = "org.apache.hadoop.hdfs.server.blockmanagement.";
        conf.set("dfs.block.replicator.classname", policies + "LeewardBlockPlacementPolicy");
        conf.set("dfs.block.placement.ec.classname", policies + "LeewardErasureCodedPlacementPolicy");
        conf.set("dfs.leeward.controller", controller);
        conf.set("dfs.leeward.policy", policy);
        conf.set("dfs.leeward.strict", "true");
        conf.set("dfs.leeward.snapshot.interval", "100ms");
        conf.set("dfs.leeward.snapshot.max-age", "2s");
        conf.set("dfs.leeward.sinbad.threshold", "0B");
        conf.setLong("dfs.blocksize", BLOCK);
        conf.setLong("dfs.namenode.fs-limits.min-block-size", 1024);
        conf.setInt("dfs.heartbeat.interval", 1);
        conf.setInt("dfs.namenode.redundancy.interval.seconds", 1);
        conf.setInt("dfs.namenode.decommission.interval", 1);
        conf.setBoolean("dfs.namenode.redundancy.considerLoad", false);
        conf.setBoolean("dfs.client.block.write.replace-datanode-on-failure.enable", false);
        return conf;
    }

    /** Builder of a cluster of racks {@code /r0}, ... with hosts {@code r0h0}, .... */
    public static MiniDFSCluster.Builder builder(Configuration conf, Path folder, int racks, int hostsPerRack) {
        List<String> locations = new ArrayList<>();
        List<String> hosts = new ArrayList<>();
        for (int rack = 0; rack < racks; rack++) {
            for (int host = 0; host < hostsPerRack; host++) {
                locations.add("/r" + rack);
                hosts.add("r" + rack + "h" + host);
            }
        }
        return new MiniDFSCluster.Builder(conf, folder.toFile())
                .numDataNodes(hosts.size())
                .racks(locations.toArray(new String[0]))
                .hosts(hosts.toArray(new String[0]))
                .storagesPerDatanode(1);
    }

    /** Starts a cluster and waits until the NameNode has a snapshot. */
    public static MiniCluster start(Configuration conf, Path folder, int racks, int hostsPerRack) throws Exception {
        MiniCluster started = new MiniCluster(conf, builder(conf, folder, racks, hostsPerRack).build());
        started.cluster.waitActive();
        started.awaitView(racks * hostsPerRack);
        return started;
    }

    /** Waits until decisions of both policies read a snapshot, and know a number of DataNodes. */
    public void awaitView(int dataNodes) throws InterruptedException {
        for (String bean : List.of("LeewardInfo", "LeewardErasureCodedInfo")) {
            Eventually.holds("a snapshot in the NameNode", () -> Jmx.hasSnapshot(bean));
            Eventually.holds(dataNodes + " DataNodes", () -> Jmx.bean(bean).getDataNodes() == dataNodes);
        }
    }

    /** The cluster of HDFS. */
    public MiniDFSCluster dfs() {
        return cluster;
    }

    /** Its settings. */
    public Configuration conf() {
        return conf;
    }

    /** Its files. */
    public DistributedFileSystem files() throws IOException {
        return cluster.getFileSystem();
    }

    /** Its manager of blocks. */
    public BlockManager blocks() {
        return cluster.getNamesystem().getBlockManager();
    }

    /** Writes a file with random content, in small blocks. */
    public org.apache.hadoop.fs.Path write(String name, int bytes, int copies) throws IOException {
        return write(name, bytes, copies, BLOCK);
    }

    /** Writes a file with random content, in blocks of a size. */
    public org.apache.hadoop.fs.Path write(String name, int bytes, int copies, long block) throws IOException {
        org.apache.hadoop.fs.Path path = new org.apache.hadoop.fs.Path(name);
        byte[] content = new byte[bytes];
        new Random(name.hashCode()).nextBytes(content);
        try (FSDataOutputStream out = files().create(path, true, 4096, (short) copies, block)) {
            out.write(content);
        }
        return path;
    }

    /** For each block of a file, the hosts of its copies. */
    public List<List<String>> hosts(org.apache.hadoop.fs.Path path) throws IOException {
        FileStatus status = files().getFileStatus(path);
        List<List<String>> blocks = new ArrayList<>();
        for (BlockLocation location : files().getFileBlockLocations(status, 0, status.getLen())) {
            blocks.add(List.of(location.getHosts()));
        }
        return blocks;
    }

    /** Waits until each block of a file has a number of copies, none of them on a host. Returns their hosts. */
    public List<List<String>> awaitCopies(org.apache.hadoop.fs.Path path, int copies, String without)
            throws IOException, InterruptedException {
        Eventually.holds(copies + " copies of " + path + ", none on " + without, () -> {
            try {
                return hosts(path).stream().allMatch(hosts -> hosts.size() == copies && !hosts.contains(without));
            } catch (IOException e) {
                throw new AssertionError(e);
            }
        });
        return hosts(path);
    }

    /** Rack of a host. */
    public static String rack(String host) {
        return host.substring(0, host.indexOf('h'));
    }

    @Override
    public void close() {
        cluster.shutdown(true);
    }
}
