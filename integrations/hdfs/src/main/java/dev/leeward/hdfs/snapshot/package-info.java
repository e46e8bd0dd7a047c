/**
 * The state of the network as the controller knows it: one daemon per process follows {@code GET /v1/snapshot} and
 * publishes immutable snapshots. Placement decisions read the last one and never wait.
 */
package dev.leeward.hdfs.snapshot;
