import type { Lab } from '../src/api/types'
import { INTERVAL } from './cluster.ts'
import { random } from './random.ts'

/** Real seconds for each virtual one, for each rack, and the capacities of a queue without and with a circuit. */
const DILATION = 30
const [SMALL, BIG] = [16, 128]
/** First step of the lab: it came up some minutes before the first view. */
const BEGAN = 690

/** A lab of some racks at a step: circuits rotate, and some pairs of racks send much more than others. */
export function lab(racks: number, seed: number, step: number): Lab {
  const dilation = DILATION * racks
  const step_s = INTERVAL / dilation
  const next = random(seed, 9, step)
  const distance = 1 + (step % Math.max(1, racks - 1))
  const circuits: [number, number][] = []
  for (let from = 0; from < racks; from++)
    if (racks > 1 && next() < 0.8) circuits.push([from, (from + distance) % racks])
  const up = new Set(circuits.map(([from, to]) => from * racks + to))
  const capacity_packets = Array.from({ length: racks * racks }, (_, at) => (up.has(at) ? BIG : SMALL))
  const queued_packets = capacity_packets.map((capacity, at) => {
    const busy = random(seed, 10, at)() < 0.4 ? 1 : 4
    const share = next() ** (2 * busy)
    return at % (racks + 1) === 0 ? 0 : Math.round(share * capacity)
  })
  const bytes = (kind: number, least_bps: number, most_bps: number) =>
    Array.from({ length: racks }, (_, rack) => {
      let sum = 0
      for (let at = BEGAN; at < step; at++) {
        const share = random(seed, kind, rack)() * (0.7 + 0.3 * random(seed, kind, rack, at)())
        sum += Math.round(((least_bps + share * (most_bps - least_bps)) * step_s) / 8)
      }
      return sum
    })
  return {
    name: 'rotor',
    at_s: (step - BEGAN) * step_s,
    dilation,
    racks,
    circuits,
    queued_packets,
    capacity_packets,
    packet_bytes: bytes(11, 1e9, 9.6e9),
    circuit_bytes: bytes(12, 8e9, 66e9),
    dropped_packets: (step - BEGAN) * 3,
    lost_packets: 0,
    late_p99_s: 1.8e-6 + 1e-6 * next(),
  }
}
