import { describe, expect, test } from 'vitest'
import { Problem } from '../api/problem'
import { connectionOf, type Facts } from './connection'

const good: Facts = {
  phase: 'open',
  problem: null,
  now: 100_000,
  tick: 99_000,
  retry: null,
  interval_s: 1,
  telemetry_s: 1,
  links: true,
}
const kind = (change: Partial<Facts>) => connectionOf({ ...good, ...change }).kind

describe('only what is of now is live', () => {
  test('a connection that brings ticks of fresh telemetry', () => {
    expect(connectionOf(good)).toEqual({ kind: 'live', short: 'live', sentence: null })
  })
  test.each<[string, Partial<Facts>, string]>([
    ['before the first tick', { tick: null }, 'connecting'],
    ['after three intervals without one', { tick: 94_000 }, 'silent'],
    ['with intervals of 30 s, not before 90 s', { tick: 20_000, interval_s: 30, telemetry_s: 30 }, 'live'],
    ['with telemetry that stopped', { telemetry_s: 60 }, 'old'],
    ['without telemetry', { telemetry_s: null }, 'old'],
    ['in a network whose racks have no links to tell of', { telemetry_s: null, links: false }, 'live'],
    ['when the connection is lost, however fresh the data', { phase: 'lost', tick: 99_999 }, 'lost'],
    ['without access', { phase: 'denied' }, 'denied'],
  ])('%s', (_, change, expected) => expect(kind(change)).toBe(expected))

  test('what is lost says how old the page is and when it tries again', () => {
    const lost = connectionOf({
      ...good,
      phase: 'lost',
      problem: Problem.unreachable('x'),
      tick: 88_000,
      retry: 104_000,
    })
    expect(lost.sentence?.replaceAll('\u00a0', ' ')).toBe(
      'The service does not answer. What you see is 12 s old. Trying again in 4 s.',
    )
  })
})
