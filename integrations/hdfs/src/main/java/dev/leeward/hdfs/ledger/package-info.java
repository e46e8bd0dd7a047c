/**
 * The ledger in Java: the known load of every link, and the numbers that policies read from it.
 *
 * <p>The controller's ledger is written in Rust. A client that decides locally needs the same numbers, so this package
 * repeats it and passes the same conformance vectors ({@code docs/reference/ledger-vectors.md}). The placement policy
 * reads the controller's snapshot and adds its own placements with the functions of {@link Numbers}, {@link Share} and
 * {@link MissedReports}. {@link Ledger} is the whole, for Java programs without a controller.
 *
 * <p>All code here is pure: the caller gives the time, in nanoseconds since any start, and no method does I/O. Rates
 * are bits per second.
 */
package dev.leeward.hdfs.ledger;
