package dev.leeward.hdfs.policies;

import dev.leeward.hdfs.topology.Network;
import dev.leeward.hdfs.topology.Sender;
import dev.leeward.hdfs.topology.Topology;

/**
 * Policy {@code leeward}: the best rate along the whole chain, by telemetry and every block that is placed and not yet
 * visible.
 *
 * <p>A rack ranks by the rate that the block gets on the links from the source of the bytes to a host of the rack: what
 * other traffic leaves, or a fair share beside pending blocks. Link rate above {@code headroom} times the rate of a disk
 * has no value. Rates are compared in coarse steps, so most racks are equal most of the time; among equal racks the
 * emptier wins, then the class of uplink (as in {@code ccp}), then a hash.
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
    private static final int RACKS_EXAMINED = 5;

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
        /** Rate of the block from the source to the switch of its rack, to other racks of its pod, and to other pods. */
        private final double outOfHost;
        private final double outOfRack;
        private final double outOfPod;
        private final double mostRate;
        private final double stepsPerRate;
        private final long radix = (long) (headroom * RATE_STEPS) + 1;

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
                why.listRacks(keys, from, end, request.ties(), rack -> new Explanation.Considered(
                        topology.location(rack), Math.min(out(rack), own(rack)),
                        "bit/s for the block from the source to the rack"));
            }
            int bestHost = NONE;
            long bestKey = Ranking.OUT;
            for (int examined = 0; examined < RACKS_EXAMINED; ) {
                int rack = Ranking.best(keys, from, end, request.ties());
                if (rack < 0 || bestKey >= keys[rack]) {
                    break;
                }
                keys[rack] = Ranking.OUT;
                int host = examine(rack);
                if (host >= 0) {
                    examined++;
                    long key = rackKey(rack, worstRate);
                    if (key > bestKey) {
                        bestKey = key;
                        bestHost = host;
                    }
                }
            }
            return bestHost;
        }

        /** Rate of the last of the hosts that {@link #examine} took. */
        private double worstRate;

        /** The best host of a rack; sets {@link #worstRate} to that of the last of the copies that go there. */
        private int examine(int rack) {
            int from = topology.firstHost(rack);
            int end = topology.firstHost(rack + 1);
            long[] keys = scratch.hosts(topology.hostCount());
            boolean anyReported = false;
            for (int host = from; host < end; host++) {
                anyReported |= view.wasReported(network.ingress(host));
            }
            for (int host = from; host < end; host++) {
                double rate = hostRate(host, anyReported);
                keys[host] = Double.isNaN(rate) ? Ranking.OUT : hostKey(host, rate);
            }
            int chosen = NONE;
            for (int taken = 0; taken < request.together(); ) {
                int host = Ranking.best(keys, from, end, request.ties());
                if (host < 0) {
                    return NONE;
                }
                if (!candidates.allows(host)) {
                    keys[host] = Ranking.OUT;
                    continue;
                }
                if (chosen < 0) {
                    chosen = host;
                    if (why != null) {
                        boolean reported = anyReported;
                        why.listHosts(keys, from, end, request.ties(), number -> new Explanation.Considered(
                                topology.node(number).getHostName(), hostRate(number, reported),
                                "bit/s for the block into the host and its disks"));
                    }
                }
                worstRate = hostRate(host, anyReported);
                keys[host] = Ranking.OUT;
                taken++;
            }
            return chosen;
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
        private double hostRate(int host, boolean anyReported) {
            if (!network.isKnown(host)) {
                return Double.NaN;
            }
            double link = view.share(network.ingress(host), topRate);
            if (Double.isNaN(link)) {
                if (anyReported) {
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
