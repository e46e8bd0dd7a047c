package dev.leeward.hdfs;

import dev.leeward.hdfs.placements.Coding;
import dev.leeward.hdfs.placements.LocalLoads;
import dev.leeward.hdfs.placements.Placement;
import dev.leeward.hdfs.placements.Report;
import dev.leeward.hdfs.policies.NetworkView;
import dev.leeward.hdfs.policies.Pressure;
import dev.leeward.hdfs.settings.Settings;
import dev.leeward.hdfs.snapshot.Snapshot;
import dev.leeward.hdfs.topology.Network;
import dev.leeward.hdfs.topology.Sender;
import dev.leeward.hdfs.topology.Topology;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeDescriptor;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeStorageInfo;

/** Turns the result of a decision into a placement: its links, its load on them, and its report. */
final class PlacementLog {

    private final Settings settings;
    private final Engine.Layout layout;
    private final Link link;
    private final Pressure pressure;

    PlacementLog(Settings settings, Engine.Layout layout, Link link) {
        this.settings = settings;
        this.layout = layout;
        this.link = link;
        pressure = new Pressure(settings.sinbad(), settings.diskWriteRate());
    }

    /** Counts and reports the hosts of a block. */
    void add(Decision decision) {
        NetworkView view = decision.view();
        Snapshot snapshot = view.snapshot();
        long nano = System.nanoTime();
        // Without a snapshot nothing would ever drop the placement.
        boolean current = view.isCurrent(nano, settings.connection().maxAgeMs());
        int[] hosts = current ? newHosts(view.topology(), decision) : new int[0];
        if (hosts.length == 0) {
            return;
        }
        Sender source = decision.source();
        Placement placement = placement(view, decision, source, hosts, snapshot.timeAt(nano));
        link.placements().add(placement);
        if (settings.report().enabled() && link.reporter().hasRoom()) {
            report(view, decision, source, hosts, placement);
        }
    }

    private static int[] newHosts(Topology topology, Decision decision) {
        DatanodeStorageInfo[] chosen = decision.targets();
        int[] hosts = new int[chosen.length];
        int count = 0;
        for (DatanodeStorageInfo storage : chosen) {
            DatanodeDescriptor node = storage.getDatanodeDescriptor();
            int host = topology.host(node);
            if (host >= 0 && !decision.existing().contains(node)) {
                hosts[count++] = host;
            }
        }
        return count == hosts.length ? hosts : Arrays.copyOf(hosts, count);
    }

    // ---- loads ----------------------------------------------------------------------------------------------

    private Placement placement(NetworkView view, Decision decision, Sender source, int[] hosts, long nowNs) {
        long bytes = decision.bytes();
        int[] remaining = remaining(view.topology(), decision);
        // In a rebuild, the first new host sends the others their chunks.
        Sender sender = remaining.length > 0 ? view.network().sender(hosts[0]) : source;
        boolean sinbad = settings.policy() == Settings.PolicyName.SINBAD && pressure.counts();
        int[] pressed = sinbad ? selectedLinks(view, sender, remaining, hosts) : new int[0];
        long[] pressures = new long[pressed.length];
        for (int i = 0; i < pressed.length; i++) {
            pressures[i] = pressure.of(view, bytes, sender, pressed[i], nowNs);
        }
        int[] crossed = settings.policy() == Settings.PolicyName.LEEWARD
                ? path(view, sender, remaining, hosts)
                : new int[0];
        long rate = rate(view.snapshot(), view.loads(), crossed, settings.diskWriteRate());
        return new Placement(
                view.loads(), nowNs, pressed, pressures, pressure.isInSnapshot(), crossed, rate, bytes);
    }

    /** Hosts whose chunks the first new host reads to rebuild the missing ones; none for another placement. */
    private static int[] remaining(Topology topology, Decision decision) {
        if (decision.coding() == null || decision.isNewBlock()) {
            return new int[0];
        }
        return decision.existing().stream()
                .limit(decision.coding().data())
                .mapToInt(topology::host)
                .filter(host -> host >= 0)
                .toArray();
    }

    /** Links that Sinbad selects for the copies (pseudocode 2, line 23): those into pods, racks and hosts. */
    private int[] selectedLinks(NetworkView view, Sender sender, int[] remaining, int[] hosts) {
        Links links = new Links(view);
        for (int host : remaining) {
            select(view, links, view.network().sender(host), hosts[0]);
        }
        Sender from = sender;
        for (int host : hosts) {
            select(view, links, from, host);
            from = layout == Engine.Layout.CHAIN ? view.network().sender(host) : sender;
        }
        return links.numbers();
    }

    private static void select(NetworkView view, Links links, Sender from, int to) {
        if (from.host() == to) {
            return;
        }
        int rack = view.topology().rackOf(to);
        if (from.rack() != rack) {
            if (view.network().crossesPods(from, rack)) {
                links.add(view.network().podDownlink(rack));
            }
            links.add(view.network().downlink(rack));
        }
        links.add(view.network().ingress(to));
    }

