import { describe, expect, test } from 'vitest'
import {
  contrast,
  distance,
  heat,
  inkOn,
  luminance,
  oklab,
  scale,
  STEPS,
  type Rgb,
  type Theme,
} from './colour'

/** Simulation matrices of colour blindness on linear light: Viénot 1999 for deutan, Machado 2009 (severity 1) for others. */
const BLIND: Record<string, number[][]> = {
  protan: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deutan: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritan: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
}

function simulate(colour: Rgb, by: number[][]): Rgb {
  const linear = colour.map((x) =>
    x / 255 <= 0.04045 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4,
  )
  return by.map((row) => {
    const x = Math.min(
      1,
      Math.max(
        0,
        row.reduce((sum, part, at) => sum + part * (linear[at] as number), 0),
      ),
    )
    return 255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055)
  }) as unknown as Rgb
}

describe.each(['light', 'dark'] as Theme[])('the scale of the %s theme', (theme) => {
  const tenths = Array.from({ length: 11 }, (_, at) => oklab(heat(at / 10, theme)))

  test('lightness is monotonic', () => {
    const light = scale(theme).map((colour) => oklab(colour)[0])
    const way = theme === 'light' ? -1 : 1
    for (let at = 4; at < STEPS; at++) expect(way * (light[at]! - light[at - 4]!)).toBeGreaterThan(0)
  })

  test('equal steps of utilization have equal perceptual distance, within 10 %', () => {
    const steps = tenths.slice(1).map((lab, at) => distance(lab, tenths[at]!))
    const mean = steps.reduce((sum, step) => sum + step, 0) / steps.length
    for (const step of steps) expect(Math.abs(step / mean - 1)).toBeLessThan(0.1)
  })

  test.each(Object.keys(BLIND))('luminance stays monotonic and steps stay distinct for %s vision', (kind) => {
    const colours = Array.from({ length: 11 }, (_, at) => simulate(heat(at / 10, theme), BLIND[kind]!))
    const way = theme === 'light' ? -1 : 1
    for (let at = 1; at < colours.length; at++) {
      expect(way * (luminance(colours[at]!) - luminance(colours[at - 1]!))).toBeGreaterThan(0)
      expect(distance(oklab(colours[at]!), oklab(colours[at - 1]!))).toBeGreaterThan(0.03)
    }
  })

  test('black or white text has a contrast of at least 4.5 to 1', () => {
    for (const colour of scale(theme)) {
      const ink: Rgb = inkOn(colour) === '#000' ? [0, 0, 0] : [255, 255, 255]
      expect(contrast(colour, ink)).toBeGreaterThanOrEqual(4.5)
    }
  })
})

test('a utilization out of range has the colour of the nearest end', () => {
  expect(heat(-0.1, 'light')).toEqual(heat(0, 'light'))
  expect(heat(1.3, 'dark')).toEqual(heat(1, 'dark'))
})
