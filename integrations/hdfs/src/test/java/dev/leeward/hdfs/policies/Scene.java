package dev.leeward.hdfs.policies;

import dev.leeward.hdfs.placements.LocalLoads;
import dev.leeward.hdfs.snapshot.Snapshot;
import dev.leeward.hdfs.snapshot.Snapshots;
import dev.leeward.hdfs.testing.FakeNetwork;
import dev.leeward.hdfs.topology.Network;
import dev.leeward.hdfs.topology.Sender;
import dev.leeward.hdfs.topology.Storage;
import dev.leeward.hdfs.topology.Topology;
import java.util.Collection;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.server.blockmanagement.FakeDataNodes;
import org.apache.hadoop.net.Node;
import org.apache.hadoop.net.NodeBase;

/** A network with DataNodes for tables of choices: 1 Gb/s hosts and 2 Gb/s racks, all idle at the start. */
final class Scene {

    static final long GBPS = 1_000_000_000L;
    static final long BLOCK = 128L << 20;

    final FakeDataNodes nodes;
    final FakeNetwork network;
    long uplinkPerTb;
    long nowNs;

    Scene(int racks, int hostsPerRack) {
        nodes = new FakeDataNodes(racks, hostsPerRack);
        network = new FakeNetwork(racks, hostsPerRack, GBPS, 2 * GBPS);
    }

    Scene load(String link, double gbps) {
        network.measure(link, (long) (gbps * GBPS));
        return this;
    }

    NetworkView view() {
        Topology topology = Topology.of(nodes.map());
        Snapshot snapshot = Snapshots.read(network.whole(), 0);
        Network joined = Network.of(topology, snapshot);
        Storage storage = Storage.of(topology);
        double[] expected = new double[snapshot.linkCount()];
        for (int link = 0; link < expected.length; link++) {
            long measured = snapshot.measured()[link];
            expected[link] = measured == Snapshot.UNKNOWN ? Double.NaN : snapshot.capacities()[link] - measured;
        }
        UplinkClasses classes = UplinkClasses.of(joined, storage, snapshot, uplinkPerTb);
        return NetworkView.of(
                topology, joined, storage, classes, snapshot, expected,
                new LocalLoads(snapshot.numbering(), snapshot.linkCount()));
    }

    /** Name of the host for a copy of a block that {@code writer} wrote on its own host; null if there is none. */
    String choose(Policy policy, String writer, String scope, Collection<String> excluded, int together, long seed) {
        NetworkView view = view();
        return choose(view, policy, writer, scope, excluded, together, seed, null);
    }

    String choose(
            NetworkView view, Policy policy, String writer, String scope, Collection<String> excluded, int together,
            long seed, Explanation why) {
        Topology topology = view.topology();
        Set<Node> out = new HashSet<>();
        excluded.forEach(name -> out.add(nodes.node(name)));
        Sender sender = view.sender(writer == null ? null : nodes.node(writer));
        int[] held = sender.host() < 0 ? new int[0] : new int[] {sender.rack()};
        Candidates candidates = new Candidates(topology, view.closed(), scope, out, StorageType.DISK, 0, held, 2);
        Request request = new Request(BLOCK, sender, sender, held, together, nowNs, 0, new Ties(seed));
        int chosen = policy.choose(view, request, candidates, new Scratch(), why);
        return chosen < 0 ? null : topology.node(chosen).getHostName();
    }

    /** Number of first copies in each rack, over many blocks of a client that is no DataNode, within a scope. */
    Map<String, Integer> firstRacksOf(Policy policy, String client, String scope, int blocks) {
        NetworkView view = view();
        Sender sender = view.sender(new NodeBase(client));
        Candidates candidates = new Candidates(
                view.topology(), view.closed(), scope, Set.of(), StorageType.DISK, 0, new int[0], 1);
        Map<String, Integer> counts = new TreeMap<>();
        for (int block = 0; block < blocks; block++) {
            Request request = new Request(BLOCK, sender, sender, new int[0], 1, nowNs, 0, new Ties(block * 7919L));
            int host = policy.choose(view, request, candidates, new Scratch(), null);
            counts.merge(view.topology().node(host).getHostName().substring(0, 2), 1, Integer::sum);
        }
        return counts;
    }

    /** Number of second copies in each rack, over many blocks of one writer. */
    Map<String, Integer> racksOf(Policy policy, String writer, int blocks) {
        NetworkView view = view();
        Map<String, Integer> counts = new TreeMap<>();
        String scope = "~" + nodes.node(writer).getNetworkLocation();
        for (int block = 0; block < blocks; block++) {
            String host = choose(view, policy, writer, scope, Set.of(writer), 2, block * 7919L, null);
            counts.merge(host == null ? "none" : host.substring(0, host.indexOf('h')), 1, Integer::sum);
        }
        return counts;
    }
}
