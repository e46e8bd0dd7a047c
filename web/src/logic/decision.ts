import type { Candidate, PolicyResult, Decision, LinkLoad } from '../api/types'
import { quantity, size } from './format'

/** Maximum number of list items in a text. */
const MAX_ITEMS = 6

/** True for the request of a stripe, which has chunks of an erasure code instead of copies. */
function isCoded(request: object): boolean {
  return typeof (request as { coding?: unknown }).coding === 'string'
}

/** Word for the kind of a decision: `chunks` for those of a stripe, which are no replicas. */
export function kindWord({ kind, request }: Pick<Decision, 'kind' | 'request'>): string {
  return isCoded(request) ? 'chunks' : kind
}

/** Lists the fields of a request as name and text. Omits empty fields and the curves of a workload. */
export function requestFields(request: object): [string, string][] {
  const { workload } = request as { workload?: object }
  if (workload) return requestFields({ ...workload, curves: null, model: null })
  if (isCoded(request)) {
    const { replicas, ...others } = request as { replicas?: unknown }
    return [['chunks', fieldText(replicas)], ...fieldsOf(others)]
  }
  return fieldsOf(request)
}

function fieldsOf(request: object): [string, string][] {
  return Object.entries(request)
    .map(([name, value]): [string, string] => [name.replaceAll('_', ' '), fieldText(value)])
    .filter(([, text]) => text !== '')
}

function fieldText(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (Array.isArray(value)) {
    const more = value.length > MAX_ITEMS ? [`${value.length - MAX_ITEMS} more`] : []
    return [...value.slice(0, MAX_ITEMS).map(fieldText), ...more].filter(Boolean).join(', ')
  }
  if (typeof value !== 'object') return String(value)
  const { name } = value as { name?: unknown }
  if (typeof name === 'string') return name
  const parts = requestFields(value)
  return parts.map(([name, text]) => `${name} ${text}`).join(' ')
}

/** Task name of each host of a decision; null for replicas and chunks, which are interchangeable. */
export function taskNames(decision: Decision): (string | null)[] {
  const { tasks } = decision.request as { tasks?: { name?: string }[] }
  return decision.hosts.map((_, at) => tasks?.[at]?.name ?? null)
}

/** Original host of each task that was moved since the decision; null for the other tasks. */
export function originalHosts({ hosts, why }: Pick<PolicyResult, 'hosts' | 'why'>): (string | null)[] {
  return hosts.map((host, at) => {
    const first = why.find((one) => one.verdict === 'chosen' && one.objectives?.task === at)
    return first && first.candidate !== host ? first.candidate : null
  })
}

/** Formats hosts on one line: replicas as a chain, chunks and tasks as a list. */
export function formatHosts({ kind, hosts, request }: Pick<Decision, 'kind' | 'hosts' | 'request'>): string {
  return hosts.join(kindWord({ kind, request }) === 'replicas' ? ' → ' : ', ') || 'not placed'
}

export interface Level {
  title: string
  rows: Candidate[]
}

/**
 * Groups candidates by level, in the order of the search: racks and then their hosts, or the hosts for each task.
 *
 * @param domain Kind of a candidate: `rack`, `pod` or `host`.
 * @param tasks Task names, by position.
 */
export function levels(
  why: Candidate[],
  domain: (name: string) => string,
  tasks: (string | null)[] = [],
): Level[] {
  const result: Level[] = []
  for (const one of why) {
    const task = one.objectives ? (tasks[one.objectives.task] ?? String(one.objectives.task)) : null
    const title = task === null ? `${domain(one.candidate)}s` : `hosts for ${task}`
    const last = result.at(-1)
    if (last?.title === title) last.rows.push(one)
    else result.push({ title, rows: [one] })
  }
  for (const level of result) level.rows = byVerdict(level.rows)
  return result
}

/** Sorts candidates by verdict: chosen, outranked, refused. Stable within a verdict. */
function byVerdict(rows: Candidate[]): Candidate[] {
  const order = ['chosen', 'outranked', 'refused']
  return [...rows].sort((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict))
}

