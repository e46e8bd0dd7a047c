/** Draws racks over time: a row for each rack, a column for each step, uplinks left and downlinks right. */

import { heat, inkOn, scale, STEPS, type Theme } from '../logic/colour'
import type { Grid } from '../logic/history'

/** Where things are on the canvas, in pixels. */
export interface Places {
  width: number
  /** Of one row. */
  row: number
  /** Where the maps begin. */
  maps: [number, number]
  /** Of each map. */
  across: number
  /** How far down the rows are scrolled, and how much of them shows. */
  top: number
  height: number
}

export interface Row {
  rack: string
  /** Names of the links. */
  links: [string, string]
}

/** Letters take this much. */
const LABEL = 52
const BETWEEN = 20

export function placed(width: number, racks: number, height: number, top: number): Places {
  const across = Math.max(10, (width - LABEL - BETWEEN) / 2)
  const row = Math.max(4, Math.min(22, Math.floor(height / Math.max(1, racks))))
  const shown = Math.min(height, racks * row)
  return { width, row, maps: [LABEL, LABEL + across + BETWEEN], across, top, height: shown }
}

/** Shades of the theme as pixels, ready to be written. */
const PIXELS: Record<Theme, Uint32Array> = { light: pixels('light'), dark: pixels('dark') }

function pixels(theme: Theme): Uint32Array {
  return Uint32Array.from(scale(theme), ([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r)
}

/** What is drawn besides the scale, as the style sheet has it; to ask that would cost more than the drawing. */
const COLOURS: Record<Theme, { letters: string; page: string; hatch: [string, string] }> = {
  light: { letters: '#625b54', page: '#ffffff', hatch: ['#e9e4dc', '#a49b91'] },
  dark: { letters: '#aaa7a1', page: '#1c1f24', hatch: ['#23272d', '#6d747f'] },
}

/** Draws those of the rows that show. */
export function draw(
  canvas: HTMLCanvasElement,
  all: Row[],
  grid: Grid,
  places: Places,
  limit: number,
  theme: Theme,
): void {
  const context = canvas.getContext('2d')
  const { width, height, row, top } = places
  if (!context || height === 0) return
  const dense = devicePixelRatio || 1
  const size: [number, number] = [Math.round(width * dense), Math.round(height * dense)]
  if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size
  const first = Math.min(Math.floor(top / row), Math.max(0, all.length - 1))
  const rows = all.slice(first, Math.ceil((top + height) / row))
  context.setTransform(dense, 0, 0, dense, 0, 0)
  context.clearRect(0, 0, width, height)
  context.translate(0, first * row - top)
  labels(context, rows, first, row, theme)
  const tall = rows.length * row
  places.maps.forEach((left, way) => {
    context.fillStyle = hatch(context, theme)
    context.fillRect(left, 0, places.across, tall)
    if (grid.columns === 0) return
    context.imageSmoothingEnabled = false
    context.drawImage(image(rows, way as 0 | 1, grid, theme), left, 0, places.across, tall)
    marks(context, rows, way as 0 | 1, grid, places, left, limit, theme)
    context.fillStyle = COLOURS[theme].page
    if (row >= 8)
      for (let at = 1; at < rows.length; at++) context.fillRect(left, at * row - 0.5, places.across, 1)
  })
}

function labels(
  context: CanvasRenderingContext2D,
  rows: Row[],
  first: number,
  row: number,
  theme: Theme,
): void {
  const every = Math.ceil(13 / row)
  context.font = `${Math.min(12, Math.max(10, row - 1))}px system-ui, sans-serif`
  context.textBaseline = 'middle'
  context.textAlign = 'right'
  context.fillStyle = COLOURS[theme].letters
  rows.forEach(({ rack }, at) => {
    if ((first + at) % every !== 0) return
    const middle = (at + 0.5) * row
    // The first one whole, where a row is lower than its letters.
    context.fillText(rack, LABEL - 8, first + at === 0 ? Math.max(6, middle) : middle, LABEL - 8)
  })
}

/** One pixel a cell; nothing where it is not known, so that the hatching shows through. */
function image(rows: Row[], way: 0 | 1, grid: Grid, theme: Theme): OffscreenCanvas {
  const canvas = new OffscreenCanvas(grid.columns, rows.length)
  const context = canvas.getContext('2d') as OffscreenCanvasRenderingContext2D
  const made = context.createImageData(grid.columns, rows.length)
  const cells = new Uint32Array(made.data.buffer)
  const shades = PIXELS[theme]
  rows.forEach(({ links }, at) => {
    const values = grid.rows.get(links[way])
    if (!values) return
    for (let column = 0; column < grid.columns; column++) {
      const value = values[column] as number
      if (value === value)
        cells[at * grid.columns + column] = shades[
          Math.round(Math.min(1, Math.max(0, value)) * (STEPS - 1))
        ] as number
    }
  })
  context.putImageData(made, 0, 0)
  return canvas
}

/** A line through the times at which a link was hot, for those who do not see it by colour. */
function marks(
  context: CanvasRenderingContext2D,
  rows: Row[],
  way: 0 | 1,
  grid: Grid,
  { row, across }: Places,
  left: number,
  limit: number,
  theme: Theme,
) {
  const wide = across / grid.columns
  context.fillStyle = inkOn(heat((limit + 1) / 2, theme))
  const thick = row >= 8 ? 2 : 1
  rows.forEach(({ links }, at) => {
    const values = grid.rows.get(links[way])
    if (!values) return
    let from = -1
    for (let column = 0; column <= grid.columns; column++) {
      const hot = column < grid.columns && (values[column] as number) >= limit
      if (hot && from < 0) from = column
      if (!hot && from >= 0) {
        context.fillRect(left + from * wide, (at + 0.5) * row - thick / 2, (column - from) * wide, thick)
        from = -1
      }
    }
  })
}

/** The hatching of what is not known; made once for each theme. */
const HATCHES: Partial<Record<Theme, CanvasPattern | null>> = {}

function hatch(context: CanvasRenderingContext2D, theme: Theme): CanvasPattern | string {
  const [ground, line] = COLOURS[theme].hatch
  if (HATCHES[theme] === undefined) {
    const tile = new OffscreenCanvas(6, 6)
    const brush = tile.getContext('2d') as OffscreenCanvasRenderingContext2D
    brush.fillStyle = ground
    brush.fillRect(0, 0, 6, 6)
    brush.strokeStyle = line
    brush.beginPath()
    for (const offset of [-6, 0, 6]) {
      brush.moveTo(offset, 6)
      brush.lineTo(offset + 6, 0)
    }
    brush.stroke()
    HATCHES[theme] = context.createPattern(tile, 'repeat')
  }
  return HATCHES[theme] ?? ground
}
