import type { Workload } from '../api/types'

export type SloState = 'missed' | 'unassured' | 'unbound' | 'unenforced' | 'kept'

/** Worst first. */
const ORDER: SloState[] = ['missed', 'unassured', 'unbound', 'unenforced', 'kept']

export const SLO_STATES: Record<SloState, { word: string; sentence: string }> = {
  missed: { word: 'Missed', sentence: 'The measured latency is above the SLO.' },
  unassured: {
    word: 'Not assured',
    sentence: 'The latency bound is above the SLO: the workload may miss it.',
  },
  unbound: { word: 'No bound', sentence: 'No latency bound was found, so the SLO is not assured.' },
  unenforced: {
    word: 'Not enforced',
    sentence: 'The latency bound is within the SLO, but holds only if the promise is enforced at all places.',
  },
  kept: { word: 'Kept', sentence: 'The latency bound is within the SLO, and the promise is enforced.' },
}

/** State of a workload's SLO. A measured latency takes precedence over the computed bound, which assumes enforcement. */
export function sloState({ slo, bound_s, seen_s, enforcement }: Workload): SloState {
  if (seen_s !== null && seen_s > slo.latency_s) return 'missed'
  if (bound_s === null) return 'unbound'
  if (bound_s > slo.latency_s) return 'unassured'
  return enforcement?.state === 'enforced' || enforcement?.state === 'seen' ? 'kept' : 'unenforced'
}

/** Share of the SLO latency that the bound leaves; negative if the SLO is not assured, null without a bound. */
export function headroom({ slo, bound_s }: Workload): number | null {
  return bound_s === null ? null : 1 - bound_s / slo.latency_s
}

/** Sorts workloads by state, worst first, then by priority and name. */
export function bySloState(workloads: Workload[]): Workload[] {
  const rank = (workload: Workload) => ORDER.indexOf(sloState(workload))
  return [...workloads].sort(
    (a, b) => rank(a) - rank(b) || a.priority - b.priority || (a.name < b.name ? -1 : 1),
  )
}

/** Position of a latency on a bar with the SLO at two thirds; longer latencies stop at the end of the bar. */
export function barPosition(latency_s: number, slo_s: number): number {
  return Math.min(1, (latency_s / slo_s) * SLO_POSITION)
}

export const SLO_POSITION = 2 / 3
