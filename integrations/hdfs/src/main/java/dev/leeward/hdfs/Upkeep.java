package dev.leeward.hdfs;

import java.lang.ref.WeakReference;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The daemon thread of an engine. It reads the DataNodes again when they change, so that no handler of the NameNode
 * does. HDFS never closes a placement policy, so the thread ends by itself when nothing refers to the engine any more.
 */
final class Upkeep implements Runnable {

    private static final Logger LOG = LoggerFactory.getLogger(Upkeep.class);
    /** Longest time in ms for which decisions lack a DataNode that joined, beside that of a read. */
    private static final long PAUSE_MS = 100;

    private final WeakReference<Engine> engine;

    private Upkeep(Engine engine) {
        this.engine = new WeakReference<>(engine);
    }

    /** Starts the thread of an engine. */
    static void start(Engine engine, String name) {
        Thread thread = new Thread(new Upkeep(engine), name);
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public void run() {
        try {
            while (keepUp()) {
                Thread.sleep(PAUSE_MS);
            }
        } catch (InterruptedException e) {
            LOG.debug("interrupted", e);
        }
    }

    /** Returns false if the engine is gone. */
    private boolean keepUp() {
        Engine current = engine.get();
        if (current != null) {
            current.keepUp(System.nanoTime());
        }
        return current != null;
    }
}
