import type { LiveLink, LiveRack } from './frames'
import { clock } from './format'
import type { Grid } from './history'

/** A rack on the maps: utilizations at one time, null if unknown. */
export interface Cell {
  rack: string
  pod: string | null
  up: number | null
  down: number | null
  hot: { up: boolean; down: boolean }
  /** Last known values of links that are not known now. */
  last?: { up: Last; down: Last }
}

/** A last known utilization and its time in milliseconds; null without one. */
export type Last = { utilization: number; time: number } | null

export type Order = 'name' | 'heat'

/** Links of a rack; empty in networks without rack links. */
export function linksOf({ up, down }: LiveRack): LiveLink[] {
  return [up, down].filter((link) => link !== null)
}

/** True if any rack has links of its own. In a hose or a mesh no rack has links, and host links are the bottlenecks. */
export function haveLinks(racks: LiveRack[]): boolean {
  return racks.some((rack) => linksOf(rack).length > 0)
}

/**
 * Cells of the live racks. The service decides from the last windows which links are hot; the utilization is a moving
 * mean over windows. `past` has the history, for the last values of links that were not seen since the page opened.
 */
export function cells(racks: LiveRack[], past: Grid | null = null): Cell[] {
  const last = (link: LiveLink | null): Last =>
    link && link.utilization === null ? (link.last ?? lastIn(past, link.link)) : null
  return racks.map(({ rack, pod, up, down }) => ({
    rack,
    pod,
    up: up?.utilization ?? null,
    down: down?.utilization ?? null,
    hot: { up: typeof up?.hot_since === 'string', down: typeof down?.hot_since === 'string' },
    last: { up: last(up), down: last(down) },
  }))
}

/** Last known value of a link in the history. */
function lastIn(grid: Grid | null, link: string): Last {
  const row = grid?.rows.get(link)
  for (let at = (row?.length ?? 0) - 1; at >= 0; at--) {
    const utilization = row?.[at] as number
    if (!Number.isNaN(utilization)) return { utilization, time: (grid?.from ?? 0) + at * (grid?.step ?? 0) }
  }
  return null
}

/** Adds the hot flags to the utilizations of a rack: a direction is hot from `limit` on. */
export function withHotFlags(rack: Omit<Cell, 'hot'>, limit: number): Cell {
  return { ...rack, hot: { up: (rack.up ?? 0) >= limit, down: (rack.down ?? 0) >= limit } }
}

/** Cells of the racks in one column of the history. */
export function cellsAt(racks: LiveRack[], grid: Grid, column: number, limit: number): Cell[] {
  const at = (link: LiveLink | null) => {
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

/** Describes one direction: `uplink 83 %, hot`. A link may be hot at a mean below the limit, which needs a reason. */
export function describeLink(
  word: string,
  value: number | null,
  hot: boolean,
  limit: number,
  last: Last = null,
): string {
  if (value === null) {
    const before = last
      ? `, last ${wholePercent(last.utilization, limit)} % at ${clock(last.time, false)}`
      : ''
    return `${word} not known${before}`
  }
  const state = !hot ? '' : value < limit ? ', hot by its last windows' : ', hot'
  return `${word} ${wholePercent(value, limit)} %${state}`
}

/** A group of racks: a pod, or racks with neighbouring names. */
export interface Group<T> {
  name: string
  racks: T[]
}

/** Number of racks in a group without pods. */
const GROUP = 50

/** Groups racks by pod, or into runs of names without pods. Both in the order of names. */
export function groupRacks<T extends Pick<Cell, 'rack' | 'pod'>>(racks: T[]): Group<T>[] {
  const sorted = [...racks].sort((a, b) => NAMES.compare(a.rack, b.rack))
  if (racks.every(({ pod }) => pod !== null)) {
    const pods = new Map<string, T[]>()
    for (const one of sorted) pods.set(one.pod as string, [...(pods.get(one.pod as string) ?? []), one])
    return [...pods].map(([name, racks]) => ({ name, racks })).sort((a, b) => NAMES.compare(a.name, b.name))
  }
  return Array.from({ length: Math.ceil(sorted.length / GROUP) }, (_, at) => {
    const racks = sorted.slice(at * GROUP, (at + 1) * GROUP)
    return { name: `${racks[0]?.rack} – ${racks.at(-1)?.rack}`, racks }
  })
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

/** Layout of tiles in a given number of columns. */
export function fixedLayout(
  columns: number,
  width: number,
  maxSize: number,
): { columns: number; wide: number; tall: number } {
  const wide = Math.max(1, Math.min(maxSize, Math.floor(width / columns)))
  return { columns, wide, tall: Math.min(wide, 54) }
}

/** Maximum ratio of a tile's height to its width. */
export const TALL = 1
