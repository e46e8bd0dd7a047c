/** Draws racks over time: one row per rack, one column per step, uplinks on the left and downlinks on the right. */

import { heat, inkOn, scale, STEPS, type Theme } from '../logic/colour'
import type { Grid } from '../logic/history'

/** Layout of the canvas, in pixels. */
export interface Layout {
  width: number
  /** Height of one row. */
  row: number
  /** Left edge of each map. */
  maps: [number, number]
  /** Width of each map. */
  across: number
  /** Scroll offset of the rows, and their visible height. */
  top: number
  height: number
}

export interface Row {
  rack: string
  /** Names of the uplink and the downlink. */
  links: [string, string]
}

/** Width of the rack names. */
const LABEL = 52
const BETWEEN = 20
/** Number of racks up to which rows may be lower than their names. */
const FITTING = 60

export function layout(width: number, racks: number, height: number, top: number): Layout {
  const across = Math.max(10, (width - LABEL - BETWEEN) / 2)
  // Up to some dozens of racks fit without scrolling; rows of more racks are high enough for all names.
  const lowest = racks <= FITTING ? 4 : 14
  const row = Math.max(lowest, Math.min(22, Math.floor(height / Math.max(1, racks))))
  const shown = Math.min(height, racks * row)
  return { width, row, maps: [LABEL, LABEL + across + BETWEEN], across, top, height: shown }
}

/** Colours of each theme as pixel values. */
const PIXELS: Record<Theme, Uint32Array> = { light: pixels('light'), dark: pixels('dark') }

function pixels(theme: Theme): Uint32Array {
  return Uint32Array.from(scale(theme), ([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r)
}

/** Colours besides the scale, copied from the style sheet: reading computed styles would cost more than drawing. */
const COLOURS: Record<Theme, { letters: string; page: string; hatch: [string, string] }> = {
  light: { letters: '#625b54', page: '#ffffff', hatch: ['#e9e4dc', '#a49b91'] },
  dark: { letters: '#aaa7a1', page: '#1c1f24', hatch: ['#23272d', '#6d747f'] },
}

/** Draws the visible rows. */
export function draw(
  canvas: HTMLCanvasElement,
  all: Row[],
  grid: Grid,
  layout: Layout,
  limit: number,
  theme: Theme,
): void {
  const context = canvas.getContext('2d')
  const { width, height, row, top } = layout
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
  layout.maps.forEach((left, way) => {
    context.fillStyle = hatch(context, theme)
    context.fillRect(left, 0, layout.across, tall)
    if (grid.columns === 0) return
    context.imageSmoothingEnabled = false
    context.drawImage(image(rows, way as 0 | 1, grid, theme), left, 0, layout.across, tall)
    marks(context, rows, way as 0 | 1, grid, layout, left, limit, theme)
    context.fillStyle = COLOURS[theme].page
    if (row >= 8)
      for (let at = 1; at < rows.length; at++) context.fillRect(left, at * row - 0.5, layout.across, 1)
  })
}

/** The last drawn labels. Text is slow to draw, and rows change more rarely than loads. */
let drawn: { key: string; canvas: OffscreenCanvas } | null = null

function labels(
  context: CanvasRenderingContext2D,
  rows: Row[],
  first: number,
  row: number,
  theme: Theme,
): void {
  const dense = devicePixelRatio || 1
  const key = [first, row, theme, dense, ...rows.map(({ rack }) => rack)].join(' ')
  if (drawn?.key !== key) {
    const canvas = new OffscreenCanvas(LABEL * dense, Math.max(1, Math.ceil(rows.length * row * dense)))
    const brush = canvas.getContext('2d') as OffscreenCanvasRenderingContext2D
    brush.scale(dense, dense)
    drawLabels(brush, rows, first, row, theme)
    drawn = { key, canvas }
  }
  context.drawImage(drawn.canvas, 0, 0, LABEL, drawn.canvas.height / dense)
}

function drawLabels(
  context: OffscreenCanvasRenderingContext2D,
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
    // Keeps the first name inside the canvas if a row is lower than its text.
    context.fillText(rack, LABEL - 8, first + at === 0 ? Math.max(6, middle) : middle, LABEL - 8)
  })
}

/** Image with one pixel per cell; unknown cells stay transparent, so that the hatching is visible. */
function image(rows: Row[], way: 0 | 1, grid: Grid, theme: Theme): OffscreenCanvas {
  const canvas = new OffscreenCanvas(grid.columns, rows.length)
  const context = canvas.getContext('2d') as OffscreenCanvasRenderingContext2D
  const pixels = context.createImageData(grid.columns, rows.length)
  const cells = new Uint32Array(pixels.data.buffer)
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
  context.putImageData(pixels, 0, 0)
  return canvas
}

/** Draws a line over the hot cells of each link, for readers who do not see the colour. */
function marks(
  context: CanvasRenderingContext2D,
  rows: Row[],
  way: 0 | 1,
  grid: Grid,
  { row, across }: Layout,
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

/** Hatching of unknown cells, created once per theme. */
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
