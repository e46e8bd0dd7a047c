import type { Link, Rack } from '../api/types'
import type { Grid } from './history'
import { share } from './format'

/** A rack as the maps show it: utilizations of one moment, null where not known. */
export interface Cell {
  rack: string
  pod: string | null
  up: number | null
  down: number | null
}

export type Order = 'name' | 'heat'

/** Racks of now. */
export function cells(racks: Rack[]): Cell[] {
  return racks.map(({ rack, pod, up, down }) => ({ rack, pod, up: up.utilization, down: down.utilization }))
}

/** Racks of a column of the history. */
export function cellsAt(racks: Rack[], grid: Grid, column: number): Cell[] {
  const at = ({ link }: Link) => {
    const value = grid.rows.get(link)?.[column]
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

/** A direction in words: `uplink 83 %, hot`. */
export function spoken(word: string, value: number | null, limit: number): string {
  if (value === null) return `${word} not known`
  return `${word} ${share(value).replace('\u00a0', ' ')}${value >= limit ? ', hot' : ''}`
}

/** How many columns of tiles fit, so that all racks show in a box if that is at all possible. */
export function tiling(count: number, width: number, height: number, least: number, most: number) {
  let best = { columns: 1, size: least }
  if (count === 0 || width <= 0) return best
  for (let size = most; size >= least; size--) {
    best = { columns: Math.max(1, Math.floor(width / size)), size }
    // Tiles are five parts wide and four high.
    if (Math.ceil(count / best.columns) * size * TALL <= height) break
  }
  return best
}

/** Height over width of a tile. */
export const TALL = 0.8
