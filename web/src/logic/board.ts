import type { Events, Decision, HotLink, Hotspot, Migration } from '../api/types'
import type { ServerEvent } from '../api/sse'
import { moment } from './format'
import type { LiveRack } from './frames'
import { linksOf } from './racks'

/** Maximum number of decisions in the page's memory. */
export const MAX_DECISIONS = 500

/** A hot link; its causes are unknown until the next list of hot links. */
export type LiveHotspot = Hotspot & Partial<Omit<HotLink, keyof Hotspot>>

/** State that the page builds from the event stream and the snapshots of racks. Immutable: `reduce` returns a new one. */
export interface Board {
  racks: LiveRack[]
  /** End of the newest window of a link, by the service's clock, in milliseconds. */
  telemetryTime: number | null
  /** Newest first. */
  decisions: Decision[]
  hotspots: LiveHotspot[]
  migrations: Migration[]
  /** Number of changes of the cluster, the leader and the modes. After a change, the page reads the status again. */
  changes: number
}

export const EMPTY: Board = {
  racks: [],
  telemetryTime: null,
  decisions: [],
  hotspots: [],
  migrations: [],
  changes: 0,
}

/**
 * Applies a batch of events to the board. Ignores unknown and invalid events. Ignores `missed` too, because every new
 * connection reads the full state again.
 */
export function reduce(board: Board, events: ServerEvent[]): Board {
  const decisions: Decision[] = []
  /** Latest hotspot event of each link; null for a cooled link. */
  const hot = new Map<string, Hotspot | null>()
  for (const { name, data } of events) {
    const value = parse(data)
    if (value === null) continue
    if (name === 'decision') decisions.push(value as Events['decision'])
    else if (name === 'hotspot') {
      const { until, ...hotspot } = value as Events['hotspot']
      hot.delete(hotspot.link)
      hot.set(hotspot.link, until === null ? hotspot : null)
    } else if (name === 'cluster' || name === 'leader' || name === 'modes')
      board = { ...board, changes: board.changes + 1 }
  }
  board = withHotspots(board, hot)
  return decisions.length ? { ...board, decisions: withDecisions(board.decisions, decisions) } : board
}

/** Applies all hotspot events in one step, because a large cluster may send thousands at once. */
function withHotspots(board: Board, hot: Map<string, Hotspot | null>): Board {
  if (hot.size === 0) return board
  const others = board.hotspots.filter((one) => !hot.has(one.link))
  const newer = [...hot.values()].filter((one) => one !== null).reverse()
  return { ...board, hotspots: [...newer, ...others] }
}

/** Replaces the racks and removes hotspots of links that are no longer hot. `telemetry` is the end of the newest window. */
export function withRacks(board: Board, racks: LiveRack[], telemetry: string | null): Board {
  const cool = ({ utilization, hot_since }: { utilization: number | null; hot_since: string | null }) =>
    utilization !== null && hot_since === null
  const cooled = new Set(
    racks
      .flatMap(linksOf)
      .filter(cool)
      .map(({ link }) => link),
  )
  const anyCooled = board.hotspots.some((hotspot) => cooled.has(hotspot.link))
  const hotspots = anyCooled ? board.hotspots.filter((hotspot) => !cooled.has(hotspot.link)) : board.hotspots
  return { ...board, racks, telemetryTime: moment(telemetry), hotspots }
}

/**
 * Merges newer decisions into the list. A newer version of a known decision replaces it. Returns at most `MAX_DECISIONS`,
 * newest first.
 *
 * @param newer Decisions, oldest first.
 */
export function withDecisions(decisions: Decision[], newer: Decision[]): Decision[] {
  const byId = new Map(decisions.map((decision) => [decision.id, decision]))
  for (const decision of newer.slice(-MAX_DECISIONS)) byId.set(decision.id, decision)
  const times = new Map([...byId.values()].map((one) => [one.id, moment(one.time) ?? 0]))
  return [...byId.values()]
    .sort((a, b) => (times.get(b.id) as number) - (times.get(a.id) as number) || IDS.compare(b.id, a.id))
    .slice(0, MAX_DECISIONS)
}

/** Compares ids, which are strings of digits, by number. */
const IDS = new Intl.Collator('en', { numeric: true })

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
