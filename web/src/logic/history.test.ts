import { describe, expect, test } from 'vitest'
import type { LiveLink, LiveRack } from './frames'
import { hotTime, LinkHistory } from './history'

const T = Date.UTC(2026, 2, 2, 9)
const iso = (ms: number) => new Date(ms).toISOString()

function link(name: string, utilization: number | null): LiveLink {
  return { link: name, utilization, hot_since: null, last: null }
}

function rack(up: number | null, down: number | null = null): LiveRack {
  return { rack: 'r0', pod: null, up: link('r0:uplink', up), down: link('r0:downlink', down) }
}

const up = (history: LinkHistory, columns = 100) =>
  Array.from(history.grid(columns).rows.get('r0:uplink') ?? [], (x) =>
    Number.isNaN(x) ? null : Number(x.toFixed(3)),
  )

describe('stored history and live ticks share the same columns', () => {
  test('live ticks continue after the history and update its last column as a mean', () => {
    const history = new LinkHistory(10_000, 100)
    history.load({ from: iso(T), step_s: 10, series: [{ link: 'r0:uplink', utilization: [0.1, 0.2, 0.3] }] })
    history.add(T + 29_000, [rack(0.5)])
    history.add(T + 31_000, [rack(0.6)])
    history.add(T + 35_000, [rack(0.8)])
    expect(up(history)).toEqual([0.1, 0.2, 0.4, 0.7])
    expect(history.grid(100).from).toBe(T)
  })

  test("a history that begins between columns uses the column of each step's middle", () => {
    const history = new LinkHistory(10_000, 100)
    history.load({
      from: iso(T + 3_000),
      step_s: 10,
      series: [{ link: 'r0:uplink', utilization: [0.1, 0.2] }],
    })
    expect(up(history)).toEqual([0.1, 0.2])
    expect(history.grid(100).from).toBe(T)
  })

  test('shorter steps are averaged, longer ones cover all their columns', () => {
    const short = new LinkHistory(10_000, 100)
    short.load({
      from: iso(T),
      step_s: 5,
      series: [{ link: 'r0:uplink', utilization: [0.2, 0.4, null, 0.5] }],
    })
    expect(up(short)).toEqual([0.3, 0.5])
    const long = new LinkHistory(10_000, 100)
    long.load({ from: iso(T), step_s: 30, series: [{ link: 'r0:uplink', utilization: [0.2, null, 0.5] }] })
    expect(up(long)).toEqual([0.2, 0.2, 0.2, null, null, null, 0.5, 0.5, 0.5])
  })

  test('a gap of time is a gap in the map', () => {
    const history = new LinkHistory(10_000, 100)
    history.add(T, [rack(0.5)])
    history.add(T + 40_000, [rack(0.6)])
    expect(up(history)).toEqual([0.5, null, null, null, 0.6])
  })

  test('an unknown load is a gap, not zero', () => {
    const history = new LinkHistory(10_000, 100)
    history.add(T, [rack(0.5)])
    history.add(T + 10_000, [rack(null)])
    history.add(T + 20_000, [rack(0.6)])
    expect(up(history)).toEqual([0.5, null, 0.6])
  })

  test('a late tick changes nothing', () => {
    const history = new LinkHistory(10_000, 100)
    history.add(T + 20_000, [rack(0.5)])
    history.add(T, [rack(0.9)])
    expect(up(history)).toEqual([0.5])
  })

  test('the number of columns has a limit, and links that appear later are aligned', () => {
    const history = new LinkHistory(10_000, 3)
    for (let at = 0; at < 5; at++) history.add(T + at * 10_000, [rack(at / 10, at === 4 ? 0.9 : null)])
    expect(up(history)).toEqual([0.2, 0.3, 0.4])
    expect(Array.from(history.grid(9).rows.get('r0:downlink')!)).toEqual([NaN, NaN, Math.fround(0.9)])
    expect(history.grid(2).from).toBe(T + 30_000)
    history.add(T + 10_000_000, [rack(0.7)])
    expect(up(history)).toEqual([null, null, 0.7])
  })
})

test('the hot time counts known samples only, and says how many of all are known', () => {
  const history = new LinkHistory(10_000, 10)
  expect(hotTime(history.grid(10), 0.75, 2)).toEqual({ share: null, seen: 0 })
  history.add(T, [rack(0.75, 0.1)])
  history.add(T + 10_000, [rack(null, 0.2)])
  history.add(T + 20_000, [rack(0.9, null)])
  expect(hotTime(history.grid(10), 0.75, 2)).toEqual({ share: 0.5, seen: 4 / 6 })
  // Two further links have no sample at all.
  expect(hotTime(history.grid(10), 0.75, 4).seen).toBe(4 / 12)
})
