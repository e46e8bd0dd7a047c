import type { Enforcement, EnforcementPlace, Enforcer, Workload } from '../api/types'

/** Tag and explanation of a state. */
interface Meaning {
  word: string
  sentence: string
  tag: 'good' | 'warn' | 'bad' | ''
}

export const PROMISE_STATES: Record<Enforcement['state'], Meaning> = {
  decided: { word: 'Decided', sentence: 'No enforcer has applied the promise yet.', tag: 'warn' },
  partial: { word: 'In part', sentence: 'Enforcers have applied the promise at some places.', tag: 'warn' },
  enforced: { word: 'Enforced', sentence: 'Enforcers have applied the promise at all places.', tag: 'good' },
  seen: {
    word: 'Seen',
    sentence: 'The promise is enforced, and the latency of its requests is known.',
    tag: 'good',
  },
  unenforced: {
    word: 'Not enforced',
    sentence: 'An enforcer is silent, cannot apply the promise, or has found it changed.',
    tag: 'bad',
  },
}

export const ALERTS: Record<Enforcement['alerts'][number], Meaning> = {
  fast: {
    word: 'fast',
    sentence: 'At this pace, 2 % of what the SLO permits in 30 days is used up in an hour.',
    tag: 'bad',
  },
  slow: {
    word: 'slow',
    sentence: 'At this pace, 5 % of what the SLO permits in 30 days is used up in six hours.',
    tag: 'warn',
  },
  lasting: {
    word: 'lasting',
    sentence: 'For three days, as many requests were late as the SLO permits.',
    tag: 'warn',
  },
}

/** Window whose burn rate a row shows. */
const SHOWN_WINDOW_S = 3600

/** Share of late requests in the last hour relative to the share that the SLO permits; null if it is unknown. */
export function hourlyBurn({ enforcement }: Workload): number | null {
  return enforcement?.burn.find(({ window_s }) => window_s === SHOWN_WINDOW_S)?.rate ?? null
}

/** Late requests, and those that the SLO permits of all that were counted; null without requests or permitted ones. */
export function usedUp({ slo, enforcement }: Workload): { late: number; permitted: number } | null {
  const total = enforcement?.total
  if (!total?.requests || slo.percentile >= 100) return null
  return { late: total.late, permitted: total.requests * (1 - slo.percentile / 100) }
}

/** Number of places where the promise is applied, of all: `2 of 3`. */
export function appliedPlaces(places: EnforcementPlace[]): string {
  return `${places.filter(({ state }) => state === 'applied').length} of ${places.length}`
}

/** Sentence about a place where the promise is not applied; null if it is. */
export function openPlace(place: EnforcementPlace): string | null {
  const { kind, host, stage, enforcer, detail } = place
  const why = detail === null ? '' : `: ${detail}`
  switch (place.state) {
    case 'applied':
      return null
    case 'absent':
      return `${stage}: no ${kind} enforcer on ${host}`
    case 'pending':
      return `${stage}: ${enforcer} has not applied it yet`
    case 'expired':
      return `${stage}: ${enforcer} is silent`
    case 'refused':
      return `${stage}: ${enforcer} cannot apply it${why}`
    case 'drifted':
      return `${stage}: ${enforcer} found it changed${why}`
  }
}

/** Sentences about all places where the promise of a workload is not applied. */
export function openPlaces({ enforcement }: Workload): string[] {
  return (enforcement?.places ?? []).map(openPlace).filter((one) => one !== null)
}

/** Sorts enforcers: silent ones first, then those that are behind, then by name. */
export function byUrgency(enforcers: Enforcer[]): Enforcer[] {
  const rank = (one: Enforcer) => (one.state === 'expired' ? 0 : isBehind(one) ? 1 : 2)
  return [...enforcers].sort((a, b) => rank(a) - rank(b) || (a.enforcer < b.enforcer ? -1 : 1))
}

/** True if an enforcer has not yet applied the present version of its promises. */
export function isBehind({ version, current }: Enforcer): boolean {
  return version === null || version < current
}
