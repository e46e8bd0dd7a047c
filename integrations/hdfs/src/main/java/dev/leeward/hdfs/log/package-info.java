/** Limits on what reaches the log of the NameNode. */
package dev.leeward.hdfs.log;
