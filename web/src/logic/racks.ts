import type { Link, Rack } from '../api/types'
import type { Grid } from './history'

/** A rack as the maps show it: utilizations of one moment, null where not known. */
export interface Cell {
  rack: string
  pod: string | null
  up: number | null
  down: number | null
}

export type Order = 'name' | 'heat'

/** The links that a rack has of its own. */
export function linksOf({ up, down }: Rack): Link[] {
  return [up, down].filter((link) => link !== null)
}

/** Racks of now. */
export function cells(racks: Rack[]): Cell[] {
  const of = (link: Link | null) => link?.utilization ?? null
  return racks.map(({ rack, pod, up, down }) => ({ rack, pod, up: of(up), down: of(down) }))
}

/** Racks of a column of the history. */
export function cellsAt(racks: Rack[], grid: Grid, column: number): Cell[] {
  const at = (link: Link | null) => {
    const value = link ? grid.rows.get(link.link)?.[column] : undefined
    return value === undefined || Number.isNaN(value) ? null : value
  }
  return racks.map(({ rack, pod, up, down }) => ({ rack, pod, up: at(up), down: at(down) }))
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
export function hotNow(racks: Cell[], limit: number): { hot: number; known: number } {
  const known = racks.map(hottest).filter((value) => value !== null)
  return { hot: known.filter((value) => value >= limit).length, known: known.length }
}

/** A share in whole percents that does not reach the limit by being rounded. */
export function percents(value: number, limit: number): number {
  const rounded = Math.round(value * 100)
  return value < limit && rounded >= limit * 100 ? Math.ceil(limit * 100) - 1 : rounded
}

/** A direction in words: `uplink 83 %, hot`. */
export function spoken(word: string, value: number | null, limit: number): string {
  if (value === null) return `${word} not known`
  return `${word} ${percents(value, limit)} %${value >= limit ? ', hot' : ''}`
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
