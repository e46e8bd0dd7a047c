package dev.leeward.hdfs.policies;

import dev.leeward.hdfs.settings.Settings;
import dev.leeward.hdfs.topology.Topology;
import java.util.Arrays;

/**
 * Policy {@code ccp}: racks whose uplink is large for their storage come first (Hotspots, sections 4.3 and 5.2). It
 * uses the capacities of links and no load.
 *
 * <p>Hosts are drawn, and the best of their racks is taken: first racks that are not much fuller than the average, then
 * by class. Any host of the rack follows, or with {@code within: free} the emptiest.
 */
public final class Ccp implements Policy {

    private final Settings.Ccp settings;

    /** The policy. */
    public Ccp(Settings.Ccp settings) {
        this.settings = settings;
    }

    @Override
    public int choose(NetworkView view, Request request, Candidates candidates, Scratch scratch, Explanation why) {
        if (!view.classes().areKnown()) {
            return NONE;
        }
        Topology topology = view.topology();
        int from = candidates.firstRack();
        int end = candidates.endRack();
        if (candidates.isOneRack()) {
            return candidates.allowsRack(from, 1) ? host(view, candidates, from, request.ties()) : NONE;
        }
        long[] keys = scratch.racks(topology.rackCount());
        Arrays.fill(keys, from, end, Ranking.OUT);
        for (int draw = 0; draw < settings.sample(); draw++) {
            int rack = topology.rackOf(request.ties().draw(draw, topology.hostCount()));
            if (rack >= from && rack < end && keys[rack] == Ranking.OUT && candidates.allowsRack(rack, 1)) {
                keys[rack] = key(view, rack);
            }
        }
        int host = best(view, request, candidates, keys, why);
        if (host >= 0) {
            return host;
        }
        // None of the drawn racks has an allowed host.
        for (int rack = from; rack < end; rack++) {
            keys[rack] = candidates.allowsRack(rack, 1) ? key(view, rack) : Ranking.OUT;
        }
        return best(view, request, candidates, keys, why);
    }

    private int best(NetworkView view, Request request, Candidates candidates, long[] keys, Explanation why) {
        Topology topology = view.topology();
        int from = candidates.firstRack();
        int end = candidates.endRack();
        if (why != null) {
            why.listRacks(keys, from, end, request.ties(), rack -> new Explanation.Considered(
                    topology.location(rack), view.classes().of(rack),
                    "class of the uplink: 2 large for the storage, 1 as the guideline, 0 small",
                    Explanation.fill(view.storage().rackFill(rack))));
        }
        for (int rack; (rack = Ranking.best(keys, from, end, request.ties())) >= 0; ) {
            int host = host(view, candidates, rack, request.ties());
            if (host >= 0) {
                return host;
            }
            keys[rack] = Ranking.OUT;
        }
        return NONE;
    }

    /** Key of a rack: not overfull, then its class, then its free space if the settings say so. */
    private long key(NetworkView view, int rack) {
        boolean full = view.storage().rackFill(rack) - view.storage().meanFill() > settings.balance();
        long order = (full ? 0 : 4) + view.classes().of(rack);
        long free = settings.byFreeSpace() ? view.storage().rackFree(rack) >> 10 : 0;
        return (order << 56) + Math.min(free, (1L << 56) - 1);
    }

    /** A host of a rack: any allowed one, or the emptiest. */
    private int host(NetworkView view, Candidates candidates, int rack, Ties ties) {
        Topology topology = view.topology();
        int first = topology.firstHost(rack);
        int count = topology.firstHost(rack + 1) - first;
        if (settings.byFreeSpace()) {
            int best = NONE;
            for (int host = first; host < first + count; host++) {
                if (candidates.allows(host)
                        && (best < 0 || topology.node(host).getRemaining() > topology.node(best).getRemaining())) {
                    best = host;
                }
            }
            return best;
        }
        return Draw.host(candidates, first, count, ties);
    }
}
