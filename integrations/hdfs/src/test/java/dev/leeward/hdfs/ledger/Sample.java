package dev.leeward.hdfs.ledger;

/**
 * The mean load of a link over a window of time.
 *
 * @param resource number of the link
 * @param from start of the window, in ns
 * @param until end of the window, in ns; the sample may arrive later
 * @param load load in bit/s
 * @param guaranteed load of guaranteed classes in bit/s; null where counters do not separate classes
 */
public record Sample(int resource, long from, long until, long load, Long guaranteed) {
}
