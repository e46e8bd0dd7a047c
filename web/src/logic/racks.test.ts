import { describe, expect, test } from 'vitest'
import type { LiveLink, LiveRack } from './frames'
import {
  cells,
  countHot,
  withHotFlags,
  sortRacks,
  wholePercent,
  describeLink,
  groupRacks,
  tileLayout,
  type Cell,
} from './racks'

const cell = (rack: string, up: number | null, down: number | null): Cell =>
  withHotFlags({ rack, pod: null, up, down }, 0.75)
const link = (name: string, utilization: number | null, hot_since: string | null = null): LiveLink => ({
  link: name,
  utilization,
  hot_since,
  last: null,
})
const live = (up: LiveLink | null, down: LiveLink | null): LiveRack => ({ rack: 'r0', pod: null, up, down })
const RACKS = [cell('r10', 0.2, 0.9), cell('r2', null, null), cell('r1', 0.8, null), cell('r3', 0.1, 0.2)]

test('racks are sorted by the number in their name, or by heat with unknown last', () => {
  expect(sortRacks(RACKS, 'name').map((one) => one.rack)).toEqual(['r1', 'r2', 'r3', 'r10'])
  expect(sortRacks(RACKS, 'heat').map((one) => one.rack)).toEqual(['r10', 'r1', 'r3', 'r2'])
})

test('racks of the same heat keep the order of their names', () => {
  const same = [cell('b', 0.5, 0.1), cell('a', 0.1, 0.5), cell('d', null, null), cell('c', null, null)]
  expect(sortRacks(same, 'heat').map((one) => one.rack)).toEqual(['a', 'b', 'c', 'd'])
})

test('a rack is hot if either link is hot, and known if either is known', () => {
  expect(countHot(RACKS)).toEqual({ hot: 2, known: 3 })
  expect(countHot([])).toEqual({ hot: 0, known: 0 })
})

test('a live link is hot if the service reports so, for every mean utilization', () => {
  const rack = live(link('r0:uplink', 0.66, '2026-03-02T09:00:00Z'), link('r0:downlink', 0.8))
  expect(cells([rack])[0]).toMatchObject({ up: 0.66, down: 0.8, hot: { up: true, down: false } })
})

test('a link that is not seen has its last value: of this page, or else of the history', () => {
  const time = Date.UTC(2026, 2, 2, 9)
  const grid = {
    from: time,
    step: 10_000,
    columns: 3,
    rows: new Map([['r0:downlink', Float32Array.of(0.25, 0.5, NaN)]]),
  }
  const seen = { ...link('r0:uplink', null), last: { utilization: 0.4, time } }
  const [cell] = cells([live(seen, link('r0:downlink', null))], grid)
  expect(cell?.last).toEqual({
    up: { utilization: 0.4, time },
    down: { utilization: 0.5, time: time + 10_000 },
  })
  expect(cells([live(link('r0:uplink', null), null)])[0]?.last).toEqual({ up: null, down: null })
})

test('a link is described with its state', () => {
  expect(describeLink('uplink', 0.83, true, 0.75)).toBe('uplink 83 %, hot')
  expect(describeLink('uplink', 0.73, true, 0.75)).toBe('uplink 73 %, hot by its last windows')
  expect(describeLink('downlink', 0.2, false, 0.75)).toBe('downlink 20 %')
  expect(describeLink('uplink', null, false, 0.75)).toBe('uplink not known')
  const last = { utilization: 0.43, time: new Date(2026, 2, 2, 9, 5).getTime() }
  expect(describeLink('uplink', null, false, 0.75, last)).toBe('uplink not known, last 43 % at 09:05')
})

test('racks are grouped by pod, or in runs of names without pods', () => {
  const rack = (at: number, pod: string | null) => ({ rack: `r${at}`, pod })
  const names = (racks: { rack: string; pod: string | null }[]) =>
    groupRacks(racks).map(({ name, racks }) => [name, racks.length])
  const pods = [rack(10, 'p10'), rack(2, 'p2'), rack(1, 'p2')]
  expect(names(pods)).toEqual([
    ['p2', 2],
    ['p10', 1],
  ])
  expect(names(Array.from({ length: 120 }, (_, at) => rack(at, null)))).toEqual([
    ['r0 – r49', 50],
    ['r50 – r99', 50],
    ['r100 – r119', 20],
  ])
})

test('rounding does not make a cool link look hot', () => {
  expect([0.744, 0.746, 0.75, 0.756].map((value) => wholePercent(value, 0.75))).toEqual([74, 74, 75, 76])
  expect([0.124, 0.126].map((value) => wholePercent(value, 0.125))).toEqual([12, 13])
  expect(wholePercent(0.9999, 1)).toBe(99)
})

describe('tiles are as large as possible while all fit', () => {
  test.each([1, 10, 40, 120, 500])('%d racks on a laptop', (count) => {
    const { columns, wide, tall } = tileLayout(count, 1216, 260, 22, 96)
    expect(columns * wide).toBeLessThanOrEqual(1216)
    expect(Math.ceil(count / columns) * tall).toBeLessThanOrEqual(260)
    expect(wide).toBeGreaterThanOrEqual(tall)
    // Rows have nearly equal length.
    const rows = Math.ceil(count / columns)
    expect(rows * columns - count).toBeLessThan(rows)
  })
  test('tiles have the minimum size if they cannot all fit', () => {
    expect(tileLayout(100_000, 1216, 260, 22, 96).tall).toBe(22)
  })
  test('no racks or no width yields one column', () => {
    expect(tileLayout(0, 1216, 260, 22, 96).columns).toBe(1)
    expect(tileLayout(40, 0, 260, 22, 96).columns).toBe(1)
  })
})
