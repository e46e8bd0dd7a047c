import type { Events, Decision, Hotspot, Migration, Rack } from '../api/types'
import type { ServerEvent } from '../api/sse'
import { moment } from './format'
import { linksOf } from './racks'

/** Decisions that the page keeps. */
export const KEPT = 500

/** What the page knows from the stream of events. Never changed, always made anew. */
export interface Board {
  racks: Rack[]
  /** The moment that the racks are of, by the service's clock, in milliseconds. */
  at: number | null
  /** Newest first. */
  decisions: Decision[]
  hotspots: Hotspot[]
  migrations: Migration[]
  /** Rises when the cluster or the leader changed, so that the status is asked for anew. */
  changes: number
}

export const EMPTY: Board = { racks: [], at: null, decisions: [], hotspots: [], migrations: [], changes: 0 }

/**
 * The board after events that came together. What is not understood is passed over; so is `missed`, since every connection
 * reads all there is anew.
 */
export function reduce(board: Board, events: ServerEvent[]): Board {
  const decisions: Decision[] = []
  /** What was said of links since the last racks, the last word of each; null of one that cooled. */
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

/** Takes all of `hot` in at once, and leaves it empty: of a large cluster thousands may come together. */
function withHotspots(board: Board, hot: Map<string, Hotspot | null>): Board {
  if (hot.size === 0) return board
  const others = board.hotspots.filter((one) => !hot.has(one.link))
  const newer = [...hot.values()].filter((one) => one !== null).reverse()
  hot.clear()
  return { ...board, hotspots: [...newer, ...others] }
}

/** Racks of now. Hotspots on links that are no longer hot are over. */
export function withRacks(board: Board, racks: Rack[]): Board {
  const links = racks.flatMap(linksOf)
  const at = links.reduce<number | null>((latest, { until }) => {
    const ms = moment(until)
    return ms !== null && (latest === null || ms > latest) ? ms : latest
  }, null)
  const cool = new Set(links.filter((link) => link.seen && link.hot_since === null).map((link) => link.link))
  const over = board.hotspots.some((hotspot) => cool.has(hotspot.link))
  const hotspots = over ? board.hotspots.filter((hotspot) => !cool.has(hotspot.link)) : board.hotspots
  return { ...board, racks, at, hotspots }
}

/**
 * Decisions with newer ones, which may be known already and say something new. Newest first, at most `KEPT`.
 *
 * @param newer In the order in which they were made.
 */
export function withDecisions(decisions: Decision[], newer: Decision[]): Decision[] {
  const byId = new Map(decisions.map((decision) => [decision.id, decision]))
  for (const decision of newer.slice(-KEPT)) byId.set(decision.id, decision)
  const at = new Map([...byId.values()].map((one) => [one.id, moment(one.time) ?? 0]))
  return [...byId.values()]
    .sort((a, b) => (at.get(b.id) as number) - (at.get(a.id) as number) || IDS.compare(b.id, a.id))
    .slice(0, KEPT)
}

/** Ids are numbers as texts. */
const IDS = new Intl.Collator('en', { numeric: true })

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
