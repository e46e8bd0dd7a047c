import type { History } from '../api/types'
import { moment } from './format'
import type { LiveRack } from './frames'
import { linksOf } from './racks'

/** Data of the time map: the utilization of every link for each time step, NaN if unknown. */
export interface Grid {
  /** Start of the first column, in milliseconds. */
  from: number
  step: number
  columns: number
  rows: Map<string, Float32Array>
}

/**
 * History of link utilization in columns of equal length. Columns begin at multiples of their length, so stored history
 * and live ticks use the same columns. The number of columns is limited, and the oldest columns are dropped.
 */
export class LinkHistory {
  readonly step: number
  private readonly maxColumns: number
  private first = 0
  private columns = 0
  private rows = new Map<string, Float32Array>()
  /** Number of samples of each link in the last column. */
  private counts = new Map<string, number>()

  /**
   * @param step Length of a column in milliseconds.
   * @param maxColumns Maximum number of columns.
   */
  constructor(step: number, maxColumns: number) {
    this.step = step
    this.maxColumns = maxColumns
  }

  /** Index of the column that contains a time, counted from the epoch. */
  private column(ms: number): number {
    return Math.floor(ms / this.step)
  }

  /** Replaces the content with a history of the service. Its steps may have another start and another length. */
  load(history: History): void {
    const from = moment(history.from)
    this.rows.clear()
    this.counts.clear()
    this.columns = 0
    const length = history.series.reduce((most, one) => Math.max(most, one.utilization.length), 0)
    if (from === null || length === 0 || !(history.step_s > 0)) return
    const step = history.step_s * 1000
    this.first = this.column(from)
    // The middle of a step determines its column; a step longer than a column fills all columns that it covers.
    const span = (at: number): [number, number] => {
      const begin = from + at * step
      if (step <= this.step) return [this.column(begin + step / 2), this.column(begin + step / 2)]
      return [this.column(begin + this.step / 2), this.column(begin + step - this.step / 2)]
    }
    this.extend(span(length - 1)[1])
    for (const { link, utilization } of history.series) {
      const row = this.row(link)
      const samples = new Uint16Array(row.length)
      utilization.forEach((value, at) => {
        if (value === null) return
        const [low, high] = span(at)
        for (let column = low; column <= high; column++) {
          const place = column - this.first
          if (place < 0 || place >= row.length) continue
          const n = (samples[place] as number)++
          row[place] = n === 0 ? value : (row[place] as number) + (value - (row[place] as number)) / (n + 1)
        }
      })
      this.counts.set(link, samples[row.length - 1] ?? 0)
    }
  }

  /** Adds a live tick. A time before the last column is too late and changes nothing. */
  add(ms: number, racks: LiveRack[]): void {
    const column = this.column(ms)
    if (this.columns === 0) this.first = column
    const last = this.first + this.columns - 1
    if (this.columns > 0 && column < last) return
    if (column > last || this.columns === 0) {
      this.extend(column)
      this.counts.clear()
    }
    for (const rack of racks)
      for (const { link, utilization } of linksOf(rack)) {
        if (utilization === null) continue
        const row = this.row(link)
        const n = this.counts.get(link) ?? 0
        const at = row.length - 1
        row[at] = n === 0 ? utilization : (row[at] as number) + (utilization - (row[at] as number)) / (n + 1)
        this.counts.set(link, n + 1)
      }
  }

  /** Adds unknown columns up to `column`, and drops the oldest beyond the limit. */
  private extend(column: number): void {
    const first = Math.max(this.first, column - this.maxColumns + 1)
    const columns = column - first + 1
    for (const [link, old] of this.rows) {
      const row = new Float32Array(columns).fill(NaN)
      row.set(old.subarray(Math.min(old.length, first - this.first)))
      this.rows.set(link, row)
    }
    this.first = first
    this.columns = columns
  }

  private row(link: string): Float32Array {
    let row = this.rows.get(link)
    if (!row) this.rows.set(link, (row = new Float32Array(this.columns).fill(NaN)))
    return row
  }

  /** Returns the last columns of all links. */
  grid(columns: number): Grid {
    const shown = Math.min(columns, this.columns)
    const rows = new Map<string, Float32Array>()
    for (const [link, row] of this.rows) rows.set(link, row.subarray(row.length - shown))
    return { from: (this.first + this.columns - shown) * this.step, step: this.step, columns: shown, rows }
  }
}

/** Time in which links were seen and hot. */
export interface HotTime {
  /** Share of hot samples among the known ones; null if none is known. */
  share: number | null
  /** Share of the links' time span for which samples are known. */
  seen: number
}

/** Hot samples of the racks' links, and the share of samples that are known. A link without any sample counts too. */
export function hotTime(grid: Grid, limit: number, links: number): HotTime {
  let hot = 0
  let known = 0
  for (const row of grid.rows.values())
    for (const value of row) {
      if (Number.isNaN(value)) continue
      known++
      if (value >= limit) hot++
    }
  const all = Math.max(grid.rows.size, links) * grid.columns
  return { share: known ? hot / known : null, seen: all ? known / all : 0 }
}
