package dev.leeward.hdfs.policies;

import dev.leeward.hdfs.topology.Network;
import dev.leeward.hdfs.topology.Sender;
import dev.leeward.hdfs.topology.Topology;

/**
 * Policy {@code leeward}: the best rate along the whole chain, by telemetry and every block that is placed and not yet
 * visible.
 *
 * <p>A rack ranks by the rate that the block gets on the links from the source of the bytes to a host of the rack: what
 * other traffic leaves, or a fair share beside pending blocks. Link rate above {@code headroom} times the rate of a
 * disk has no value. Rates are compared in coarse steps, so most racks are equal most of the time; among equal racks
 * the emptier wins, then the class of uplink (as in {@code ccp}), then a hash.
 *
 * <p>The rate of the chain alone is not enough. All candidates share the links out of the source's host, rack and pod.
 * If those are the bottleneck, for example because the writers fill their own links, all racks have the same rate, and
 * the comparison would fall through to the emptier rack. A rack without writers is the emptiest of all, also if its
 * link is the hottest. A bottleneck that all candidates share says nothing, so the rate on the candidate's own part of
 * the chain decides before storage does.
 */
public final class Leeward implements Policy {

    /** Number of steps from 0 to the highest possible rate. */
    private static final double RATE_STEPS = 8.0;
    /** Largest number of racks in which hosts are examined. */
    static final int RACKS_EXAMINED = 5;

    private final double diskRate;
    private final double headroom;

    /**
     * The policy.
     *
     * @param diskWriteRate rate in bit/s of an idle disk; 0 for no limit
     * @param headroom multiple of a disk's free rate above which link rate has no value
     */
    public Leeward(long diskWriteRate, double headroom) {
        this.diskRate = diskWriteRate > 0 ? diskWriteRate : NetworkView.UNLIMITED;
        this.headroom = headroom;
    }

    @Override
    public int choose(NetworkView view, Request request, Candidates candidates, Scratch scratch, Explanation why) {
        return new Search(view, request, candidates, scratch, why).choose();
    }

    /** One choice. */
    private final class Search {
        private final NetworkView view;
        private final Topology topology;
        private final Network network;
        private final Request request;
        private final Candidates candidates;
        private final Scratch scratch;
        private final Explanation why;
        private final Sender source;
        private final double topRate;
        /** Rate of the block from the source to the switch of its rack, to the racks of its pod, and to other pods. */
        private final double outOfHost;
        private final double outOfRack;
        private final double outOfPod;
        private final double mostRate;
        private final double stepsPerRate;
        private final long radix = (long) (headroom * RATE_STEPS) + 1;
        private int bestHost = NONE;
        private long bestKey = Ranking.OUT;

        Search(NetworkView view, Request request, Candidates candidates, Scratch scratch, Explanation why) {
            this.view = view;
            this.topology = view.topology();
            this.network = view.network();
            this.request = request;
            this.candidates = candidates;
            this.scratch = scratch;
            this.why = why;
            source = request.source();
            topRate = topRate();
            outOfHost = view.shareOrUnlimited(source.egress(), topRate);
            outOfRack = Math.min(outOfHost, view.shareOrUnlimited(source.uplink(), topRate));
            outOfPod = Math.min(outOfRack, view.shareOrUnlimited(source.podUplink(), topRate));
            mostRate = headroom * topRate;
            stepsPerRate = RATE_STEPS / topRate;
        }

        /** Highest possible rate of the block: that of a disk, or of the source's own link, or of the widest link. */
        private double topRate() {
            double link = source.egress() >= 0 ? view.capacity(source.egress()) : view.widestIngress();
            double top = Math.min(diskRate, link);
            return top >= NetworkView.UNLIMITED ? 1e9 : Math.max(top, 1.0);
        }

        int choose() {
            int from = candidates.firstRack();
            int end = candidates.endRack();
            long[] keys = scratch.racks(topology.rackCount());
            for (int rack = from; rack < end; rack++) {
                keys[rack] = candidates.allowsRack(rack, request.together())
                        ? rackKey(rack, NetworkView.UNLIMITED)
                        : Ranking.OUT;
            }
            if (why != null) {
                why.listRacks(keys, from, end, request.ties(), rack -> Explanation.Considered.byRate(
                        topology.location(rack), Math.min(out(rack), own(rack)),
                        "for the block from the source to the rack", detail(rack)));
            }
            search(keys, from, end);
            if (why != null && bestHost >= 0) {
                explainHosts(topology.rackOf(bestHost));
            }
            return bestHost;
        }

        /** Criteria among racks of the same rate along the chain, in their order. */
        private String detail(int rack) {
            return "own links " + Explanation.rate(own(rack)) + ", " + Explanation.fill(view.storage().rackFill(rack))
                    + ", uplink class " + view.classes().of(rack);
        }

        /** Examines the best racks by their links, until no other rack can be better than {@link #bestHost}. */
        private void search(long[] keys, int from, int end) {
            Best best = scratch.bestRacks();
            int examined = 0;
            while (examined < RACKS_EXAMINED) {
                best.find(keys, from, end, request.ties());
                if (best.count() == 0) {
                    return;
                }
                for (int place = 0; place < best.count() && examined < RACKS_EXAMINED; place++) {
                    int rack = best.item(place);
                    if (bestKey >= keys[rack]) {
                        return;
                    }
                    keys[rack] = Ranking.OUT;
                    examined += examine(rack) ? 1 : 0;
                }
            }
        }