export interface Difference {
  /** Positions in the decision whose host the other policy does not choose. */
  removed: Set<number>
  /** Positions in the other result whose host the decision does not have. */
  added: Set<number>
  /** Residual rate of the other result's bottleneck over that of the decision; null if a policy used no link loads. */
  factor: number | null
  sentence: string
}

/** Compares a decision with another policy's result. The order of replicas does not matter; tasks compare by position. */
export function difference(decision: Decision, other: PolicyResult): Difference {
  const interchangeable = decision.kind === 'replicas'
  const without = (own: string[], theirs: string[]) =>
    new Set(
      own.flatMap((host, at) =>
        (interchangeable ? theirs.includes(host) : theirs[at] === host) ? [] : [at],
      ),
    )
  const removed = without(decision.hosts, other.hosts)
  const added = without(other.hosts, decision.hosts)
  const [own, theirs] = [decision.limit?.value_bps, other.limit?.value_bps]
  const factor = own && theirs !== undefined ? theirs / own : null
  return { removed, added, factor, sentence: sentence(decision, other, removed, added) }
}

function sentence(decision: Decision, other: PolicyResult, removed: Set<number>, added: Set<number>): string {
  if (other.hosts.length === 0) return `${other.policy} would refuse the request.`
  if (removed.size === 0 && added.size === 0)
    return decision.hosts.join() === other.hosts.join()
      ? `${other.policy} would choose the same hosts.`
      : `${other.policy} would choose the same hosts in another order.`
  if (decision.hosts.length === 1 && other.hosts.length === 1)
    return `${other.policy} would choose ${other.hosts[0]} instead of ${decision.hosts[0]}.`
  return `${other.policy} would choose ${added.size} of ${other.hosts.length} hosts differently.`
}

/** Fields of a decision in a list, on one line. */
export interface Line {
  /** Reference, job or name of the work. */
  name: string
  client: string | null
  /** Size of a block, or number of tasks. */
  size: string
  hosts: string
  /** Racks of the hosts, without repetition. */
  racks: string[]
}

/** The line of a decision; `rackOf` gives the rack of a host. */
export function lineOf(decision: Decision, rackOf: (host: string) => string | null): Line {
  const { request, hosts, client, key } = decision
  const {
    size: bytes,
    job,
    app,
    tasks,
    workload,
    volume,
  } = request as {
    size?: string
    job?: string | null
    app?: { name?: string }
    tasks?: unknown[]
    workload?: { name?: string; size?: string }
    volume?: string
  }
  const name = decision.ref ?? job ?? workload?.name ?? volume ?? app?.name ?? key ?? decision.id
  const racks = [...new Set(hosts.map(rackOf).filter((rack) => rack !== null))]
  return {
    name,
    client,
    size: tasks ? quantity(tasks.length, 'task') : size(bytes ?? workload?.size ?? ''),
    hosts: formatHosts(decision),
    racks,
  }
}

/** Loads of two choices on the same links: of the decision, and of the other policy. */
export interface BothLoads {
  decided: LinkLoad | null
  other: LinkLoad | null
}

/** Loads beside a decision. */
export function loadsBeside({ beside }: PolicyResult): BothLoads | null {
  return beside && (beside.load || beside.decided) ? { decided: beside.decided, other: beside.load } : null
}

/** Loads beside a what-if: there, the other choice is the decision that was made. */
export function loadsOfWhatIf({ beside }: PolicyResult): BothLoads | null {
  return beside && (beside.load || beside.decided) ? { decided: beside.load, other: beside.decided } : null
}

/**
 * The better choice: `decided`, `other`, or `same` if they are equal; null if it is not known. The better choice crosses
 * fewer hot links or, with equally many, has the lower load on its fullest link.
 */
export function betterChoice({ decided, other }: BothLoads): 'decided' | 'other' | 'same' | null {
  if (!decided || !other || decided.unknown > 0 || other.unknown > 0) return null
  const order = decided.hot - other.hot || (decided.utilization ?? 0) - (other.utilization ?? 0)
  return order < 0 ? 'decided' : order > 0 ? 'other' : 'same'
}
