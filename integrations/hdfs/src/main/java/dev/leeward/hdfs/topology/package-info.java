/**
 * The DataNodes of HDFS in their racks, and their join with the rows of a snapshot. Both are immutable and are built
 * again when they change, so decisions read plain arrays.
 */
package dev.leeward.hdfs.topology;
