/**
 * Leeward inside a NameNode. {@link dev.leeward.hdfs.Engine} is the whole behind the two thin policies in HDFS's own
 * package: it holds the view of the network, decides, counts, explains and reports.
 *
 * <pre>
 * controller --snapshots--> snapshot --> Engine (view) --> policies --host--> BlockPlacementPolicy of HDFS
 *      ^                                     |
 *      +------------ placements <------------+
 * </pre>
 */
package dev.leeward.hdfs;
