import { expect, test } from 'vitest'
import type { Enforcement, Workload } from '../api/types'
import { bySloState, headroom, barPosition, SLO_POSITION, sloState } from './workloads'

const enforcement = (state: Enforcement['state']): Enforcement => ({
  state,
  places: [],
  total: { requests: 0, late: 0 },
  counted_since: null,
  seen_by: null,
  burn: [],
  alerts: [],
})

const workload = (name: string, bound_s: number | null, seen_s: number | null, priority = 1): Workload => ({
  name,
  priority,
  slo: { percentile: 0.999, latency_s: 0.1 },
  bound_s,
  seen_s,
  volume: 'v',
  path: [],
  version: 1,
  enforcement: enforcement('seen'),
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

test('a bound keeps the SLO only if the promise is enforced', () => {
  const at = (state: Enforcement['state']) => ({
    ...workload('a', 0.05, 0.05),
    enforcement: enforcement(state),
  })
  expect(sloState(at('enforced'))).toBe('kept')
  for (const state of ['decided', 'partial', 'unenforced'] as const)
    expect(sloState(at(state))).toBe('unenforced')
  expect(sloState({ ...workload('a', 0.05, 0.05), enforcement: null })).toBe('unenforced')
  expect(sloState({ ...at('unenforced'), seen_s: 0.2 })).toBe('missed')
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
