import type { Link, Rack } from '../api/types'
import type { Grid } from './history'

/** A rack as the maps show it: utilizations of one moment, null where not known. */
export interface Cell {
  rack: string
  pod: string | null
  up: number | null
  down: number | null
  hot: { up: boolean; down: boolean }
}

export type Order = 'name' | 'heat'

/** The links that a rack has of its own. */
export function linksOf({ up, down }: Rack): Link[] {
  return [up, down].filter((link) => link !== null)
}

/** Whether any rack has a link of its own; in a hose or a mesh none has, and what limits is at the hosts. */
export function linked(racks: Rack[]): boolean {
  return racks.some((rack) => linksOf(rack).length > 0)
}

/**
 * Racks of now. Hot is what the service says is: it judges by the last window, and a utilization is a mean that follows
 * windows.
 */
export function cells(racks: Rack[]): Cell[] {
  const of = (link: Link | null) => link?.utilization ?? null
  const hot = (link: Link | null) => typeof link?.hot_since === 'string'
  return racks.map(({ rack, pod, up, down }) => ({
    rack,
    pod,
    up: of(up),
    down: of(down),
    hot: { up: hot(up), down: hot(down) },
  }))
}

/** Of racks of which utilizations alone are known: hot from a limit on. */
export function judged(rack: Omit<Cell, 'hot'>, limit: number): Cell {
  return { ...rack, hot: { up: (rack.up ?? 0) >= limit, down: (rack.down ?? 0) >= limit } }
}

/** Racks of a column of the history. */
export function cellsAt(racks: Rack[], grid: Grid, column: number, limit: number): Cell[] {
  const at = (link: Link | null) => {
    const value = link ? grid.rows.get(link.link)?.[column] : undefined
    return value === undefined || Number.isNaN(value) ? null : value
  }
  return racks.map(({ rack, pod, up, down }) => judged({ rack, pod, up: at(up), down: at(down) }, limit))
}

/** The higher of both directions; null if neither is known. */
export function hottest({ up, down }: Pick<Cell, 'up' | 'down'>): number | null {
  return up === null ? down : down === null ? up : Math.max(up, down)
}

/** Names with their numbers in order, r2 before r10; or the hottest first, those not known last. */
export function ordered<T extends Cell>(racks: T[], order: Order): T[] {
  const byName = (a: T, b: T) => NAMES.compare(a.rack, b.rack)
  if (order === 'name') return [...racks].sort(byName)
  const heat = new Map(racks.map((rack) => [rack, hottest(rack) ?? -1]))
  return [...racks].sort((a, b) => (heat.get(b) as number) - (heat.get(a) as number) || byName(a, b))
}

const NAMES = new Intl.Collator('en', { numeric: true })

/** How many racks have a hot link, and how many have a link that is known. */
export function hotNow(racks: Cell[]): { hot: number; known: number } {
  const known = racks.filter((rack) => hottest(rack) !== null).length
  return { hot: racks.filter(({ hot }) => hot.up || hot.down).length, known }
}

/** A share in whole percents that does not reach the limit by being rounded. */
export function percents(value: number, limit: number): number {
  const rounded = Math.round(value * 100)
  return value < limit && rounded >= limit * 100 ? Math.ceil(limit * 100) - 1 : rounded
}

/** A direction in words: `uplink 83 %, hot`. */
export function spoken(word: string, value: number | null, hot: boolean, limit: number): string {
  if (value === null) return `${word} not known`
  return `${word} ${percents(value, limit)} %${hot ? ', hot' : ''}`
}

/** How many columns of tiles fit, so that all racks show in a box if that is at all possible. */
export function tiling(
  count: number,
  width: number,
  height: number,
  least: number,
  most: number,
): { columns: number; wide: number; tall: number } {
  let best = { columns: 1, wide: least, tall: least * TALL }
  if (count === 0 || width <= 0) return best
  for (let size = most; size >= least; size--) {
    const fitting = Math.max(1, Math.floor(width / size))
    const rows = Math.ceil(count / fitting)
    // Rows of the same length, and as wide as there is room.
    const columns = Math.ceil(count / rows)
    best = { columns, wide: Math.min(most, Math.floor(width / columns)), tall: Math.floor(size * TALL) }
    if (rows * best.tall <= height) break
  }
  return best
}

/** Height over width of a tile, at most. */
export const TALL = 1
