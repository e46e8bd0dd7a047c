import { expect, test } from 'vitest'
import type { Candidate, Decision } from '../api/types'
import { asked, difference, levels, line, moved, purposes } from './decision'

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
  client: null,
  sequence: null,
  key: null,
  note: null,
  why: [],
  released: null,
  expires: null,
})

test('what changes is which hosts, and how much the narrowest link has left', () => {
  const found = difference(made('leeward', ['a', 'b', 'c'], 8e9), made('uniform', ['a', 'd', 'e'], 2e9))
  expect(found).toMatchObject({ left: new Set([1, 2]), taken: new Set([1, 2]), factor: 0.25 })
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

test('copies are alike, and each task is itself', () => {
  const tasks = (hosts: string[]) => ({ ...made('utp', hosts, 1), kind: 'tasks' })
  expect(difference(tasks(['a', 'b']), made('borg', ['b', 'a'], 1)).left).toEqual(new Set([0, 1]))
  expect(difference(tasks(['a', 'a']), made('borg', ['a', 'b'], 1)).taken).toEqual(new Set([1]))
  expect(difference(made('utp', ['a', 'b'], 1), made('borg', ['b', 'a'], 1)).left).toEqual(new Set())
})

const row = (candidate: string, verdict: string, task?: number): Candidate => ({
  candidate,
  verdict,
  limit: null,
  sight: null,
  value_bps: null,
  because: null,
  ...(task === undefined ? {} : { objectives: { task, in_rack: 0, balance: 0, left: 0 } }),
})
const domain = (name: string) => (/^r\d+$/.test(name) ? 'rack' : 'host')

test('candidates are told level by level, within one by verdict, and none is lost', () => {
  const why = [
    ...[row('w', 'chosen'), row('r1', 'refused'), row('r2', 'outranked'), row('r3', 'chosen')],
    ...[row('a', 'outranked'), row('b', 'chosen'), row('r1', 'chosen')],
  ]
  const found = levels(why, domain)
  expect(found.map(({ title, rows }) => [title, ...rows.map((one) => one.candidate)])).toEqual([
    ['hosts', 'w'],
    ['racks', 'r3', 'r2', 'r1'],
    ['hosts', 'b', 'a'],
    ['racks', 'r1'],
  ])
})

test('candidates for tasks are told task by task', () => {
  const why = [row('a', 'chosen', 0), row('b', 'outranked', 0), row('a', 'chosen', 1), row('a', 'chosen', 7)]
  const titles = levels(why, domain, ['map', 'reduce']).map(({ title, rows }) => [title, rows.length])
  expect(titles).toEqual([
    ['hosts for map', 2],
    ['hosts for reduce', 1],
    ['hosts for 7', 1],
  ])
})

test('what was asked is told in words, and what was not said is left out', () => {
  const request = {
    size: '256MiB',
    writer: null,
    fault_domains: 0,
    tasks: [{ name: 'map', cpus: '2' }, { name: 'reduce' }],
    transfers: [{ from: 0, to: 1, bytes: '1GiB' }],
    tags: [],
  }
  expect(asked(request)).toEqual([
    ['size', '256MiB'],
    ['fault domains', '0'],
    ['tasks', 'map, reduce'],
    ['transfers', 'from 0 to 1 bytes 1GiB'],
  ])
  expect(asked({ many: Array.from({ length: 10 }, (_, at) => at) })).toEqual([
    ['many', '0, 1, 2, 3, 4, 5, 4 more'],
  ])
})

test('a workload is told by its fields, without its curves', () => {
  const slo = { percentile: 99.9, latency: '60ms' }
  const curves = { storage: [{ rate: '15%', burst: '12ms' }] }
  const workload = { name: 'orders-db', client: 'r0h1', slo, curves, model: {} }
  expect(asked({ workload })).toEqual([
    ['name', 'orders-db'],
    ['client', 'r0h1'],
    ['slo', 'percentile 99.9 latency 60ms'],
  ])
})

test('a task that runs elsewhere than where it was placed was moved; one of which no candidates are kept was not', () => {
  const why = [row('a', 'outranked', 0), row('b', 'chosen', 0), row('b', 'chosen', 1)]
  expect(moved({ hosts: ['a', 'b', 'c'], why })).toEqual(['b', null, null])
  expect(moved({ hosts: ['a'], why: [row('b', 'chosen')] })).toEqual([null])
})

test('a host is told with its task; a chain as a chain', () => {
  const tasks = { ...made('utp', ['a', 'a'], 1), kind: 'tasks', request: { tasks: [{ name: 'map' }, {}] } }
  expect(purposes(tasks)).toEqual(['map', null])
  expect([line(tasks), line(made('ccp', ['a', 'b'], 1)), line(made('ccp', [], 1))]).toEqual([
    'a, a',
    'a → b',
    'nowhere',
  ])
})
