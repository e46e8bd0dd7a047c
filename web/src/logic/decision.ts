import type { Candidate, Decided, Decision } from '../api/types'

/** Parts of a list that are told one by one. */
const TOLD = 6

/** What was asked, as pairs of a name and a text. What was not said is left out, and so are curves of a workload. */
export function asked(request: object): [string, string][] {
  const { workload } = request as { workload?: object }
  if (workload) return asked({ ...workload, curves: null, model: null })
  return Object.entries(request)
    .map(([name, value]): [string, string] => [name.replaceAll('_', ' '), words(value)])
    .filter(([, text]) => text !== '')
}

function words(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (Array.isArray(value)) {
    const more = value.length > TOLD ? [`${value.length - TOLD} more`] : []
    return [...value.slice(0, TOLD).map(words), ...more].filter(Boolean).join(', ')
  }
  if (typeof value !== 'object') return String(value)
  const { name } = value as { name?: unknown }
  if (typeof name === 'string') return name
  const parts = asked(value)
  return parts.map(([name, text]) => `${name} ${text}`).join(' ')
}

/** What each host of a decision is for: the names of tasks; null for copies, of which one is like the other. */
export function purposes(decision: Decision): (string | null)[] {
  const { tasks } = decision.request as { tasks?: { name?: string }[] }
  return decision.hosts.map((_, at) => tasks?.[at]?.name ?? null)
}

/** Where each task was placed that was moved since; null for those that were not. */
export function moved({ hosts, why }: Pick<Decided, 'hosts' | 'why'>): (string | null)[] {
  return hosts.map((host, at) => {
    const first = why.find((one) => one.verdict === 'chosen' && one.objectives?.task === at)
    return first && first.candidate !== host ? first.candidate : null
  })
}

/** Hosts as they are told on a line: a chain as one, tasks side by side. */
export function line({ kind, hosts }: Pick<Decision, 'kind' | 'hosts'>): string {
  return hosts.join(kind === 'replicas' ? ' → ' : ', ') || 'nowhere'
}

export interface Level {
  title: string
  rows: Candidate[]
}

/**
 * Candidates level by level, as they were looked at: racks and then hosts in them, or the hosts for each task.
 *
 * @param domain What a candidate is: `rack`, `pod` or `host`.
 * @param tasks Names of tasks, by their position.
 */
export function levels(
  why: Candidate[],
  domain: (name: string) => string,
  tasks: (string | null)[] = [],
): Level[] {
  const found: Level[] = []
  for (const one of why) {
    const task = one.objectives ? (tasks[one.objectives.task] ?? String(one.objectives.task)) : null
    const title = task === null ? `${domain(one.candidate)}s` : `hosts for ${task}`
    const last = found.at(-1)
    if (last?.title === title) last.rows.push(one)
    else found.push({ title, rows: [one] })
  }
  for (const level of found) level.rows = byVerdict(level.rows)
  return found
}

/** Those chosen, then those outranked, then those refused; each in its order. */
function byVerdict(rows: Candidate[]): Candidate[] {
  const order = ['chosen', 'outranked', 'refused']
  return [...rows].sort((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict))
}

export interface Difference {
  /** Places in the decision whose host the other policy would not take. */
  left: Set<number>
  /** Places in the other's that this one does not have. */
  taken: Set<number>
  /** What the other's narrowest link has left, over what this one's had; null if either looked at none. */
  factor: number | null
  sentence: string
}

/** What another policy would do differently. Copies are alike, so their order is no difference; each task is itself. */
export function difference(made: Decision, other: Decided): Difference {
  const alike = made.kind === 'replicas'
  const without = (own: string[], theirs: string[]) =>
    new Set(own.flatMap((host, at) => ((alike ? theirs.includes(host) : theirs[at] === host) ? [] : [at])))
  const left = without(made.hosts, other.hosts)
  const taken = without(other.hosts, made.hosts)
  const [own, theirs] = [made.limit?.value_bps, other.limit?.value_bps]
  const factor = own && theirs !== undefined ? theirs / own : null
  return { left, taken, factor, sentence: sentence(made, other, left, taken) }
}

function sentence(made: Decision, other: Decided, left: Set<number>, taken: Set<number>): string {
  if (other.hosts.length === 0) return `${other.policy} would place it nowhere.`
  if (left.size === 0 && taken.size === 0)
    return made.hosts.join() === other.hosts.join()
      ? `${other.policy} would choose the same.`
      : `${other.policy} would choose the same hosts in another order.`
  if (made.hosts.length === 1 && other.hosts.length === 1)
    return `${other.policy} would choose ${other.hosts[0]} instead of ${made.hosts[0]}.`
  return `${other.policy} would choose ${taken.size} of ${other.hosts.length} hosts differently.`
}
