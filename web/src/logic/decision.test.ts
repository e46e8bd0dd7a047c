import { expect, test } from 'vitest'
import type { Candidate, Decision, LinkLoad } from '../api/types'
import {
  betterChoice,
  difference,
  formatHosts,
  kindWord,
  levels,
  lineOf,
  loadsBeside,
  loadsOfWhatIf,
  originalHosts,
  requestFields,
  taskNames,
} from './decision'

const decisionOf = (policy: string, hosts: string[], value_bps: number | null): Decision => ({
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
  mode: 'on',
  by_default: false,
  beside: null,
})

test('the difference lists the hosts and the factor of residual rate', () => {
  const result = difference(
    decisionOf('leeward', ['a', 'b', 'c'], 8e9),
    decisionOf('uniform', ['a', 'd', 'e'], 2e9),
  )
  expect(result).toMatchObject({ removed: new Set([1, 2]), added: new Set([1, 2]), factor: 0.25 })
  expect(result.sentence).toBe('uniform would choose 2 of 3 hosts differently.')
})

test('the sentence distinguishes no change, another order, another host and no placement', () => {
  const own = decisionOf('leeward', ['a', 'b'], 8e9)
  expect(difference(own, decisionOf('ccp', ['a', 'b'], 8e9)).sentence).toBe(
    'ccp would choose the same hosts.',
  )
  expect(difference(own, decisionOf('ccp', ['b', 'a'], 8e9)).sentence).toBe(
    'ccp would choose the same hosts in another order.',
  )
  expect(difference(own, decisionOf('ccp', [], null)).sentence).toBe('ccp would refuse the request.')
  const one = difference(decisionOf('utp', ['a'], 1), decisionOf('borg', ['b'], 1))
  expect(one.sentence).toBe('borg would choose b instead of a.')
})

test('the factor is null if either policy used no link loads', () => {
  expect(difference(decisionOf('a', ['x'], null), decisionOf('b', ['y'], 1)).factor).toBeNull()
  expect(difference(decisionOf('a', ['x'], 1), decisionOf('b', ['y'], null)).factor).toBeNull()
  expect(difference(decisionOf('a', ['x'], 0), decisionOf('b', ['y'], 1)).factor).toBeNull()
})

test('a stripe has chunks and no replicas', () => {
  const block = { ...decisionOf('leeward', ['a', 'b'], 1), request: { size: '1GiB', replicas: 2 } }
  const stripe = { ...block, request: { size: '1GiB', replicas: 2, coding: '1+1' } }
  expect([kindWord(block), formatHosts(block)]).toEqual(['replicas', 'a → b'])
  expect([kindWord(stripe), formatHosts(stripe)]).toEqual(['chunks', 'a, b'])
  expect(requestFields(block.request)).toContainEqual(['replicas', '2'])
  expect(requestFields(stripe.request)).toEqual([
    ['chunks', '2'],
    ['size', '1GiB'],
    ['coding', '1+1'],
  ])
})

