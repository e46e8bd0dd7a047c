import type { Problem } from '../api/problem'
import { age } from './format'

/** What the page knows of its connection. */
export interface Facts {
  phase: 'connecting' | 'open' | 'lost' | 'denied'
  problem: Problem | null
  /** Milliseconds, by this machine's clock. */
  now: number
  /** When the last tick of racks came; null before the first. */
  tick: number | null
  /** When the next attempt is made, if it is lost. */
  retry: number | null
  interval_s: number
  /** How old the newest telemetry of racks' links is, by the service's clock; null if there is none. */
  telemetry_s: number | null
  /** Whether racks have links of their own at all. */
  links: boolean
}

export interface Connection {
  kind: 'connecting' | 'live' | 'silent' | 'old' | 'lost' | 'denied'
  /** Two words for the head of the page. */
  short: string
  /** What it means and what to do; null while all is well. */
  sentence: string | null
}

/** Ticks that may fail to come before the page says so. */
const MISSED = 3

/** What is told of the connection. Only `live` means that what is shown is of now. */
export function connectionOf(facts: Facts): Connection {
  const { phase, problem, now, tick, retry, interval_s, telemetry_s, links } = facts
  const since = tick === null ? '' : ` What you see is ${age((now - tick) / 1000)} old.`
  const patience = Math.max(5, MISSED * interval_s)
  if (phase === 'denied')
    return {
      kind: 'denied',
      short: 'no access',
      sentence: `${problem?.title ?? 'A token is needed'}. Give a token to go on.`,
    }
  if (phase === 'lost') {
    const next =
      retry === null ? '' : ` Trying again ${retry - now > 1000 ? `in ${age((retry - now) / 1000)}` : 'now'}.`
    return {
      kind: 'lost',
      short: 'not connected',
      sentence: `${problem?.title ?? 'The connection was lost'}.${since}${next}`,
    }
  }
  if (phase === 'connecting') return { kind: 'connecting', short: 'connecting', sentence: null }
  if (tick === null) return { kind: 'connecting', short: 'waiting for data', sentence: null }
  if (now - tick > patience * 1000)
    return {
      kind: 'silent',
      short: 'silent',
      sentence: `The service is connected but says nothing.${since}`,
    }
  if (!links) return { kind: 'live', short: 'live', sentence: null }
  if (telemetry_s === null)
    return {
      kind: 'old',
      short: 'no telemetry',
      sentence:
        'No link is seen: nothing was reported. Start an agent on the hosts, or give the service a Prometheus.',
    }
  if (telemetry_s > patience)
    return {
      kind: 'old',
      short: 'old telemetry',
      sentence: `The newest report is ${age(telemetry_s)} old. See whether the agents run and reach the service.`,
    }
  return { kind: 'live', short: 'live', sentence: null }
}
