import { describe, expect, test } from 'vitest'
import type { Decision, Events } from '../api/types'
import { EMPTY, MAX_DECISIONS, reduce, withDecisions, withRacks } from './board'
import type { LiveRack } from './frames'

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
  mode: 'on',
  by_default: false,
  beside: null,
  ...extra,
})
const hotspot = (link: string, utilization = 0.8, until: string | null = null): Events['hotspot'] => ({
  link,
  since: '2026-03-02T09:00:00Z',
  age_s: 1,
  utilization,
  until,
})
const racks = (utilization: number | null, hot_since: string | null): LiveRack[] => [
  {
    rack: 'r0',
    pod: null,
    up: { link: 'r0:uplink', utilization, hot_since, last: null },
    down: { link: 'r0:downlink', utilization: null, hot_since: null, last: null },
  },
]
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

  test('the time of the board is that of the newest telemetry, or null without telemetry', () => {
    expect(withRacks(EMPTY, racks(0.1, null), '2026-03-02T09:00:01Z').telemetryTime).toBe(
      Date.UTC(2026, 2, 2, 9, 0, 1),
    )
    expect(withRacks(EMPTY, racks(null, null), null).telemetryTime).toBeNull()
  })

  test('racks remove hotspots of cooled links and keep hotspots of unknown links', () => {
    const hot = ['r0:uplink', 'r0:downlink', 'r9h1:egress'].map((name) => event('hotspot', hotspot(name)))
    const board = reduce(EMPTY, hot)
    expect(withRacks(board, racks(0.7, '2026-03-02T09:00:00Z'), null).hotspots).toHaveLength(3)
    const cooled = withRacks(board, racks(0.8, null), null)
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

  test('leader and mode events count as changes, and unknown or invalid events are ignored', () => {
    const board = reduce(EMPTY, [
      event('leader', { role: 'leader', leader: null }),
      event('modes', { by: 'ada', reason: null }),
      event('weather', 'fair'),
      { name: 'hotspot', data: '{', id: null },
    ])
    expect(board).toEqual({ ...EMPTY, changes: 2 })
  })
})
