package dev.leeward.hdfs.ledger;

import java.util.List;

/**
 * A fact about placed or promised work. An entry never describes a load: each reader derives its own number.
 *
 * @param owner owner of the work
 * @param hops the links that count the entry
 * @param demand demand of the work
 * @param relieves whether the work leaves, as at the source of a migration
 * @param fade rule by which the entry stops being pending
 * @param starts start of the work in ns, if known at commit; otherwise null
 */
public record Entry(Owner owner, List<Hop> hops, Demand demand, boolean relieves, Fade fade, Long starts) {

    /**
     * Owner of an entry.
     *
     * @param kind kind of the owner, such as {@code job}
     * @param id number among the owners of its kind
     */
    public record Owner(String kind, long id) {
    }

    /**
     * A link with the work of an entry on it.
     *
     * @param resource number of the link
     * @param work bits on the link for each byte of payload
     */
    public record Hop(int resource, double work) {
    }

    /** Demand of a piece of work. */
    public sealed interface Demand {
        /**
         * Transfers that use the rate they get, such as the write of a block.
         *
         * @param bytes bytes to transfer
         * @param flows number of flows
         * @param capBps largest usable rate in bit/s, or null
         */
        record Elastic(long bytes, int flows, Long capBps) implements Demand {
        }

        /**
         * A task or service that sends at some rate.
         *
         * @param meanBps expected measured rate
         * @param peakBps rate that placement must find free
         */
        record Stream(long meanBps, long peakBps) implements Demand {
        }

        /**
         * A guaranteed workload.
         *
         * @param meanBps expected measured rate
         * @param rateBps reserved rate
         */
        record Envelope(long meanBps, long rateBps) implements Demand {
        }
    }

    /** Rule by which an entry stops being pending. */
    public sealed interface Fade {
        /** Dropped at the first report whose window ends after the commit (Sinbad, section 6.2). */
        record AtNextWindow() implements Fade {
        }

        /** Fades from its start at the rate at which the estimator takes in the load. */
        record WithEstimator() implements Fade {
        }

        /**
         * As {@link WithEstimator}, but dropped if the work has not started in time.
         *
         * @param ttlNs time after the commit, in ns
         */
        record After(long ttlNs) implements Fade {
        }

        /** Stays at its full rate until released. */
        record Held() implements Fade {
        }
    }

    boolean isPromised() {
        return demand instanceof Demand.Envelope;
    }

    boolean fades() {
        return fade instanceof Fade.WithEstimator || fade instanceof Fade.After;
    }

    /** Known start, if the entry fades from then on; otherwise null. */
    Long fadesFrom() {
        return fades() ? starts : null;
    }
}