    /** All links on the way of the bytes; one that several copies or chunks cross is there for each of them. */
    private int[] path(NetworkView view, Sender sender, int[] remaining, int[] hosts) {
        Links links = new Links(view);
        for (int host : remaining) {
            links.addWay(view.network().sender(host), hosts[0]);
        }
        Sender from = sender;
        for (int host : hosts) {
            links.addWay(from, host);
            from = layout == Engine.Layout.CHAIN ? view.network().sender(host) : sender;
        }
        return links.numbers();
    }

    /**
     * Rate of each copy or chunk in bit/s: on each link of its way what is left, or the fair share of a new flow if
     * that is more (Choreo, section 3.2); the least of these, and at most the rate of a disk.
     *
     * <p>The ledger of the controller also knows the flows of others and the streams that yield to none. The snapshot
     * does not have them, so the fair share here is among own blocks, and can be more than the ledger's. It counts only
     * until the snapshot has the placement at the ledger's share.
     *
     * @param crossed links on the way; one that several copies cross is there for each of them
     * @param diskRate rate in bit/s at which a disk takes a block; 0 for no limit
     */
    static long rate(Snapshot snapshot, LocalLoads loads, int[] crossed, long diskRate) {
        double least = diskRate > 0 ? diskRate : 1e18;
        // Equal numbers stand together then: a block of hundreds of copies crosses thousands of links.
        int[] sorted = crossed.clone();
        Arrays.sort(sorted);
        for (int from = 0, until; from < sorted.length; from = until) {
            int number = sorted[from];
            for (until = from + 1; until < sorted.length && sorted[until] == number; ) {
                until++;
            }
            int own = until - from;
            double left = Math.max(0.0, snapshot.residual()[number] - loads.rate(number)) / own;
            double fair = snapshot.capacities()[number] / (double) (loads.flows(number) + own);
            least = Math.min(least, Math.max(left, fair));
        }
        return crossed.length == 0 ? 0 : (long) least;
    }

    /** A growing list of links. */
    private static final class Links {
        private final NetworkView view;
        private int[] numbers = new int[16];
        private int count;

        Links(NetworkView view) {
            this.view = view;
        }

        void add(int number) {
            if (number < 0) {
                return;
            }
            if (count == numbers.length) {
                numbers = Arrays.copyOf(numbers, 2 * count);
            }
            numbers[count++] = number;
        }

        /** Adds the known links from a sender to a host. */
        void addWay(Sender from, int to) {
            if (from.host() == to) {
                return;
            }
            Network network = view.network();
            int toRack = view.topology().rackOf(to);
            add(from.egress());
            if (from.rack() != toRack) {
                boolean crossesPods = network.crossesPods(from, toRack);
                add(from.uplink());
                add(crossesPods ? from.podUplink() : -1);
                add(crossesPods ? network.podDownlink(toRack) : -1);
                add(network.downlink(toRack));
            }
            add(network.ingress(to));
        }

        int[] numbers() {
            return Arrays.copyOf(numbers, count);
        }
    }

    /** Rate in bit/s left on the links out of a host and its rack; NaN if it is unknown, or the host is closed. */
    double leftOut(NetworkView view, DatanodeDescriptor node) {
        int host = view.topology().host(node);
        if (host < 0 || !view.network().isKnown(host) || view.closed()[host]) {
            return Double.NaN;
        }
        int rack = view.topology().rackOf(host);
        double least = Double.NaN;
        int[] out = {view.network().egress(host), view.network().uplink(rack), view.network().podUplink(rack)};
        for (int number : out) {
            if (number >= 0 && view.snapshot().measured()[number] != Snapshot.UNKNOWN) {
                double left = Math.max(0.0, view.snapshot().residual()[number] - view.loads().rate(number));
                least = Double.isNaN(least) ? left : Math.min(least, left);
            }
        }
        return least;
    }

    // ---- reports --------------------------------------------------------------------------------------------

    private void report(NetworkView view, Decision decision, Sender source, int[] hosts, Placement placement) {
        List<String> names = new ArrayList<>(hosts.length);
        for (int host : hosts) {
            if (!view.network().isKnown(host)) {
                // The controller rejects a placement on a host that it does not know.
                return;
            }
            names.add(name(view, host));
        }
        List<String> existing = new ArrayList<>(decision.existing().size());
        for (DatanodeDescriptor node : decision.existing()) {
            int host = view.topology().host(node);
            if (host >= 0 && view.network().isKnown(host)) {
                existing.add(name(view, host));
            }
        }
        boolean separate = layout == Engine.Layout.STRIPE && !isStripe(decision.coding(), names, existing);
        boolean namesWriter = source.row() >= 0 && existing.isEmpty();
        link.reporter().offer(new Report(
                placement,
                settings.connection().client(),
                namesWriter ? view.snapshot().hostName(source.row()) : null,
                names,
                separate,
                separate ? null : decision.coding(),
                existing,
                decision.bytes(),
                settings.report().lastsMs()));
    }

    /** True if the hosts complete a stripe: a new one, or a damaged one of which enough chunks remain. */
    private static boolean isStripe(Coding coding, List<String> hosts, List<String> existing) {
        return coding != null
                && hosts.size() + existing.size() == coding.chunks()
                && (existing.isEmpty() || existing.size() >= coding.data());
    }

    private static String name(NetworkView view, int host) {
        return view.snapshot().hostName(view.network().hostRow(host));
    }
}
