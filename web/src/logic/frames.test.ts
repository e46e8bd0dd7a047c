import { expect, test } from 'vitest'
import type { Snapshot } from '../api/types'
import { RackFrames } from './frames'

const HEAD = { time: '2026-03-02T09:00:00Z', telemetry: null, cluster_version: '1', resolution: 0.01 }
const WHOLE: Snapshot = {
  ...HEAD,
  id: 'a',
  since: null,
  racks: {
    rack: ['r0', 'r1', 'r2'],
    pod: ['p0', null, null],
    uplink: ['r0:uplink', 'r1:uplink', null],
    downlink: ['r0:downlink', 'r1:downlink', null],
    up_steps: [43, 20, null],
    down_steps: [null, 10, null],
    up_hot_since: [null, null, null],
    down_hot_since: [null, null, null],
  },
}

test('a difference changes the rows that it has', () => {
  const frames = new RackFrames()
  expect(frames.apply(WHOLE).map(({ rack, up }) => [rack, up?.utilization ?? null])).toEqual([
    ['r0', 0.43],
    ['r1', 0.2],
    ['r2', null],
  ])
  const racks = frames.apply({
    ...HEAD,
    id: 'b',
    since: 'a',
    time: '2026-03-02T09:00:01Z',
    racks: {
      rows: [0, 1],
      up_steps: [-3, null],
      down_steps: [12, 0],
      up_hot_since: [null, null],
      down_hot_since: [null, '2026-03-02T09:00:00Z'],
    },
  })
  expect(frames.id).toBe('b')
  expect(racks[0]).toMatchObject({
    pod: 'p0',
    up: { utilization: 0.4 },
    down: { utilization: 0.12, last: null },
  })
  // The link is no longer seen, and its last value stays with its time.
  expect(racks[1]?.up).toEqual({
    link: 'r1:uplink',
    utilization: null,
    hot_since: null,
    last: { utilization: 0.2, time: Date.parse(HEAD.time) },
  })
  expect(racks[1]?.down).toMatchObject({ utilization: 0.1, hot_since: '2026-03-02T09:00:00Z' })
  expect(racks[2]).toEqual({ rack: 'r2', pod: null, up: null, down: null })
})

test('a difference from another snapshot is an error, and a restart leads to a whole snapshot', () => {
  const frames = new RackFrames()
  frames.apply(WHOLE)
  expect(() => frames.apply({ ...HEAD, id: 'c', since: 'b', racks: { rows: [] } })).toThrow('b is not known')
  frames.restart()
  expect(frames.id).toBeNull()
  expect(frames.apply(WHOLE)).toHaveLength(3)
})
