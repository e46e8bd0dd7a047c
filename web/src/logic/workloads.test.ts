import { expect, test } from 'vitest'
import type { Workload } from '../api/types'
import { bySloState, headroom, barPosition, SLO_POSITION, sloState } from './workloads'

const workload = (name: string, bound_s: number | null, seen_s: number | null, priority = 1): Workload => ({
  name,
  priority,
  slo: { percentile: 0.999, latency_s: 0.1 },
  bound_s,
  seen_s,
  volume: 'v',
  path: [],
  version: 1,
  enforcement: null,
  decision: 'd',
})

test('a measured latency takes precedence over the bound', () => {
  expect(sloState(workload('a', 0.05, 0.2))).toBe('missed')
  expect(sloState(workload('a', null, 0.2))).toBe('missed')
  expect(sloState(workload('a', 0.2, 0.05))).toBe('unassured')
  expect(sloState(workload('a', null, 0.05))).toBe('unbound')
  expect(sloState(workload('a', 0.1, 0.1))).toBe('kept')
  expect(sloState(workload('a', 0.1, null))).toBe('kept')
})

test('headroom is the share of the SLO that the bound leaves', () => {
  expect(headroom(workload('a', 0.075, null))).toBeCloseTo(0.25)
  expect(headroom(workload('a', 0.15, null))).toBeCloseTo(-0.5)
  expect(headroom(workload('a', null, null))).toBeNull()
})

test('workloads are sorted by urgency, priority and name', () => {
  const all = [
    workload('kept', 0.01, 0),
    workload('b', 0.2, 0),
    workload('a', 0.2, 0),
    workload('none', null, 0),
    workload('late', 0.01, 0.5),
    workload('low', 0.2, 0, 0),
  ]
  expect(bySloState(all).map((one) => one.name)).toEqual(['late', 'low', 'a', 'b', 'none', 'kept'])
})

test('the SLO has a fixed position on every bar, and long latencies stop at the end of the bar', () => {
  expect(barPosition(0.1, 0.1)).toBe(SLO_POSITION)
  expect(barPosition(0.05, 0.1)).toBeCloseTo(SLO_POSITION / 2)
  expect(barPosition(10, 0.1)).toBe(1)
})
