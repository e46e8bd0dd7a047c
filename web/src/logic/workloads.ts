import type { Workload } from '../api/types'

export type Standing = 'missed' | 'unkept' | 'unbound' | 'kept'

/** Worst first. */
const ORDER: Standing[] = ['missed', 'unkept', 'unbound', 'kept']

export const STANDINGS: Record<Standing, { word: string; sentence: string }> = {
  missed: { word: 'Missed', sentence: 'It was seen to take longer than promised.' },
  unkept: { word: 'Not assured', sentence: 'The bound is above what was promised: it may be missed.' },
  unbound: { word: 'No bound', sentence: 'No bound was found, so nothing is assured.' },
  kept: { word: 'Kept', sentence: 'The bound is within what was promised.' },
}

/** How a promise stands. What was seen weighs more than what was computed. */
export function standing({ slo, bound_s, seen_s }: Workload): Standing {
  if (seen_s !== null && seen_s > slo.latency_s) return 'missed'
  if (bound_s === null) return 'unbound'
  return bound_s > slo.latency_s ? 'unkept' : 'kept'
}

/** The share of what was promised that the bound leaves; below 0 if it is not assured, null without a bound. */
export function headroom({ slo, bound_s }: Workload): number | null {
  return bound_s === null ? null : 1 - bound_s / slo.latency_s
}

/** What needs a look first; then by priority and name. */
export function byStanding(workloads: Workload[]): Workload[] {
  const rank = (workload: Workload) => ORDER.indexOf(standing(workload))
  return [...workloads].sort(
    (a, b) => rank(a) - rank(b) || a.priority - b.priority || (a.name < b.name ? -1 : 1),
  )
}

/** Where a time stands on a bar on which what was promised is at two thirds; longer ones end at its end. */
export function place(seconds: number, promised: number): number {
  return Math.min(1, (seconds / promised) * PROMISED)
}

export const PROMISED = 2 / 3
