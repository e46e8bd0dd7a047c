import type { Link, Rack } from '../api/types'
import type { Grid } from './history'

/** A rack on the maps: utilizations at one time, null if unknown. */
export interface Cell {
  rack: string
  pod: string | null
  up: number | null
  down: number | null
  hot: { up: boolean; down: boolean }
}

export type Order = 'name' | 'heat'

/** Links of a rack; empty in networks without rack links. */
export function linksOf({ up, down }: Rack): Link[] {
  return [up, down].filter((link) => link !== null)
}

/** True if any rack has links of its own. In a hose or a mesh no rack has links, and host links are the bottlenecks. */
export function haveLinks(racks: Rack[]): boolean {
  return racks.some((rack) => linksOf(rack).length > 0)
}

/**
 * Cells of the live racks. The service decides from the last window which links are hot; the utilization is a moving
 * mean over windows.
 */
export function cells(racks: Rack[]): Cell[] {
  const utilization = (link: Link | null) => link?.utilization ?? null
  const hot = (link: Link | null) => typeof link?.hot_since === 'string'
  return racks.map(({ rack, pod, up, down }) => ({
    rack,
    pod,
    up: utilization(up),
    down: utilization(down),
    hot: { up: hot(up), down: hot(down) },
  }))
}

/** Adds the hot flags to the utilizations of a rack: a direction is hot from `limit` on. */
export function withHotFlags(rack: Omit<Cell, 'hot'>, limit: number): Cell {
  return { ...rack, hot: { up: (rack.up ?? 0) >= limit, down: (rack.down ?? 0) >= limit } }
}

/** Cells of the racks in one column of the history. */
export function cellsAt(racks: Rack[], grid: Grid, column: number, limit: number): Cell[] {
  const at = (link: Link | null) => {
    const value = link ? grid.rows.get(link.link)?.[column] : undefined
    return value === undefined || Number.isNaN(value) ? null : value
  }
  return racks.map(({ rack, pod, up, down }) =>
    withHotFlags({ rack, pod, up: at(up), down: at(down) }, limit),
  )
}

/** The higher of the two directions' utilizations; null if neither is known. */
export function hottest({ up, down }: Pick<Cell, 'up' | 'down'>): number | null {
  return up === null ? down : down === null ? up : Math.max(up, down)
}

/** Sorts racks by name in numeric order (r2 before r10), or by heat with unknown racks last. */
export function sortRacks<T extends Cell>(racks: T[], order: Order): T[] {
  const byName = (a: T, b: T) => NAMES.compare(a.rack, b.rack)
  if (order === 'name') return [...racks].sort(byName)
  const heat = new Map(racks.map((rack) => [rack, hottest(rack) ?? -1]))
  return [...racks].sort((a, b) => (heat.get(b) as number) - (heat.get(a) as number) || byName(a, b))
}

const NAMES = new Intl.Collator('en', { numeric: true })

/** Number of racks with a hot link, and number of racks with a known link. */
export function countHot(racks: Cell[]): { hot: number; known: number } {
  const known = racks.filter((rack) => hottest(rack) !== null).length
  return { hot: racks.filter(({ hot }) => hot.up || hot.down).length, known }
}

/** Rounds a share to whole percent. A share below the limit stays below it after rounding. */
export function wholePercent(value: number, limit: number): number {
  const rounded = Math.round(value * 100)
  return value < limit && rounded >= limit * 100 ? Math.ceil(limit * 100) - 1 : rounded
}

/** Describes one direction: `uplink 83 %, hot`. */
export function describeLink(word: string, value: number | null, hot: boolean, limit: number): string {
  if (value === null) return `${word} not known`
  return `${word} ${wholePercent(value, limit)} %${hot ? ', hot' : ''}`
}

/** Layout of tiles: the largest tiles with which all racks fit in a box, or the minimum size if no size fits. */
export function tileLayout(
  count: number,
  width: number,
  height: number,
  minSize: number,
  maxSize: number,
): { columns: number; wide: number; tall: number } {
  let best = { columns: 1, wide: minSize, tall: minSize * TALL }
  if (count === 0 || width <= 0) return best
  for (let size = maxSize; size >= minSize; size--) {
    const fitting = Math.max(1, Math.floor(width / size))
    const rows = Math.ceil(count / fitting)
    // Use rows of equal length and the full width.
    const columns = Math.ceil(count / rows)
    best = { columns, wide: Math.min(maxSize, Math.floor(width / columns)), tall: Math.floor(size * TALL) }
    if (rows * best.tall <= height) break
  }
  return best
}

/** Maximum ratio of a tile's height to its width. */
export const TALL = 1
