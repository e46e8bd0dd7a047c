import type { Hotspot, Migration, Rack } from '../api/types'
import { moment } from './format'
import { haveLinks } from './racks'

/** Hot links in two groups, each sorted by the start time, oldest first. */
export interface HotspotGroups {
  /** Links of racks and pods, which many hosts share. */
  shared: Hotspot[]
  /** Links of hosts. A single task may fill such a link without slowing other hosts. */
  own: Hotspot[]
}

function isHostLink(link: string): boolean {
  return link.endsWith(':egress') || link.endsWith(':ingress')
}

/** Number of hot links for the page header: shared links only, or all links if racks have none. */
export function headerCount(hotspots: Hotspot[], racks: Rack[]): number {
  return haveLinks(racks) ? hotspots.filter(({ link }) => !isHostLink(link)).length : hotspots.length
}

/**
 * Groups hot links into shared links and links of hosts.
 *
 * @param rackLinks True if racks have their own links; otherwise all hot links count as shared.
 */
export function groupHotspots(hotspots: Hotspot[], rackLinks: boolean): HotspotGroups {
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

const STATES = ['advised', 'done', 'refused', 'expired']

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
