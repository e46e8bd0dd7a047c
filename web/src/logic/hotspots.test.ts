import { expect, test } from 'vitest'
import type { Hotspot, Link, Migration, Rack } from '../api/types'
import { headerCount, movesByLink, groupHotspots } from './hotspots'

const hot = (link: string, since = '2026-03-02T09:00:00Z'): Hotspot => ({
  link,
  since,
  age_s: 1,
  utilization: 0.8,
})
const rack = (up: Link | null): Rack => ({
  rack: 'r0',
  pod: null,
  hosts: 2,
  up,
  down: null,
  tasks: 0,
  replicas: 0,
})
const LINK = { link: 'r0:uplink' } as Link
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
