import { describe, expect, test } from 'vitest'
import { Problem } from '../api/problem'
import { connectionOf, type ConnectionInputs } from './connection'

const good: ConnectionInputs = {
  phase: 'open',
  problem: null,
  now: 100_000,
  tick: 99_000,
  retry: null,
  interval_s: 1,
  telemetry_s: 1,
  links: true,
}
const kind = (change: Partial<ConnectionInputs>) => connectionOf({ ...good, ...change }).kind

describe('the state is live only with current data', () => {
  test('an open connection with recent ticks and fresh telemetry', () => {
    expect(connectionOf(good)).toEqual({ kind: 'live', short: 'live', sentence: null })
  })
  test.each<[string, Partial<ConnectionInputs>, string]>([
    ['before the first tick', { tick: null }, 'connecting'],
    ['after three intervals without a tick', { tick: 94_000 }, 'silent'],
    ['80 s after a tick, with intervals of 30 s', { tick: 20_000, interval_s: 30, telemetry_s: 30 }, 'live'],
    ['with telemetry that stopped', { telemetry_s: 60 }, 'old'],
    ['without telemetry', { telemetry_s: null }, 'old'],
    ['in a network without rack links', { telemetry_s: null, links: false }, 'live'],
    ['after a lost connection, even with fresh data', { phase: 'lost', tick: 99_999 }, 'lost'],
    ['without access', { phase: 'denied' }, 'denied'],
  ])('%s', (_, change, expected) => expect(kind(change)).toBe(expected))

  test('a lost connection shows the age of the data and the time of the next attempt', () => {
    const lost = connectionOf({
      ...good,
      phase: 'lost',
      problem: Problem.unreachable('x'),
      tick: 88_000,
      retry: 104_000,
    })
    expect(lost.sentence?.replaceAll('\u00a0', ' ')).toBe(
      'The service does not answer. The page shows data from 12 s ago. Trying again in 4 s.',
    )
  })
})