        /**
         * Examines the hosts of a rack. Most racks lose by their rates: first by the widest link of any host, then by
         * those of their own hosts. {@link Candidates#allows} comes last, because it reads many objects of HDFS.
         *
         * @return false if the rack lacks allowed hosts
         */
        private boolean examine(int rack) {
            if (bestKey >= rackKey(rack, view.widestIngress()) || bestKey >= rackKey(rack, rankHosts(rack))) {
                return true;
            }
            long[] keys = scratch.hosts(topology.hostCount());
            int first = nextAllowed(keys, rack);
            int last = first;
            for (int taken = 1; taken < request.together() && last >= 0; taken++) {
                keys[last] = Ranking.OUT;
                last = nextAllowed(keys, rack);
            }
            if (last < 0) {
                return false;
            }
            // The worst of the copies that go there counts.
            long key = rackKey(rack, hostRate(last));
            if (key > bestKey) {
                bestKey = key;
                bestHost = first;
            }
            return true;
        }

        /** The best allowed host of a rack by its key; takes out those before it. */
        private int nextAllowed(long[] keys, int rack) {
            while (true) {
                int host = Ranking.best(keys, topology.firstHost(rack), topology.firstHost(rack + 1), request.ties());
                if (host < 0 || candidates.allows(host)) {
                    return host;
                }
                keys[host] = Ranking.OUT;
            }
        }

        /** Sets the keys of a rack's hosts. Returns the highest of their rates; 0 if no load is known. */
        private double rankHosts(int rack) {
            long[] keys = scratch.hosts(topology.hostCount());
            double highest = 0.0;
            int end = topology.firstHost(rack + 1);
            for (int host = topology.firstHost(rack); host < end; host++) {
                double rate = hostRate(host);
                keys[host] = Double.isNaN(rate) ? Ranking.OUT : hostKey(host, rate);
                highest = rate > highest ? rate : highest;
            }
            return highest;
        }

        private void explainHosts(int rack) {
            rankHosts(rack);
            long[] keys = scratch.hosts(topology.hostCount());
            int from = topology.firstHost(rack);
            int end = topology.firstHost(rack + 1);
            for (int host = from; host < end; host++) {
                if (!candidates.allows(host)) {
                    keys[host] = Ranking.OUT;
                }
            }
            why.listHosts(keys, from, end, request.ties(), host -> Explanation.Considered.byRate(
                    topology.node(host).getHostName(), hostRate(host),
                    "for the block into the host and its disks",
                    Explanation.fill(view.storage().hostFill(host))));
        }

        /** Rate of the block from the source to the rack's own part of the chain. */
        private double out(int rack) {
            if (rack == source.rack()) {
                return outOfHost;
            }
            return network.crossesPods(source, rack) ? outOfPod : outOfRack;
        }

        /** Rate of the block on the links into a rack; NaN if its load is unknown. */
        private double own(int rack) {
            if (rack == source.rack()) {
                return NetworkView.UNLIMITED;
            }
            double share = view.share(network.downlink(rack), topRate);
            return network.crossesPods(source, rack)
                    ? Math.min(share, view.shareOrUnlimited(network.podDownlink(rack), topRate))
                    : share;
        }

        private long rackKey(int rack, double hostRate) {
            double own = own(rack);
            if (Double.isNaN(own)) {
                if (!candidates.isOneRack()) {
                    return Ranking.OUT;
                }
                own = NetworkView.UNLIMITED;
            }
            own = Math.min(own, hostRate);
            long rates = steps(Math.min(out(rack), own)) * radix + steps(own);
            return rates * EqualRates.RANKS + view.equalRates().ofRack(rack);
        }

        private long hostKey(int host, double rate) {
            return steps(rate) * EqualRates.RANKS + view.equalRates().ofHost(host);
        }

        /** Rate of the block into a host and at its disks, by which it ranks; NaN if its load is unknown. */
        private double hostRate(int host) {
            if (!network.isKnown(host)) {
                return Double.NaN;
            }
            double link = view.share(network.ingress(host), topRate);
            if (Double.isNaN(link)) {
                if (view.rackReported()[topology.rackOf(host)]) {
                    return Double.NaN;
                }
                // No host of the rack has a counter.
                link = view.capacity(network.ingress(host));
            }
            return Math.min(link, headroom * diskLeft(host));
        }

        /** Rate left at the disks of a host; HDFS takes them in turn. */
        private double diskLeft(int host) {
            int[] disks = network.disks(host);
            if (disks == null || diskRate >= NetworkView.UNLIMITED) {
                return diskRate;
            }
            double free = 0.0;
            for (int disk : disks) {
                double share = view.snapshot().deviceFree(disk);
                free += Double.isNaN(share) ? 1.0 : share;
            }
            return diskRate * free / disks.length;
        }

        private long steps(double rate) {
            return (long) (Math.min(rate, mostRate) * stepsPerRate);
        }
    }
}
