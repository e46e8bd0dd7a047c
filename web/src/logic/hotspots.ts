import type { Hotspot, Migration, Rack } from '../api/types'
import { moment } from './format'
import { linked } from './racks'

/** Hot links, each list with the longest hot first. */
export interface Parted {
  /** What many hosts share: links of racks and of pods. */
  shared: Hotspot[]
  /** A host's own. One task fills such a link, and slows nobody else by it. */
  own: Hotspot[]
}

function ofHost(link: string): boolean {
  return link.endsWith(':egress') || link.endsWith(':ingress')
}

/** How many hot links the head tells of: those that are shared, as on the map of racks; all where none is. */
export function counted(hotspots: Hotspot[], racks: Rack[]): number {
  return linked(racks) ? hotspots.filter(({ link }) => !ofHost(link)).length : hotspots.length
}

/**
 * Hot links by whom they slow.
 *
 * @param apart Whether racks have links of their own; where they do not, all are shared.
 */
export function parted(hotspots: Hotspot[], apart: boolean): Parted {
  const since = new Map(hotspots.map((one) => [one.link, moment(one.since) ?? 0]))
  const inOrder = [...hotspots].sort(
    (a, b) => (since.get(a.link) as number) - (since.get(b.link) as number) || NAMES.compare(a.link, b.link),
  )
  return {
    shared: inOrder.filter(({ link }) => !apart || !ofHost(link)),
    own: inOrder.filter(({ link }) => apart && ofHost(link)),
  }
}

const NAMES = new Intl.Collator('en', { numeric: true })

const STATES = ['advised', 'done', 'refused', 'expired']

/** How many moves of which state leave each link, in words: `2 advised, 1 done`. */
export function movesOff(moves: Migration[]): Map<string, string> {
  const counts = new Map<string, Map<string, number>>()
  for (const { link, state } of moves) {
    const states = counts.get(link) ?? new Map<string, number>()
    counts.set(link, states.set(state, (states.get(state) ?? 0) + 1))
  }
  const told = (states: Map<string, number>) =>
    STATES.flatMap((state) => (states.has(state) ? [`${states.get(state)} ${state}`] : [])).join(', ')
  return new Map([...counts].map(([link, states]) => [link, told(states)]))
}
