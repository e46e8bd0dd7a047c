import type { Decision, Summary } from '../src/api/types'
import { random } from './random.ts'

/** Summary of a time span: a day has a little more load at noon, and Leeward's choices meet less of it. */
export function summary(decisions: Decision[], since: string, to: string): Summary {
  const [from, end] = [Date.parse(since), Date.parse(to)]
  const span_s = (end - from) / 1000
  const step_s = span_s <= 90_000 ? 600 : span_s <= 700_000 ? 3600 : 21_600
  const count = Math.ceil(span_s / step_s)
  const steps = Array.from({ length: count }, (_, at) => {
    const ends = from + (at + 1) * step_s * 1000
    const busy = (1 + Math.sin((ends / 86_400_000) * 6.283 - 1.5)) / 2
    const draw = random(7, at)
    const without_h = (step_s / 3600) * (0.4 + 5 * busy + draw())
    return {
      ends: new Date(Math.min(ends, end)).toISOString(),
      decided: Math.round(step_s * (0.2 + busy)),
      hot_h: without_h * (0.9 + 0.2 * draw()),
      with_h: without_h * (0.35 + 0.2 * draw()),
      without_h,
    }
  })
  const sum = (pick: (one: (typeof steps)[number]) => number) =>
    steps.reduce((all, one) => all + pick(one), 0)
  const compared = decisions.filter((one) => one.beside?.load && one.beside.decided)
  const mattered = compared
    .map((decision) => {
      const { load, decided } = decision.beside as NonNullable<Decision['beside']>
      const gain = {
        hot_links: (load?.hot ?? 0) - (decided?.hot ?? 0),
        utilization: (load?.utilization ?? 0) - (decided?.utilization ?? 0),
      }
      return { gain, decision }
    })
    .sort((a, b) => Math.abs(b.gain.utilization) - Math.abs(a.gain.utilization))
    .slice(0, 10)
  const decided = Math.round(sum((one) => one.decided))
  return {
    from: since,
    to,
    step_s,
    decisions: [
      counts('replicas', Math.round(decided * 0.9)),
      counts('tasks', Math.round(decided * 0.09)),
      counts('volumes', Math.round(decided * 0.01)),
    ],
    moves: { considered: 0, advised: 41, done: 33, refused: 5 },
    hot_link_hours: {
      seen: sum((one) => one.hot_h),
      with_leeward: sum((one) => one.with_h),
      without_leeward: sum((one) => one.without_h),
      observed: (span_s / 3600) * 78,
      compared: Math.round(decided * 0.98),
      uncompared: Math.round(decided * 0.02),
    },
    steps,
    mattered,
  }
}

function counts(kind: string, decided: number): Summary['decisions'][number] {
  const part = (share: number) => Math.round(decided * share)
  return {
    kind,
    decided,
    by_default: part(0.1),
    refused: part(0.001),
    blind: part(0.02),
    fallback: part(0.004),
    better: part(0.14),
    same: part(0.79),
    worse: part(0.015),
    unknown: part(0.02),
    one_refused: part(0.001),
  }
}
