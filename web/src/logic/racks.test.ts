import { describe, expect, test } from 'vitest'
import { hotNow, ordered, spoken, tiling, type Cell } from './racks'

const cell = (rack: string, up: number | null, down: number | null): Cell => ({ rack, pod: null, up, down })
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
  expect(hotNow(RACKS, 0.75)).toEqual({ hot: 2, known: 3 })
  expect(hotNow(RACKS, 0.8)).toEqual({ hot: 2, known: 3 })
  expect(hotNow([], 0.75)).toEqual({ hot: 0, known: 0 })
})

test('a link is spoken with its state', () => {
  expect(spoken('uplink', 0.83, 0.75)).toBe('uplink 83 %, hot')
  expect(spoken('downlink', 0.2, 0.75)).toBe('downlink 20 %')
  expect(spoken('uplink', null, 0.75)).toBe('uplink not known')
})

describe('tiles are as large as they may be while all fit', () => {
  test.each([
    [10, 96],
    [40, 96],
    [500, 30],
  ])('%d racks on a laptop', (count, atLeast) => {
    const { columns, size } = tiling(count, 1216, 260, 22, 96)
    expect(columns * size).toBeLessThanOrEqual(1216)
    expect(Math.ceil(count / columns) * size * 0.8).toBeLessThanOrEqual(260)
    expect(size).toBeGreaterThanOrEqual(Math.min(96, atLeast) - 10)
  })
  test('where they cannot all fit they are as small as may be', () => {
    expect(tiling(100_000, 1216, 260, 22, 96).size).toBe(22)
  })
})
