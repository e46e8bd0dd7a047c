import { expect, test } from 'vitest'
import type { Enforcement, EnforcementPlace, Enforcer, Workload } from '../api/types'
import { appliedPlaces, byUrgency, hourlyBurn, isBehind, openPlaces, usedUp } from './promises'

const place = (state: EnforcementPlace['state'], more: Partial<EnforcementPlace> = {}): EnforcementPlace => ({
  kind: 'net',
  host: 'r0h0',
  stage: 'network-in',
  state,
  enforcer: 'net@r0h0',
  detail: null,
  ...more,
})

const workload = (places: EnforcementPlace[], burn: Enforcement['burn'] = []): Workload => ({
  name: 'a',
  priority: 0,
  slo: { percentile: 99, latency_s: 0.1 },
  bound_s: null,
  seen_s: null,
  volume: 'v',
  path: [],
  version: 1,
  enforcement: {
    state: 'partial',
    places,
    total: { requests: 0, late: 0 },
    counted_since: null,
    seen_by: null,
    burn,
    alerts: [],
  },
  decision: 'd',
})

const enforcer = (name: string, version: number | null, state: Enforcer['state'] = 'live'): Enforcer => ({
  enforcer: name,
  kind: 'net',
  host: 'r0h0',
  state,
  since: '2026-03-23T09:00:00Z',
  version,
  current: 3,
  workloads: [],
})

test('each place without the promise has a sentence', () => {
  const places = [
    place('applied'),
    place('absent', { kind: 'nfs', host: 's', stage: 'storage', enforcer: null }),
    place('pending'),
    place('expired'),
    place('refused', { detail: 'no HTB' }),
    place('drifted', { detail: 'rate 1mbit' }),
  ]
  expect(openPlaces(workload(places))).toEqual([
    'storage: no nfs enforcer on s',
    'network-in: net@r0h0 has not applied it yet',
    'network-in: net@r0h0 is silent',
    'network-in: net@r0h0 cannot apply it: no HTB',
    'network-in: net@r0h0 found it changed: rate 1mbit',
  ])
  expect(appliedPlaces(places)).toBe('1 of 6')
  expect(openPlaces({ ...workload([]), enforcement: null })).toEqual([])
})

test('the burn rate is that of an hour', () => {
  const burn = [
    { window_s: 300, rate: 9 },
    { window_s: 3600, rate: 2.5 },
  ]
  expect(hourlyBurn(workload([], burn))).toBe(2.5)
  expect(hourlyBurn(workload([], [{ window_s: 3600, rate: null }]))).toBeNull()
  expect(hourlyBurn({ ...workload([]), enforcement: null })).toBeNull()
})

test('late requests are relative to those that the SLO permits', () => {
  const counted = workload([])
  expect(usedUp(counted)).toBeNull()
  const total = { requests: 2_000, late: 30 }
  const used = usedUp({ ...counted, enforcement: { ...counted.enforcement!, total } })
  expect(used?.late).toBe(30)
  expect(used?.permitted).toBeCloseTo(20)
  expect(usedUp({ ...counted, enforcement: null })).toBeNull()
  const strict = { ...counted, slo: { percentile: 100, latency_s: 0.1 } }
  expect(usedUp({ ...strict, enforcement: { ...counted.enforcement!, total } })).toBeNull()
})

test('silent enforcers are first, and those that are behind follow', () => {
  const all = [
    enforcer('b', 3),
    enforcer('a', 3),
    enforcer('c', 2),
    enforcer('d', null),
    enforcer('e', 3, 'expired'),
  ]
  expect(byUrgency(all).map((one) => one.enforcer)).toEqual(['e', 'c', 'd', 'a', 'b'])
  expect(all.map(isBehind)).toEqual([false, false, true, true, false])
})
