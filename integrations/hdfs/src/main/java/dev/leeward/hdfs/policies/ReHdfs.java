package dev.leeward.hdfs.policies;

import dev.leeward.hdfs.settings.Settings;
import dev.leeward.hdfs.topology.Topology;

/**
 * Policy {@code rehdfs}: copies of a writer in rack i go to rack (i + k) mod N, so that few pairs of racks communicate
 * and a circuit can serve them (Etalon, section 6). With several k, each holds for a period. Racks are in the natural
 * order of their locations. A further rack of the same block is the one after the last. The first copy of a writer
 * outside the racks of DataNodes has no rack to start from, and goes to any host, as by HDFS's own draw.
 */
public final class ReHdfs implements Policy {

    private final Settings.ReHdfs settings;

    /** The policy. */
    public ReHdfs(Settings.ReHdfs settings) {
        this.settings = settings;
    }

    @Override
    public int choose(NetworkView view, Request request, Candidates candidates, Scratch scratch, Explanation why) {
        Topology topology = view.topology();
        int racks = topology.rackCount();
        int[] placed = request.placedRacks();
        long start;
        String origin = " of the schedule";
        if (candidates.isOneRack()) {
            start = candidates.firstRack();
        } else if (placed.length > 1 || (placed.length == 1 && request.writer().rack() < 0)) {
            int last = placed[placed.length - 1];
            start = placed.length == 1 ? (long) last + offset(request.nowNs()) : last + 1L;
        } else if (request.writer().rack() >= 0) {
            start = request.writer().rack() + (long) offset(request.nowNs());
        } else {
            start = topology.rackOf(request.ties().draw(0, topology.hostCount()));
            origin = ", which was drawn";
        }
        for (int step = 0; step < (candidates.isOneRack() ? 1 : racks); step++) {
            int rack = (int) Math.floorMod(start + step, (long) racks);
            if (!candidates.allowsRack(rack, 1)) {
                continue;
            }
            int first = topology.firstHost(rack);
            int host = Draw.host(candidates, first, topology.firstHost(rack + 1) - first, request.ties());
            if (host >= 0) {
                if (why != null) {
                    why.setNote("rack " + topology.location(rack) + " is " + step + " after rack "
                            + topology.location((int) Math.floorMod(start, (long) racks)) + origin);
                }
                return host;
            }
        }
        return NONE;
    }

    /** k at a time. */
    private int offset(long nowNs) {
        long turn = nowNs / 1_000_000 / settings.periodMs();
        return settings.offsets().get((int) Math.floorMod(turn, (long) settings.offsets().size()));
    }
}
