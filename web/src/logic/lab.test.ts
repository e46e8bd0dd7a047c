import { describe, expect, test } from 'vitest'
import type { Lab } from '../api/types'
import { describePair, follow, highest, matrixLayout, MATRIX_RACKS, pairs, ratesBetween } from './lab'

function lab(changes: Partial<Lab> = {}): Lab {
  return {
    name: 'lab',
    at_s: 1,
    dilation: 240,
    racks: 2,
    circuits: [[1, 0]],
    queued_packets: [0, 12, 0, 0],
    capacity_packets: [0, 16, 16, 0],
    packet_bytes: [1000, 0],
    circuit_bytes: [5000, 0],
    dropped_packets: 3,
    lost_packets: 0,
    late_p99_s: null,
    ...changes,
  }
}

describe('pairs', () => {
  test('rows are sources, and a rack has no queue to itself', () => {
    const [[own, there], [back]] = pairs(lab()) as [[Pair, Pair], [Pair, Pair]]
    expect([own.occupancy, there.occupancy, back.occupancy]).toEqual([null, 0.75, 0])
    expect([there.circuit, back.circuit]).toEqual([false, true])
    expect([own, there, back].map(describePair)).toEqual([
      'r0 to itself: no queue',
      'r0 to r1: 12 of 16 packets',
      'r1 to r0: 0 of 16 packets, circuit up',
    ])
  })

  test('a queue above its capacity is full', () => {
    const occupancy = (capacity: number) =>
      pairs(lab({ queued_packets: [0, 20, 0, 0], capacity_packets: [0, capacity, 0, 0] }))[0]?.[1]?.occupancy
    expect([occupancy(16), occupancy(0)]).toEqual([1, 1])
    expect(pairs(lab())[1]?.[0]?.occupancy).toBe(0)
  })

  test('a matrix of many racks has the first ones, each pair at its place', () => {
    const racks = 100
    const queued = Array.from({ length: racks * racks }, (_, at) => at)
    const rows = pairs(lab({ racks, circuits: [[3, 99]], queued_packets: queued }))
    expect([rows.length, ...new Set(rows.map((row) => row.length))]).toEqual([MATRIX_RACKS, MATRIX_RACKS])
    expect(rows[2]?.[7]?.queued).toBe(207)
    expect(rows.flat().some(({ circuit }) => circuit)).toBe(false)
  })
})

describe('rates', () => {
  test('they are bits per second of virtual time', () => {
    const later = lab({ at_s: 1.5, packet_bytes: [2000, 0], circuit_bytes: [5000, 250] })
    expect(ratesBetween(lab(), later)).toEqual([
      { packet_bps: 16_000, circuit_bps: 0 },
      { packet_bps: 0, circuit_bps: 4000 },
    ])
  })

  test.each([
    ['the same view', {}],
    ['an earlier view', { at_s: 0.5 }],
    ['fewer bytes', { at_s: 2, circuit_bytes: [0, 0] }],
    ['another number of racks', { at_s: 2, racks: 3 }],
  ])('there are none for %s', (_, changes) => {
    expect(ratesBetween(lab(), lab(changes))).toBeNull()
  })

  test('the scale is the highest sum', () => {
    expect(highest([{ packet_bps: 3, circuit_bps: 4 }])).toBe(7)
    expect([highest([{ packet_bps: 0, circuit_bps: 0 }]), highest([])]).toEqual([1, 1])
  })
})

test('labs are followed by name; a view that is not new keeps the rates and its time', () => {
  const [one] = follow([], [lab()], 10)
  expect(one).toMatchObject({ rates: null, dropped: 0, seen: 10 })
  const later = lab({ at_s: 2, packet_bytes: [1001, 0], dropped_packets: 5 })
  const views = follow(follow([], [lab()], 10), [later, lab({ name: 'other' })], 20)
  expect(views.map(({ lab, dropped, seen }) => [lab.name, dropped, seen])).toEqual([
    ['lab', 2, 20],
    ['other', 0, 20],
  ])
  expect(views[0]?.rates?.[0]?.packet_bps).toBe(8)
  expect(follow(views, [later], 30)).toEqual([views[0]])
  // A new lab of the same name begins again.
  expect(follow(views, [lab({ at_s: 0.1 })], 40)).toMatchObject([{ rates: null, dropped: 0, seen: 40 }])
})

test('the matrix fits its width, from a few racks to 64 on a phone', () => {
  for (const [racks, width] of [
    [8, 1000],
    [64, 600],
    [64, 230],
    [1, 300],
  ] as const) {
    const { size, every, label } = matrixLayout(racks, width)
    expect(size * racks + label).toBeLessThanOrEqual(width)
    expect(size * every).toBeGreaterThanOrEqual(26)
  }
  expect(matrixLayout(8, 1000).size).toBe(52)
})

type Pair = Parameters<typeof describePair>[0]
