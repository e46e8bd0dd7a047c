/**
 * The policies: pure functions from the network, a request and the hosts that HDFS allows to one host. They only order
 * candidates. HDFS checks each choice (load, stale, decommissioning, storage, racks) and asks again without it if a
 * check fails.
 */
package dev.leeward.hdfs.policies;