test('replicas are interchangeable, tasks are not', () => {
  const tasks = (hosts: string[]) => ({ ...decisionOf('utp', hosts, 1), kind: 'tasks' })
  expect(difference(tasks(['a', 'b']), decisionOf('borg', ['b', 'a'], 1)).removed).toEqual(new Set([0, 1]))
  expect(difference(tasks(['a', 'a']), decisionOf('borg', ['a', 'b'], 1)).added).toEqual(new Set([1]))
  expect(difference(decisionOf('utp', ['a', 'b'], 1), decisionOf('borg', ['b', 'a'], 1)).removed).toEqual(
    new Set(),
  )
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

test('candidates are grouped by level and sorted by verdict, and none is lost', () => {
  const why = [
    ...[row('w', 'chosen'), row('r1', 'refused'), row('r2', 'outranked'), row('r3', 'chosen')],
    ...[row('a', 'outranked'), row('b', 'chosen'), row('r1', 'chosen')],
  ]
  const result = levels(why, domain)
  expect(result.map(({ title, rows }) => [title, ...rows.map((one) => one.candidate)])).toEqual([
    ['hosts', 'w'],
    ['racks', 'r3', 'r2', 'r1'],
    ['hosts', 'b', 'a'],
    ['racks', 'r1'],
  ])
})

test('candidates for tasks are grouped by task', () => {
  const why = [row('a', 'chosen', 0), row('b', 'outranked', 0), row('a', 'chosen', 1), row('a', 'chosen', 7)]
  const titles = levels(why, domain, ['map', 'reduce']).map(({ title, rows }) => [title, rows.length])
  expect(titles).toEqual([
    ['hosts for map', 2],
    ['hosts for reduce', 1],
    ['hosts for 7', 1],
  ])
})

test('request fields are listed as text, without empty fields', () => {
  const request = {
    size: '256MiB',
    writer: null,
    fault_domains: 0,
    tasks: [{ name: 'map', cpus: '2' }, { name: 'reduce' }],
    transfers: [{ from: 0, to: 1, bytes: '1GiB' }],
    tags: [],
  }
  expect(requestFields(request)).toEqual([
    ['size', '256MiB'],
    ['fault domains', '0'],
    ['tasks', 'map, reduce'],
    ['transfers', 'from 0 to 1 bytes 1GiB'],
  ])
  expect(requestFields({ many: Array.from({ length: 10 }, (_, at) => at) })).toEqual([
    ['many', '0, 1, 2, 3, 4, 5, 4 more'],
  ])
})

test('a workload is listed by its fields, without its curves', () => {
  const slo = { percentile: 99.9, latency: '60ms' }
  const curves = { storage: [{ rate: '15%', burst: '12ms' }] }
  const workload = { name: 'orders-db', client: 'r0h1', slo, curves, model: {} }
  expect(requestFields({ workload })).toEqual([
    ['name', 'orders-db'],
    ['client', 'r0h1'],
    ['slo', 'percentile 99.9 latency 60ms'],
  ])
})

test('a task counts as moved if its host is not its chosen candidate, and not without candidates', () => {
  const why = [row('a', 'outranked', 0), row('b', 'chosen', 0), row('b', 'chosen', 1)]
  expect(originalHosts({ hosts: ['a', 'b', 'c'], why })).toEqual(['b', null, null])
  expect(originalHosts({ hosts: ['a'], why: [row('b', 'chosen')] })).toEqual([null])
})

test('hosts have the names of their tasks, and replicas are shown as a chain', () => {
  const tasks = {
    ...decisionOf('utp', ['a', 'a'], 1),
    kind: 'tasks',
    request: { tasks: [{ name: 'map' }, {}] },
  }
  expect(taskNames(tasks)).toEqual(['map', null])
  expect([
    formatHosts(tasks),
    formatHosts(decisionOf('ccp', ['a', 'b'], 1)),
    formatHosts(decisionOf('ccp', [], 1)),
  ]).toEqual(['a, a', 'a → b', 'not placed'])
})

test('a line has the reference or the job, the size or the number of tasks, and the racks once each', () => {
  const rackOf = (host: string) => (host.startsWith('x') ? null : host.split('h')[0]!)
  const block = { ...decisionOf('leeward', ['r1h0', 'r2h1', 'r2h2', 'x'], 1), ref: 'blk_1', client: 'hdfs' }
  block.request = { size: '256MiB', replicas: 3 }
  expect(lineOf(block, rackOf)).toEqual({
    name: 'blk_1',
    client: 'hdfs',
    size: '256\u00a0MiB',
    hosts: 'r1h0 → r2h1 → r2h2 → x',
    racks: ['r1', 'r2'],
  })
  const app = { ...decisionOf('utp', ['r1h0'], 1), request: { job: 'crawl', tasks: [{}, {}] } }
  expect(lineOf(app, rackOf)).toMatchObject({ name: 'crawl', size: '2 tasks' })
  expect(lineOf(decisionOf('utp', [], 1), rackOf).name).toBe('d')
})

test('the loads beside a decision and beside a what-if name the same choices', () => {
  const load = (hot: number, utilization: number, unknown = 0): LinkLoad => ({
    link: 'r1:downlink',
    utilization,
    hot,
    unknown,
    rate_bps: null,
  })
  const beside = { policy: 'uniform', hosts: [], refused: null, load: load(1, 0.9), decided: load(0, 0.4) }
  const decision = { ...decisionOf('leeward', ['a'], 1), beside }
  expect(loadsBeside(decision)).toEqual({ decided: load(0, 0.4), other: load(1, 0.9) })
  // Beside a what-if stands the decision that was made.
  expect(loadsOfWhatIf(decision)).toEqual({ decided: load(1, 0.9), other: load(0, 0.4) })
  expect(loadsBeside(decisionOf('leeward', ['a'], 1))).toBeNull()
  expect(betterChoice({ decided: load(0, 0.9), other: load(1, 0.2) })).toBe('decided')
  expect(betterChoice({ decided: load(0, 0.9), other: load(0, 0.2) })).toBe('other')
  expect(betterChoice({ decided: load(0, 0.2), other: load(0, 0.2) })).toBe('same')
  expect(betterChoice({ decided: load(0, 0.2, 1), other: load(0, 0.2) })).toBeNull()
})
