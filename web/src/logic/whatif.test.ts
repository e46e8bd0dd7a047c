import { expect, test } from 'vitest'
import type { Candidate, Decision } from '../api/types'
import { byVerdict, difference } from './whatif'

const made = (policy: string, hosts: string[], value_bps: number | null): Decision => ({
  id: 'd',
  kind: 'replicas',
  time: '2026-03-02T09:00:00Z',
  policy,
  request: {},
  hosts,
  limit: value_bps === null ? null : { at: 'r0:downlink', value_bps },
  epoch: 1,
  telemetry_age_s: null,
  note: null,
  why: [],
  released: null,
  expires: null,
})

test('what changes is which hosts, and how much the narrowest link has left', () => {
  const found = difference(made('leeward', ['a', 'b', 'c'], 8e9), made('uniform', ['a', 'd', 'e'], 2e9))
  expect(found).toMatchObject({ both: ['a'], left: ['b', 'c'], taken: ['d', 'e'], factor: 0.25 })
  expect(found.sentence).toBe('uniform would choose 2 of 3 hosts differently.')
})

test('no change, another order, another single host and no place at all are told apart', () => {
  const own = made('leeward', ['a', 'b'], 8e9)
  expect(difference(own, made('ccp', ['a', 'b'], 8e9)).sentence).toBe('ccp would choose the same.')
  expect(difference(own, made('ccp', ['b', 'a'], 8e9)).sentence).toBe(
    'ccp would choose the same hosts in another order.',
  )
  expect(difference(own, made('ccp', [], null)).sentence).toBe('ccp would place it nowhere.')
  const one = difference(made('utp', ['a'], 1), made('borg', ['b'], 1))
  expect(one.sentence).toBe('borg would choose b instead of a.')
})

test('there is no factor where either policy looked at no load', () => {
  expect(difference(made('a', ['x'], null), made('b', ['y'], 1)).factor).toBeNull()
  expect(difference(made('a', ['x'], 1), made('b', ['y'], null)).factor).toBeNull()
  expect(difference(made('a', ['x'], 0), made('b', ['y'], 1)).factor).toBeNull()
})

test('candidates go by verdict and keep their order within one', () => {
  const of = (domain: string, verdict: Candidate['verdict']): Candidate => ({
    domain,
    verdict,
    limit: null,
    value_bps: null,
    reason: null,
  })
  const why = [of('a', 'refused'), of('b', 'outranked'), of('c', 'chosen'), of('d', 'outranked')]
  expect(byVerdict(why).map((one) => one.domain)).toEqual(['c', 'b', 'd', 'a'])
})
