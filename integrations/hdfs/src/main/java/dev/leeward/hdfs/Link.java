package dev.leeward.hdfs;

import dev.leeward.hdfs.placements.Placements;
import dev.leeward.hdfs.placements.Reporter;
import dev.leeward.hdfs.settings.Settings;
import dev.leeward.hdfs.snapshot.Controller;
import dev.leeward.hdfs.snapshot.ControllerException;
import dev.leeward.hdfs.snapshot.Follower;
import dev.leeward.hdfs.snapshot.SnapshotFeed;
import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.Map;

/**
 * The connection of a process to a controller: one daemon for all policies with the same settings. HDFS creates
 * policies in several places and closes none, so the daemons end when no policy refers to the link any more.
 */
final class Link {

    /** Factor from milliseconds to sequences: a NameNode may place a million blocks a second, and restart. */
    private static final long SEQUENCES_PER_MS = 1000;

    private static final Map<Key, WeakReference<Link>> LINKS = new HashMap<>();

    /** Settings that two policies must share to share a link. */
    private record Key(Settings.Connection connection, Settings.Report report) {
    }

    private final SnapshotFeed feed;
    private final Controller controller;
    private final Placements placements;
    private final Reporter reporter;

    private Link(Key key) throws ControllerException {
        controller = new Controller(key.connection());
        feed = new SnapshotFeed(key.connection().maxAgeMs());
        placements = new Placements(key.connection().client());
        // The wall clock makes sequences rise over restarts; they stay below 2^53.
        reporter = new Reporter(key.report().queue(), System.currentTimeMillis() * SEQUENCES_PER_MS);
        if (key.report().enabled()) {
            reporter.start(controller);
        }
        // The daemon must not refer to the link, which would then never end.
        Placements placed = placements;
        Reporter reports = reporter;
        String client = key.connection().client();
        Follower.start(controller, feed, snapshot -> {
            placed.onSnapshot(snapshot);
            reports.passOver(snapshot.counted(client));
        });
    }

    /** The link for these settings. */
    static synchronized Link of(Settings settings) throws ControllerException {
        LINKS.values().removeIf(reference -> reference.get() == null);
        Key key = new Key(settings.connection(), settings.report());
        WeakReference<Link> reference = LINKS.get(key);
        Link link = reference == null ? null : reference.get();
        if (link == null) {
            link = new Link(key);
            LINKS.put(key, new WeakReference<>(link));
        }
        return link;
    }

    SnapshotFeed feed() {
        return feed;
    }

    Controller controller() {
        return controller;
    }

    Placements placements() {
        return placements;
    }

    Reporter reporter() {
        return reporter;
    }
}
