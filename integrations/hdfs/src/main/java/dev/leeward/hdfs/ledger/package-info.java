/**
 * The numbers of the ledger that policies compute themselves: Sinbad's expected capacity, the pressure of placements,
 * and the effect of missing reports.
 *
 * <p>The controller's ledger is written in Rust. A policy reads its snapshot, and adds own placements by these
 * functions. The tests have a whole ledger in Java, which uses them too and passes the conformance vectors ({@code
 * docs/reference/ledger-vectors.md}).
 *
 * <p>All code here is pure: the caller gives the time, in nanoseconds since any start, and no method does I/O. Rates
 * are bits per second.
 */
package dev.leeward.hdfs.ledger;
