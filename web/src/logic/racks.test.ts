import { describe, expect, test } from 'vitest'
import type { Link, Rack } from '../api/types'
import { cells, hotNow, judged, ordered, percents, spoken, tiling, type Cell } from './racks'

const cell = (rack: string, up: number | null, down: number | null): Cell =>
  judged({ rack, pod: null, up, down }, 0.75)
const RACKS = [cell('r10', 0.2, 0.9), cell('r2', null, null), cell('r1', 0.8, null), cell('r3', 0.1, 0.2)]

test('racks are ordered by the number in their name, or by heat with the unknown last', () => {
  expect(ordered(RACKS, 'name').map((one) => one.rack)).toEqual(['r1', 'r2', 'r3', 'r10'])
  expect(ordered(RACKS, 'heat').map((one) => one.rack)).toEqual(['r10', 'r1', 'r3', 'r2'])
})

test('racks of the same heat keep the order of their names', () => {
  const same = [cell('b', 0.5, 0.1), cell('a', 0.1, 0.5), cell('d', null, null), cell('c', null, null)]
  expect(ordered(same, 'heat').map((one) => one.rack)).toEqual(['a', 'b', 'c', 'd'])
})

test('a rack is hot if either link is, and known if either is', () => {
  expect(hotNow(RACKS)).toEqual({ hot: 2, known: 3 })
  expect(hotNow([])).toEqual({ hot: 0, known: 0 })
})

test('now a link is hot if the service says so, whatever its mean is by then', () => {
  const link = (utilization: number, hot_since: string | null) => ({ utilization, hot_since }) as Link
  const rack = {
    rack: 'r0',
    pod: null,
    up: link(0.66, '2026-03-02T09:00:00Z'),
    down: link(0.8, null),
  } as Rack
  expect(cells([rack])).toEqual([
    { rack: 'r0', pod: null, up: 0.66, down: 0.8, hot: { up: true, down: false } },
  ])
})

test('a link is spoken with its state', () => {
  expect(spoken('uplink', 0.83, true, 0.75)).toBe('uplink 83 %, hot')
  expect(spoken('downlink', 0.2, false, 0.75)).toBe('downlink 20 %')
  expect(spoken('uplink', null, false, 0.75)).toBe('uplink not known')
})

test('what is not hot is not shown as if it were', () => {
  expect([0.744, 0.746, 0.75, 0.756].map((value) => percents(value, 0.75))).toEqual([74, 74, 75, 76])
  expect([0.124, 0.126].map((value) => percents(value, 0.125))).toEqual([12, 13])
  expect(percents(0.9999, 1)).toBe(99)
})

describe('tiles are as large as they may be while all fit', () => {
  test.each([1, 10, 40, 120, 500])('%d racks on a laptop', (count) => {
    const { columns, wide, tall } = tiling(count, 1216, 260, 22, 96)
    expect(columns * wide).toBeLessThanOrEqual(1216)
    expect(Math.ceil(count / columns) * tall).toBeLessThanOrEqual(260)
    expect(wide).toBeGreaterThanOrEqual(tall)
    // No row is much shorter than the others.
    const rows = Math.ceil(count / columns)
    expect(rows * columns - count).toBeLessThan(rows)
  })
  test('where they cannot all fit they are as small as may be', () => {
    expect(tiling(100_000, 1216, 260, 22, 96).tall).toBe(22)
  })
  test('none, or no room yet, is no harm', () => {
    expect(tiling(0, 1216, 260, 22, 96).columns).toBe(1)
    expect(tiling(40, 0, 260, 22, 96).columns).toBe(1)
  })
})
