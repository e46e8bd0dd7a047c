import type { Events, Decision, Hotspot, Migration, Rack } from '../api/types'
import type { ServerEvent } from '../api/sse'
import { moment } from './format'
import { linksOf } from './racks'

/** Maximum number of decisions in the page's memory. */
export const MAX_DECISIONS = 500

/** State that the page builds from the event stream. Immutable: `reduce` returns a new one. */
export interface Board {
  racks: Rack[]
  /** Time of the racks' latest telemetry, by the service's clock, in milliseconds. */
  telemetryTime: number | null
  /** Newest first. */
  decisions: Decision[]
  hotspots: Hotspot[]
  migrations: Migration[]
  /** Number of cluster and leader changes. After a change, the page reads the status again. */
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
  /** Latest hotspot event of each link since the last racks event; null for a cooled link. */
  const hot = new Map<string, Hotspot | null>()
  for (const { name, data } of events) {
    const value = parse(data)
    if (value === null) continue
    if (name === 'decision') decisions.push(value as Events['decision'])
    else if (name === 'racks') {
      const { items } = value as Partial<Events['racks']>
      if (Array.isArray(items)) board = withRacks(withHotspots(board, hot), items)
    } else if (name === 'hotspot') {
      const { until, ...hotspot } = value as Events['hotspot']
      hot.delete(hotspot.link)
      hot.set(hotspot.link, until === null ? hotspot : null)
    } else if (name === 'cluster' || name === 'leader') board = { ...board, changes: board.changes + 1 }
  }
  board = withHotspots(board, hot)
  return decisions.length ? { ...board, decisions: withDecisions(board.decisions, decisions) } : board
}

/** Applies and clears `hot` in one step, because a large cluster may send thousands of hotspots at once. */
function withHotspots(board: Board, hot: Map<string, Hotspot | null>): Board {
  if (hot.size === 0) return board
  const others = board.hotspots.filter((one) => !hot.has(one.link))
  const newer = [...hot.values()].filter((one) => one !== null).reverse()
  hot.clear()
  return { ...board, hotspots: [...newer, ...others] }
}

/** Replaces the racks and removes hotspots of links that are no longer hot. */
export function withRacks(board: Board, racks: Rack[]): Board {
  const links = racks.flatMap(linksOf)
  const telemetryTime = links.reduce<number | null>((latest, { until }) => {
    const ms = moment(until)
    return ms !== null && (latest === null || ms > latest) ? ms : latest
  }, null)
  const cooled = new Set(
    links.filter((link) => link.seen && link.hot_since === null).map((link) => link.link),
  )
  const anyCooled = board.hotspots.some((hotspot) => cooled.has(hotspot.link))
  const hotspots = anyCooled ? board.hotspots.filter((hotspot) => !cooled.has(hotspot.link)) : board.hotspots
  return { ...board, racks, telemetryTime, hotspots }
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
