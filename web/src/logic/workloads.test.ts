import { expect, test } from 'vitest'
import type { Workload } from '../api/types'
import { byStanding, headroom, place, PROMISED, standing } from './workloads'

const of = (name: string, bound_s: number | null, seen_s: number | null, priority = 1): Workload => ({
  name,
  priority,
  slo: { percentile: 0.999, latency_s: 0.1 },
  bound_s,
  seen_s,
  volume: 'v',
  path: [],
  decision: 'd',
})

test('what was seen weighs more than what was computed', () => {
  expect(standing(of('a', 0.05, 0.2))).toBe('missed')
  expect(standing(of('a', null, 0.2))).toBe('missed')
  expect(standing(of('a', 0.2, 0.05))).toBe('unkept')
  expect(standing(of('a', null, 0.05))).toBe('unbound')
  expect(standing(of('a', 0.1, 0.1))).toBe('kept')
  expect(standing(of('a', 0.1, null))).toBe('kept')
})

test('headroom is what the bound leaves of the promise', () => {
  expect(headroom(of('a', 0.075, null))).toBeCloseTo(0.25)
  expect(headroom(of('a', 0.15, null))).toBeCloseTo(-0.5)
  expect(headroom(of('a', null, null))).toBeNull()
})

test('what needs a look comes first', () => {
  const all = [
    of('kept', 0.01, 0),
    of('b', 0.2, 0),
    of('a', 0.2, 0),
    of('none', null, 0),
    of('late', 0.01, 0.5),
    of('low', 0.2, 0, 0),
  ]
  expect(byStanding(all).map((one) => one.name)).toEqual(['late', 'low', 'a', 'b', 'none', 'kept'])
})

test('a promise has one place on every bar, and nothing leaves the bar', () => {
  expect(place(0.1, 0.1)).toBe(PROMISED)
  expect(place(0.05, 0.1)).toBeCloseTo(PROMISED / 2)
  expect(place(10, 0.1)).toBe(1)
})
