package dev.leeward.hdfs.placements;

import dev.leeward.hdfs.log.OncePerMinute;
import dev.leeward.hdfs.snapshot.Controller;
import dev.leeward.hdfs.snapshot.ControllerException;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reports placements to the controller in a daemon thread: one request with all that wait, up to a limit. If the queue
 * is full, or a request fails, the placements are dropped and counted: a report is worth less than the time of a
 * handler.
 */
public final class Reporter {

    private static final Logger LOG = LoggerFactory.getLogger(Reporter.class);
    /** Largest number of commitments of a request of the API. */
    private static final int MOST_COMMITMENTS = 100;
    /** Pause after a failed request, in ms. The queue then fills, and drops. */
    private static final long PAUSE_MS = 500;
    /** Largest sequence of the API, at which all numbers of JSON are exact. */
    private static final long MOST_SEQUENCE = (1L << 53) - 1;

    private final BlockingQueue<Report> queue;
    private final AtomicLong sequences;
    private final LongAdder accepted = new LongAdder();
    private final LongAdder rejected = new LongAdder();
    private final LongAdder dropped = new LongAdder();

    /**
     * A reporter.
     *
     * @param most largest number of placements that wait
     * @param firstSequence number of the first request; it must be above those of earlier runs
     */
    public Reporter(int most, long firstSequence) {
        queue = new ArrayBlockingQueue<>(most);
        sequences = new AtomicLong(firstSequence);
    }

    /** Starts the thread. It ends when nothing refers to the reporter any more. */
    public void start(Controller controller) {
        Thread thread = new Thread(new Sender(controller, this), "leeward-reports " + controller.address());
        thread.setDaemon(true);
        thread.start();
    }

    /** True if the queue has room. A placement without room is dropped and counted before its report is made. */
    public boolean hasRoom() {
        boolean room = queue.remainingCapacity() > 0;
        if (!room) {
            dropped.increment();
        }
        return room;
    }

    /** Queues a placement. Returns at once; false if it was dropped. */
    public boolean offer(Report report) {
        // Marked first: the report may be on its way before this method returns.
        report.placement().setAwaited(true);
        boolean queued = queue.offer(report);
        if (!queued) {
            report.placement().setAwaited(false);
            dropped.increment();
        }
        return queued;
    }

    /**
     * Makes later sequences higher than the last one that the controller counts. Otherwise it would reject all reports
     * after a restart with a clock that was set back.
     */
    public void passOver(long counted) {
        if (counted < MOST_SEQUENCE) {
            sequences.accumulateAndGet(counted + 1, Math::max);
        }
    }

    /** Number of placements that wait. */
    public int waiting() {
        return queue.size();
    }

    /** Number of placements that the controller accepted. */
    public long acceptedCount() {
        return accepted.sum();
    }

    /** Number of placements that the controller rejected, or that were lost on the way. */
    public long rejectedCount() {
        return rejected.sum();
    }

    /** Number of placements that found the queue full. */
    public long droppedCount() {
        return dropped.sum();
    }

    /** The thread's work. It refers to the reporter weakly. */
    private static final class Sender implements Runnable {
        private final Controller controller;
        private final BlockingQueue<Report> queue;
        private final AtomicLong sequences;
        private final WeakReference<Reporter> reporter;
        private final OncePerMinute warnings = new OncePerMinute();

        Sender(Controller controller, Reporter reporter) {
            this.controller = controller;
            this.queue = reporter.queue;
            this.sequences = reporter.sequences;
            this.reporter = new WeakReference<>(reporter);
        }

        @Override
        public void run() {
            List<Report> reports = new ArrayList<>();
            try {
                while (reporter.get() != null) {
                    Report first = queue.poll(1, TimeUnit.SECONDS);
                    if (first != null) {
                        reports.add(first);
                        queue.drainTo(reports, MOST_COMMITMENTS - 1);
                        sendAll(reports);
                        reports.clear();
                    }
                }
            } catch (InterruptedException e) {
                LOG.debug("interrupted", e);
            }
        }

        /** Sends reports, in as few requests as the limit allows. */
        private void sendAll(List<Report> reports) throws InterruptedException {
            int begin = 0;
            int commitments = 0;
            for (int i = 0; i < reports.size(); i++) {
                int more = reports.get(i).commitments().size();
                if (i > begin && commitments + more > MOST_COMMITMENTS) {
                    send(reports.subList(begin, i));
                    begin = i;
                    commitments = 0;
                }
                commitments += more;
            }
            send(reports.subList(begin, reports.size()));
        }

        private void send(List<Report> reports) throws InterruptedException {
            int[] statuses = null;
            try {
                statuses = controller.commit(Report.body(reports, sequences));
            } catch (ControllerException e) {
                warn("placements were not reported: " + e.getMessage(), null);
                Thread.sleep(PAUSE_MS);
            } catch (RuntimeException | Error e) {
                // No fault of this program may end the thread: nothing would be reported until the next start.
                warn("placements were not reported", e);
            }
            int from = 0;
            for (Report report : reports) {
                int until = from + report.commitments().size();
                note(report, statuses, from, until);
                from = until;
            }
        }

        /** Notes what the controller did with the commitments of a report, whose statuses are at these places. */
        private void note(Report report, int[] statuses, int from, int until) {
            boolean taken = statuses != null && until <= statuses.length;
            for (int i = from; taken && i < until; i++) {
                taken = statuses[i] == 200 || statuses[i] == 201;
                if (!taken) {
                    warn("the controller rejected a placement with status " + statuses[i], null);
                }
            }
            if (!taken) {
                report.placement().withdraw();
            }
            Reporter target = reporter.get();
            if (target != null) {
                (taken ? target.accepted : target.rejected).increment();
            }
        }

        private void warn(String message, Throwable fault) {
            if (warnings.take(System.nanoTime())) {
                LOG.warn("Leeward: {}; the metric ReportsRejected counts all such placements", message, fault);
            }
        }
    }
}
