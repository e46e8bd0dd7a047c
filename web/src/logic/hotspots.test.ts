import { expect, test } from 'vitest'
import type { HeavyWork, Hotspot, Migration } from '../api/types'
import type { LiveLink, LiveRack } from './frames'
import {
  foreignShare,
  headerCount,
  movable,
  movesByLink,
  groupHotspots,
  what,
  why,
  workName,
} from './hotspots'

const hot = (link: string, since = '2026-03-02T09:00:00Z'): Hotspot => ({
  link,
  since,
  age_s: 1,
  utilization: 0.8,
})
const rack = (up: LiveLink | null): LiveRack => ({ rack: 'r0', pod: null, up, down: null })
const LINK = { link: 'r0:uplink' } as LiveLink
const HOT = [hot('r0h1:egress'), hot('r10:uplink'), hot('p0:downlink'), hot('r2:uplink'), hot('r0h2:ingress')]
const names = (hotspots: Hotspot[]) => hotspots.map(({ link }) => link)

test('links of hosts are separate from shared links', () => {
  const { shared, own } = groupHotspots(HOT, true)
  expect(names(shared)).toEqual(['p0:downlink', 'r2:uplink', 'r10:uplink'])
  expect(names(own)).toEqual(['r0h1:egress', 'r0h2:ingress'])
  expect(headerCount(HOT, [rack(null), rack(LINK)])).toBe(3)
})

test('links of hosts count as shared if racks have no links', () => {
  expect(names(groupHotspots(HOT, false).own)).toEqual([])
  expect(groupHotspots(HOT, false).shared).toHaveLength(5)
  expect(headerCount(HOT, [rack(null)])).toBe(5)
})

test('hotspots are sorted by start time, in every notation of times', () => {
  const hotspots = [
    hot('a:uplink', '2026-03-02T09:00:05.5Z'),
    hot('b:uplink', '2026-03-02T09:00:05Z'),
    hot('c:uplink', '2026-03-02T10:00:04+01:00'),
  ]
  expect(names(groupHotspots(hotspots, true).shared)).toEqual(['c:uplink', 'b:uplink', 'a:uplink'])
})

test('moves are counted by link and state', () => {
  const move = (link: string, state: string) => ({ link, state }) as Migration
  const moves = [move('a', 'done'), move('b', 'expired'), move('a', 'advised'), move('a', 'advised')]
  expect([...movesByLink(moves)]).toEqual([
    ['a', '2 advised, 1 done'],
    ['b', '1 expired'],
  ])
})

const work = (extra: Partial<HeavyWork> = {}): HeavyWork => ({
  decision: '7',
  job: 'crawl',
  task: 't3',
  host: 'r4h2',
  rate_bps: 3e9,
  size: null,
  ...extra,
})

test('a task that may not be moved says why', () => {
  expect(movable({ tolerant: true, stays: null })).toBe('yes')
  expect(movable({ tolerant: true, stays: 'cooling' })).toBe('no: moved recently')
  expect(movable({ tolerant: false, stays: 'sensitive' })).toBe('no: sensitive')
  expect(movable({ tolerant: true, stays: 'newer' })).toBe('no: newer')
  expect(movable({ tolerant: false })).toBe('no')
})

test('work has the name of its job and task, or the size of its block', () => {
  expect(workName(work())).toBe('crawl/t3 on r4h2')
  expect(workName(work({ job: null }))).toBe('t3 on r4h2')
  expect(workName(work({ job: null, task: null, rate_bps: null, size: '256MiB' }))).toBe(
    'block of 256MiB to r4h2',
  )
  expect(workName(work({ job: null, task: '', host: null }))).toBe('decision 7')
})

test('the summary names the hot links and the work, and says when the load is not Leeward’s', () => {
  const causes = { heaviest: [work()], measured_bps: 9e9, unexplained_bps: 1e9, no_move: null }
  const own = { ...hot('r4:uplink'), ...causes }
  const foreign = { ...hot('r5:uplink'), ...causes, heaviest: [], unexplained_bps: 9e9 }
  expect(foreignShare(own)).toBeCloseTo(1 / 9)
  expect(foreignShare(hot('r4:uplink'))).toBeNull()
  expect(what([own, foreign], () => 720)).toBe(
    '2 links are hot, r4:uplink the longest, for 12\u00a0min at 80\u00a0%.',
  )
  expect(what([own], () => 5)).toBe('r4:uplink is hot, for 5\u00a0s at 80\u00a0%.')
  expect(what([], () => null)).toBe('No link that is seen is hot.')
  expect(why([own, foreign])).toBe(
    'Task crawl/t3 on r4h2 sends 3\u00a0Gbps over r4:uplink. The load of 1 link is mostly not from tasks of Leeward.',
  )
  expect(why([foreign])).toBe('The load is mostly not from tasks of Leeward.')
  expect(why([hot('r4:uplink')])).toBe('The causes are not read yet.')
})
