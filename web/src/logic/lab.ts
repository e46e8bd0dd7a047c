/** Labs with circuits: cells of the matrix of racks, and rates between two views. */

import type { Lab } from '../api/types'
import { count } from './format'

/** Largest number of racks of a matrix: a browser draws its cells in a few milliseconds. */
export const MATRIX_RACKS = 64
/** Time without a new view after which a lab counts as silent, in milliseconds; a lab makes four views a second. */
export const SILENT_MS = 5000

/** A pair of racks. */
export interface Pair {
  from: number
  to: number
  queued: number
  capacity: number
  /** Share of the queue's capacity; null for a rack with itself. */
  occupancy: number | null
  /** True if a circuit is up. */
  circuit: boolean
}

/** Rates of a rack in bit/s of virtual time. */
export interface RackRates {
  packet_bps: number
  circuit_bps: number
}

/** A lab with what two views tell. */
export interface LabView {
  lab: Lab
  /** Rates of each rack; null with one view only. */
  rates: RackRates[] | null
  /** Packets dropped between the two views. */
  dropped: number
  /** Time of the last new view, in milliseconds of this machine. */
  seen: number
}

/** Pairs of the first racks, at most `MATRIX_RACKS`, in rows by source. */
export function pairs({ racks, circuits, queued_packets, capacity_packets }: Lab): Pair[][] {
  const shown = Math.min(racks, MATRIX_RACKS)
  const up = new Set(circuits.map(([from, to]) => from * racks + to))
  return Array.from({ length: shown }, (_, from) =>
    Array.from({ length: shown }, (_, to) => {
      const at = from * racks + to
      const [queued, capacity] = [queued_packets[at] ?? 0, capacity_packets[at] ?? 0]
      // A queue that was made smaller may have more packets than its capacity.
      const occupancy = from === to ? null : queued === 0 ? 0 : Math.min(1, queued / Math.max(1, capacity))
      return { from, to, queued, capacity, occupancy, circuit: up.has(at) }
    }),
  )
}

/** Describes a pair: `r0 to r3: 12 of 16 packets, circuit up`. */
export function describePair({ from, to, queued, capacity, occupancy, circuit }: Pair): string {
  if (occupancy === null) return `r${from} to itself: no queue`
  return `r${from} to r${to}: ${count(queued)} of ${count(capacity)} packets${circuit ? ', circuit up' : ''}`
}

/** Rates between two views of a lab; null if they are not two views of one lab in order. */
export function ratesBetween(before: Lab, now: Lab): RackRates[] | null {
  const elapsed = now.at_s - before.at_s
  if (elapsed <= 0 || before.racks !== now.racks) return null
  const rate = (after: number[], former: number[], rack: number) =>
    (8 * ((after[rack] ?? 0) - (former[rack] ?? 0))) / elapsed
  const rates = Array.from({ length: now.racks }, (_, rack) => ({
    packet_bps: rate(now.packet_bytes, before.packet_bytes, rack),
    circuit_bps: rate(now.circuit_bytes, before.circuit_bytes, rack),
  }))
  // Bytes that become fewer are those of a new lab of the same name.
  return rates.some(({ packet_bps, circuit_bps }) => packet_bps < 0 || circuit_bps < 0) ? null : rates
}

/** Adds the labs of a response to earlier views. A view that is not new keeps the rates. */
export function follow(earlier: LabView[], labs: Lab[], now: number): LabView[] {
  const known = new Map(earlier.map((view) => [view.lab.name, view]))
  return labs.map((lab) => {
    const before = known.get(lab.name)
    if (before?.lab.at_s === lab.at_s) return before
    const rates = before ? ratesBetween(before.lab, lab) : null
    const dropped = before && rates ? lab.dropped_packets - before.lab.dropped_packets : 0
    return { lab, rates, dropped, seen: now }
  })
}

/** Highest sum of a rack's two rates, and at least 1, so that bars have a scale. */
export function highest(rates: RackRates[]): number {
  return Math.max(1, ...rates.map(({ packet_bps, circuit_bps }) => packet_bps + circuit_bps))
}

/** Layout of the matrix: width of a cell, number of racks from one label to the next, and width of the row labels, in pixels. */
export function matrixLayout(racks: number, width: number): { size: number; every: number; label: number } {
  const label = racks > 10 ? 34 : 28
  const size = Math.max(2, Math.min(52, Math.floor((width - label) / Math.max(1, racks))))
  return { size, every: Math.max(1, Math.ceil(26 / size)), label }
}
