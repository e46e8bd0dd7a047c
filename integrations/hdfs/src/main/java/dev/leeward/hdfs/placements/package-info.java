/**
 * Own placements: counted locally until the controller's snapshot or telemetry shows them, and reported to the
 * controller by a queue that drops and never blocks.
 */
package dev.leeward.hdfs.placements;
