package dev.leeward.hdfs.policies;

import dev.leeward.hdfs.settings.Settings;
import dev.leeward.hdfs.topology.Network;
import dev.leeward.hdfs.topology.Topology;

/**
 * Policy {@code sinbad}: below the links with the most expected capacity (Chowdhury, Kandula, Stoica: "Leveraging
 * endpoint flexibility in data-intensive clusters", SIGCOMM 2013, pseudocode 2).
 *
 * <p>A rack ranks by min(C - M - pressure, DiskWriteCap) of the link into it and of the link into its pod; then hosts
 * rank by the same of the links into them. So pod and rack are one choice, where the pseudocode has two levels. A link
 * of unknown load takes no part. If no link into the hosts of a rack was ever reported, the rack alone decides and the
 * host is drawn.
 */
public final class Sinbad implements Policy {

    private final double writeCap;
    private final Pressure pressure;

    /**
     * The policy.
     *
     * @param diskWriteRate DiskWriteCap in bit/s; 0 for none
     */
    public Sinbad(Settings.Sinbad settings, long diskWriteRate) {
        writeCap = diskWriteRate > 0 ? diskWriteRate : NetworkView.UNLIMITED;
        pressure = new Pressure(settings, diskWriteRate);
    }

    @Override
    public int choose(NetworkView view, Request request, Candidates candidates, Scratch scratch, Explanation why) {
        Topology topology = view.topology();
        int from = candidates.firstRack();
        int end = candidates.endRack();
        long[] keys = scratch.racks(topology.rackCount());
        for (int rack = from; rack < end; rack++) {
            keys[rack] = candidates.allowsRack(rack, 1)
                    ? rackKey(expected(view, request, rack), candidates.isOneRack())
                    : Ranking.OUT;
        }
        if (why != null) {
            why.listRacks(keys, from, end, request.ties(), rack -> Explanation.Considered.byRate(
                    topology.location(rack), Double.isNaN(expected(view, request, rack)) ? Double.NaN : keys[rack],
                    "expected on the link into the rack", ""));
        }
        for (int rack; (rack = Ranking.best(keys, from, end, request.ties())) >= 0; ) {
            int host = bestHost(view, request, candidates, scratch, rack, why);
            if (host >= 0) {
                return host;
            }
            keys[rack] = Ranking.OUT;
        }
        return NONE;
    }

    /**
     * Capacity expected on the links into a rack and its pod; NaN if a load is unknown. Chunks of this request press on
     * these links, although they are not committed yet. Those in the writer's rack cross none of them.
     */
    private double expected(NetworkView view, Request request, int rack) {
        Network network = view.network();
        int downlink = network.downlink(rack);
        int podDownlink = network.podDownlink(rack);
        double intoRack = view.expectedCapacity(downlink);
        double intoPod = view.expectedCapacity(podDownlink);
        for (int placed : request.placedRacks()) {
            if (placed < 0 || placed == request.writer().rack()) {
                continue;
            }
            if (placed == rack) {
                intoRack -= pressure.of(view, request.bytes(), request.writer(), downlink, request.networkNs());
            }
            boolean samePod = podDownlink >= 0 && podDownlink == network.podDownlink(placed);
            if (samePod && network.crossesPods(request.writer(), placed)) {
                intoPod -= pressure.of(view, request.bytes(), request.writer(), podDownlink, request.networkNs());
            }
        }
        return Math.max(0.0, Math.min(intoRack, intoPod));
    }

    private long rackKey(double expected, boolean isGiven) {
        if (Double.isNaN(expected)) {
            // The rack of an earlier copy is given, and its hosts may have counters.
            return isGiven ? 0 : Ranking.OUT;
        }
        return (long) Math.min(expected, writeCap);
    }

    private int bestHost(
            NetworkView view, Request request, Candidates candidates, Scratch scratch, int rack, Explanation why) {
        Topology topology = view.topology();
        int from = topology.firstHost(rack);
        int end = topology.firstHost(rack + 1);
        long[] keys = scratch.hosts(topology.hostCount());
        for (int host = from; host < end; host++) {
            double expected = expectedInto(view, host, rack);
            boolean out = Double.isNaN(expected) || !candidates.allows(host);
            keys[host] = out ? Ranking.OUT : (long) Math.min(expected, writeCap);
        }
        if (why != null) {
            why.listHosts(keys, from, end, request.ties(), host -> Explanation.Considered.byRate(
                    topology.node(host).getHostName(), view.rackReported()[rack] ? keys[host] : Double.NaN,
                    "expected on the link into the host", ""));
        }
        return Ranking.best(keys, from, end, request.ties());
    }

    /** Capacity expected on the link into a host, 0 in a rack without counters; NaN if the host takes no part. */
    private static double expectedInto(NetworkView view, int host, int rack) {
        if (!view.network().isKnown(host)) {
            return Double.NaN;
        }
        return view.rackReported()[rack] ? view.expectedCapacity(view.network().ingress(host)) : 0.0;
    }
}
