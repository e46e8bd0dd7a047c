import { describe, expect, test } from 'vitest'
import type { Decision, Events, Link, Rack } from '../api/types'
import { EMPTY, MAX_DECISIONS, reduce, withDecisions } from './board'

const decision = (id: number, extra: Partial<Decision> = {}): Decision => ({
  id: `d-${id}`,
  kind: 'replicas',
  time: new Date(Date.UTC(2026, 2, 2, 9) + id * 1000).toISOString(),
  policy: 'leeward',
  request: {},
  hosts: [],
  limit: null,
  epoch: id,
  telemetry_age_s: null,
  client: null,
  sequence: null,
  key: null,
  note: null,
  why: [],
  released: null,
  expires: null,
  ...extra,
})
const hotspot = (link: string, utilization = 0.8, until: string | null = null): Events['hotspot'] => ({
  link,
  since: '2026-03-02T09:00:00Z',
  age_s: 1,
  utilization,
  until,
})
const link = (name: string, until: string | null, hot_since: string | null): Link => ({
  link: name,
  capacity_bps: 1e10,
  measured_bps: until ? 1 : null,
  utilization: until ? 0.1 : null,
  residual_bps: 0,
  seen: until !== null,
  derived: false,
  until,
  hot_since,
  pending_bps: 0,
  reserved_bps: 0,
  full_bps: null,
  queue_bytes: null,
})
const racks = (until: string | null, hot: string | null): { items: Rack[] } => ({
  items: [
    {
      rack: 'r0',
      pod: null,
      hosts: 1,
      up: link('r0:uplink', until, hot),
      down: link('r0:downlink', null, null),
      tasks: 0,
      replicas: 0,
    },
  ],
})
const event = (name: string, value: unknown) => ({ name, data: JSON.stringify(value), id: null })

describe('reduce applies events to the board', () => {
  test('decisions are sorted newest first, and the latest version of each replaces the others', () => {
    const board = reduce(
      EMPTY,
      [1, 3, 2].map((id) => event('decision', decision(id))),
    )
    const released = decision(2, { released: '2026-03-02T10:00:00Z' })
    const after = reduce(board, [event('decision', released), event('decision', decision(4))])
    expect(after.decisions.map((one) => one.id)).toEqual(['d-4', 'd-3', 'd-2', 'd-1'])
    expect(after.decisions[2]).toEqual(released)
  })

  test('the number of decisions has a limit', () => {
    const many = Array.from({ length: MAX_DECISIONS + 10 }, (_, id) => decision(id))
    const list = withDecisions([], many)
    expect(list).toHaveLength(MAX_DECISIONS)
    expect(list[0]?.id).toBe(`d-${MAX_DECISIONS + 9}`)
  })

  test('the time of the board is the latest telemetry time, or null without telemetry', () => {
    expect(reduce(EMPTY, [event('racks', racks('2026-03-02T09:00:01Z', null))]).telemetryTime).toBe(
      Date.UTC(2026, 2, 2, 9, 0, 1),
    )
    expect(reduce(EMPTY, [event('racks', racks(null, null))]).telemetryTime).toBeNull()
  })

  test('a racks event removes hotspots of cooled links and keeps hotspots of unknown links', () => {
    const hot = ['r0:uplink', 'r0:downlink', 'r9h1:egress'].map((name) => event('hotspot', hotspot(name)))
    const board = reduce(EMPTY, hot)
    const still = reduce(board, [event('racks', racks('2026-03-02T09:00:01Z', '2026-03-02T09:00:00Z'))])
    expect(still.hotspots).toHaveLength(3)
    const cooled = reduce(board, [event('racks', racks('2026-03-02T09:00:01Z', null))])
    expect(cooled.hotspots.map((one) => one.link)).toEqual(['r9h1:egress', 'r0:downlink'])
  })

  test('a later event of a hotspot replaces the earlier one', () => {
    const board = reduce(EMPTY, [event('hotspot', hotspot('a', 0.8)), event('hotspot', hotspot('a', 0.95))])
    expect(board.hotspots.map((one) => one.utilization)).toEqual([0.95])
  })

  test('an event with `until` removes the hotspot', () => {
    const board = reduce(EMPTY, [event('hotspot', hotspot('a')), event('hotspot', hotspot('b'))])
    const cooled = reduce(board, [event('hotspot', hotspot('a', 0.5, '2026-03-02T09:05:00Z'))])
    expect(cooled.hotspots.map((one) => one.link)).toEqual(['b'])
  })

  test('racks without links set no time', () => {
    const bare = {
      items: racks('2026-03-02T09:00:01Z', null).items.map((one) => ({ ...one, up: null, down: null })),
    }
    const board = reduce(EMPTY, [event('racks', bare)])
    expect([board.racks.length, board.telemetryTime]).toEqual([1, null])
  })

  test('a leader event counts as a change, and unknown or invalid events are ignored', () => {
    const leader = event('leader', { role: 'leader', leader: null })
    const board = reduce(EMPTY, [
      leader,
      event('weather', 'fair'),
      { name: 'racks', data: '{', id: null },
      event('racks', {}),
    ])
    expect(board).toEqual({ ...EMPTY, changes: 1 })
  })
})
