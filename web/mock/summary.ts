import type { Comparisons, Decision, Migration, Summary } from '../src/api/types'
import { ON_SINCE } from './modes.ts'
import { random } from './random.ts'

const DAY_MS = 86_400_000
/** At the busiest hour: decisions per second, and link-hours that are hot in an hour with Leeward. */
const BUSIEST = { decided: 0.21, hot_h: 4.8 }
/** The part of the load at night. */
const NIGHT = 0.15
/** Hour of the day with the highest load, UTC. */
const NOON_H = 13

/** Comparisons of decisions by kind. The choices of a guarantee have no loads, so they do not compare. */
export function comparisons(decisions: Decision[]): Comparisons[] {
  return ['replicas', 'tasks', 'workload', 'volumes'].map((kind) => {
    const own = decisions.filter((one) => one.kind === kind)
    const count = (effect: ReturnType<typeof effectOf>) =>
      own.filter((one) => effectOf(one) === effect).length
    const [better, same, worse] = [count('better'), count('same'), count('worse')]
    return { kind, better, same, worse, unknown: count('unknown'), refused: 0 }
  })
}

/** Effect of Leeward's choice: fewer hot links, or as many and a less loaded fullest link. */
function effectOf({ beside }: Decision): 'better' | 'same' | 'worse' | 'unknown' {
  const { load, decided } = beside ?? {}
  if (!load || !decided || load.unknown > 0 || decided.unknown > 0) return 'unknown'
  const gain = load.hot - decided.hot || (load.utilization ?? 0) - (decided.utilization ?? 0)
  return gain > 0 ? 'better' : gain < 0 ? 'worse' : 'same'
}

/** Load at a time as a part of that of the busiest hour. */
function busyAt(ms: number): number {
  const turn = (ms / DAY_MS - NOON_H / 24) * 2 * Math.PI
  return NIGHT + ((1 - NIGHT) * (1 + Math.cos(turn))) / 2
}

/**
 * Summary of a time span. Links are seen hot for about as long as the estimate of the policies that decided: Leeward's since
 * the modes are on, the default ones before.
 *
 * @param decisions Those since the start of the service: their comparisons have the proportions of the whole span.
 * @param moves Moves of the last hour.
 * @param links Number of links with telemetry.
 */
export function summary(
  decisions: Decision[],
  moves: Migration[],
  links: number,
  since: string,
  to: string,
): Summary {
  const [from, end] = [Date.parse(since), Date.parse(to)]
  const span_s = (end - from) / 1000
  const step_s = span_s <= 90_000 ? 600 : span_s <= 700_000 ? 3600 : 21_600
  const count = Math.ceil(span_s / step_s)
  const steps = Array.from({ length: count }, (_, at) => {
    const ends = from + (at + 1) * step_s * 1000
    const on = ends > Date.parse(ON_SINCE)
    const busy = busyAt(ends)
    const draw = random(7, at)
    const with_h = (step_s / 3600) * BUSIEST.hot_h * busy * (0.85 + 0.3 * draw())
    const without_h = with_h * (2 + 0.5 * draw())
    return {
      on,
      busy,
      ends: new Date(Math.min(ends, end)).toISOString(),
      decided: Math.round(step_s * BUSIEST.decided * busy),
      hot_h: (on ? with_h : without_h) * (0.97 + 0.08 * draw()),
      with_h,
      without_h,
    }
  })
  const sum = (pick: (one: (typeof steps)[number]) => number) =>
    steps.reduce((all, one) => all + pick(one), 0)
  const decided = sum((one) => one.decided)
  const off = decided && sum((one) => (one.on ? 0 : one.decided)) / decided
  const kinds = comparisons(decisions)
    .map((one) => counts(one, decisions, decided, off))
    .filter((one) => one.decided > 0)
  const all = (pick: (one: Summary['decisions'][number]) => number) =>
    kinds.reduce((sum, one) => sum + pick(one), 0)
  const guarantees = all((one) => (one.kind === 'volumes' ? one.decided : 0))
  const hours = sum((one) => (one.busy * step_s) / 3600) / busyAt(end)
  const moved = (state: string, part: number) =>
    Math.round(moves.filter((one) => one.state === state || state === 'advised').length * hours * part)
  return {
    from: since,
    to,
    step_s,
    decisions: kinds,
    moves: {
      considered: moved('advised', off),
      advised: moved('advised', 1 - off),
      done: moved('done', 1 - off),
      refused: moved('refused', 1 - off),
    },
    hot_link_hours: {
      seen: sum((one) => one.hot_h),
      with_leeward: sum((one) => one.with_h),
      without_leeward: sum((one) => one.without_h),
      observed: (span_s / 3600) * links,
      compared: all((one) => one.decided) - guarantees,
      uncompared: guarantees,
    },
    steps: steps.map(({ ends, decided, hot_h, with_h, without_h }) => ({
      ends,
      decided,
      hot_h,
      with_h,
      without_h,
    })),
    mattered: mattered(decisions),
  }
}

/** The ten decisions whose two choices differ most. */
function mattered(decisions: Decision[]): Summary['mattered'] {
  return decisions
    .filter((one) => ['better', 'worse'].includes(effectOf(one)))
    .map((decision) => {
      const { load, decided } = decision.beside as NonNullable<Decision['beside']>
      const gain = {
        hot_links: (load?.hot ?? 0) - (decided?.hot ?? 0),
        utilization: (load?.utilization ?? 0) - (decided?.utilization ?? 0),
      }
      return { gain, decision }
    })
    .sort(
      ({ gain: a }, { gain: b }) =>
        Math.abs(b.hot_links) - Math.abs(a.hot_links) || Math.abs(b.utilization) - Math.abs(a.utilization),
    )
    .slice(0, 10)
}

/** Counts of a kind in proportion to those since the start of the service. */
function counts(
  { kind, better, same, worse, unknown }: Comparisons,
  decisions: Decision[],
  decided: number,
  off: number,
): Summary['decisions'][number] {
  const scale = (count: number) => Math.round((decided * count) / Math.max(1, decisions.length))
  const parts = { better: scale(better), same: scale(same), worse: scale(worse), unknown: scale(unknown) }
  const all = parts.better + parts.same + parts.worse + parts.unknown
  const fallback = decisions.filter((one) => one.kind === kind && one.note !== null).length
  return {
    kind,
    decided: all,
    by_default: Math.round(all * off),
    refused: 0,
    blind: 0,
    fallback: scale(fallback),
    ...parts,
    one_refused: 0,
  }
}
