import type { Problem } from '../api/problem'
import { age } from './format'

/** Inputs of the connection state. */
export interface ConnectionInputs {
  phase: 'connecting' | 'open' | 'lost' | 'denied'
  problem: Problem | null
  /** Current time in milliseconds, by this machine's clock. */
  now: number
  /** Time of the last racks data; null before the first. */
  tick: number | null
  /** Time of the next attempt after a lost connection; else null. */
  retry: number | null
  interval_s: number
  /** Age of the newest telemetry of rack links, by the service's clock; null without telemetry. */
  telemetry_s: number | null
  /** True if any rack has links of its own. */
  links: boolean
}

export interface Connection {
  kind: 'connecting' | 'live' | 'silent' | 'old' | 'lost' | 'denied'
  /** At most three words for the page header. */
  short: string
  /** Explanation and next step for the reader; null while the data is current. */
  sentence: string | null
}

/** Number of missed ticks after which the page reports that the service sends no data. */
const MISSED_TICKS = 3

/** Computes the connection state. Only `live` means that the page shows current data. */
export function connectionOf(inputs: ConnectionInputs): Connection {
  const { phase, problem, now, tick, retry, interval_s, telemetry_s, links } = inputs
  const since = tick === null ? '' : ` The page shows data from ${age((now - tick) / 1000)} ago.`
  const timeout_s = Math.max(5, MISSED_TICKS * interval_s)
  if (phase === 'denied')
    return {
      kind: 'denied',
      short: 'no access',
      sentence: `${problem?.title ?? 'Token required'}. Enter a token to continue.`,
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
  if (now - tick > timeout_s * 1000)
    return {
      kind: 'silent',
      short: 'no data',
      sentence: `The connection is open, but the service sends no data.${since}`,
    }
  if (!links) return { kind: 'live', short: 'live', sentence: null }
  if (telemetry_s === null)
    return {
      kind: 'old',
      short: 'no telemetry',
      sentence:
        'No telemetry is available. Start an agent on the hosts, or connect the service to a Prometheus server.',
    }
  if (telemetry_s > timeout_s)
    return {
      kind: 'old',
      short: 'old telemetry',
      sentence: `The newest report is ${age(telemetry_s)} old. Check that the agents run and reach the service.`,
    }
  return { kind: 'live', short: 'live', sentence: null }
}
