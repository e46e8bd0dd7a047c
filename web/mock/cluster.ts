/** Seconds between two steps. */
export const INTERVAL = 10
/** Utilization from which a link is hot. */
export const LIMIT = 0.75
/** Capacity of a rack's uplink and of its downlink. */
export const RACK_BPS = 40e9

/** Uplink (0) or downlink (1) of a rack; egress or ingress of a host. */
export type Way = 0 | 1
