import type { HeavyWork, Migration, Task } from '../api/types'
import type { LiveHotspot } from './board'
import { duration, moment, quantity, rate, share } from './format'
import type { LiveRack } from './frames'
import { haveLinks } from './racks'

/** Hot links in two groups, each sorted by the start time, oldest first. */
export interface HotspotGroups {
  /** Links of racks and pods, which many hosts share. */
  shared: LiveHotspot[]
  /** Links of hosts. A single task may fill such a link without slowing other hosts. */
  own: LiveHotspot[]
}

function isHostLink(link: string): boolean {
  return link.endsWith(':egress') || link.endsWith(':ingress')
}

/** Number of hot links for the page header: shared links only, or all links if racks have none. */
export function headerCount(hotspots: LiveHotspot[], racks: LiveRack[]): number {
  return haveLinks(racks) ? hotspots.filter(({ link }) => !isHostLink(link)).length : hotspots.length
}

/**
 * Groups hot links into shared links and links of hosts.
 *
 * @param rackLinks True if racks have their own links; otherwise all hot links count as shared.
 */
export function groupHotspots(hotspots: LiveHotspot[], rackLinks: boolean): HotspotGroups {
  const since = new Map(hotspots.map((one) => [one.link, moment(one.since) ?? 0]))
  const inOrder = [...hotspots].sort(
    (a, b) => (since.get(a.link) as number) - (since.get(b.link) as number) || NAMES.compare(a.link, b.link),
  )
  return {
    shared: inOrder.filter(({ link }) => !rackLinks || !isHostLink(link)),
    own: inOrder.filter(({ link }) => rackLinks && isHostLink(link)),
  }
}

const NAMES = new Intl.Collator('en', { numeric: true })

const STATES = ['advised', 'taken', 'done', 'refused', 'failed', 'expired', 'considered']

/** Summary of the moves off each link, by state: `2 advised, 1 done`. */
export function movesByLink(moves: Migration[]): Map<string, string> {
  const counts = new Map<string, Map<string, number>>()
  for (const { link, state } of moves) {
    const states = counts.get(link) ?? new Map<string, number>()
    counts.set(link, states.set(state, (states.get(state) ?? 0) + 1))
  }
  const summary = (states: Map<string, number>) =>
    STATES.flatMap((state) => (states.has(state) ? [`${states.get(state)} ${state}`] : [])).join(', ')
  return new Map([...counts].map(([link, states]) => [link, summary(states)]))
}

/** Reasons for which no task moves off a link: in a few words, and as an explanation. */
export const NO_MOVES: Record<string, { words: string; because: string }> = {
  off: { words: 'moves are off', because: 'No policy for moves is set, or the mode of moves is off.' },
  shadow: {
    words: 'moves are in shadow mode',
    because: 'The service chooses moves and records them as considered, but advises none.',
  },
  canary: { words: 'outside the canary', because: 'The canary of moves does not include this rack.' },
  'other-link': {
    words: 'not a rack’s link',
    because: 'Moves take tasks to other racks, so the service advises them for links of racks only.',
  },
  cooling: {
    words: 'cools down already',
    because: 'With the moves so far, the mean load is no longer above the limit.',
  },
  recent: {
    words: 'hot for a short time',
    because: 'The link is hot for fewer windows than moves require.',
  },
  others: {
    words: 'placed by others',
    because: 'No task that the service placed sends traffic over the link.',
  },
  fixed: {
    words: 'no task may move',
    because:
      'Each task with traffic over the link must stay: it is sensitive to latency or bound to other tasks, was moved a short time ago, or the budget of its job is spent.',
  },
  'no-target': { words: 'no cool target', because: 'No rack that would stay cool has room for a task.' },
}

/** Reasons for which a task may not be moved now: in a few words, and as an explanation. */
export const STAYS: Record<string, { words: string; because: string }> = {
  sensitive: { words: 'sensitive', because: 'The task is sensitive to latency: it is not tolerant.' },
  apart: { words: 'stays apart', because: 'The task stays apart from other tasks.' },
  latency: { words: 'latency bound', because: 'A bound on round-trip times ties the task to other tasks.' },
  forgotten: { words: 'constraint unknown', because: 'A constraint of its request is no longer known.' },
  moving: { words: 'being moved', because: 'The last move of the task is not carried out yet.' },
  cooling: { words: 'moved recently', because: 'The task was moved a short time ago.' },
  budget: { words: 'budget spent', because: 'The budget of its job is spent.' },
}

/** Mobility of a task: `yes`, or `no` with the reason. */
export function movable({ tolerant, stays }: Pick<Task, 'tolerant' | 'stays'>): string {
  if (stays) return `no: ${STAYS[stays]?.words ?? stays}`
  return tolerant ? 'yes' : 'no'
}

/** Share of the load that is not from tasks that Leeward placed; null if it is not known. */
export function foreignShare({ measured_bps, unexplained_bps }: LiveHotspot): number | null {
  if (!measured_bps || unexplained_bps === null || unexplained_bps === undefined) return null
  return unexplained_bps / measured_bps
}

/** Share of the load from which on a link's load counts as not from Leeward. */
const FOREIGN = 0.8

/** One line of a task or transfer: `crawl/t3 on r4h2`. */
export function workName({ job, task, host, size, decision }: HeavyWork): string {
  const name = task === null ? `block of ${size ?? 'unknown size'}` : [job, task].filter(Boolean).join('/')
  const where = host === null ? '' : task === null ? ` to ${host}` : ` on ${host}`
  return (name || `decision ${decision}`) + where
}

/** The causes of hot links in one sentence. */
export function why(hotspots: LiveHotspot[]): string {
  const known = hotspots.filter((one) => one.heaviest !== undefined)
  if (known.length === 0) return 'The causes are not read yet.'
  const foreign = known.filter((one) => (foreignShare(one) ?? 0) >= FOREIGN).length
  const first = known.find((one) => one.heaviest?.[0]?.task)
  const work = first?.heaviest?.[0]
  const task = first && work ? `Task ${workName(work)} sends ${rate(work.rate_bps)} over ${first.link}.` : ''
  const others =
    foreign === known.length
      ? 'The load is mostly not from tasks of Leeward.'
      : `The load of ${quantity(foreign, 'link')} is mostly not from tasks of Leeward.`
  return [task, foreign ? others : ''].filter(Boolean).join(' ') || 'No single task stands out.'
}

/** The hot links in one sentence: their number, and the one that is hot for the longest time. */
export function what(hotspots: LiveHotspot[], age_s: (one: LiveHotspot) => number | null): string {
  const first = hotspots[0]
  if (!first) return 'No link that is seen is hot.'
  const rest = hotspots.length === 1 ? `${first.link} is hot` : `${quantity(hotspots.length, 'link')} are hot`
  return `${rest}${hotspots.length === 1 ? '' : `, ${first.link} the longest`}, for ${duration(age_s(first))}${
    first.utilization === null ? '' : ` at ${share(first.utilization)}`
  }.`
}
