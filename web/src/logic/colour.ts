/**
 * Colours of the heat map: one path through OKLab for each theme, sampled at equal distances. Equal steps of
 * utilization are therefore equal perceptual steps. Lightness is monotonic, so the scale is readable without hue and in
 * grey. An idle link has a colour close to the page's colour; a full link has the colour farthest from it.
 */

export type Theme = 'light' | 'dark'
export type Rgb = readonly [number, number, number]
/** OKLab coordinates: lightness, green to red, blue to yellow. */
type Lab = readonly [number, number, number]

/** Control points of the paths: lightness, chroma, hue in degrees. Both pass through the rust hue of Leeward's pictures. */
const PATHS: Record<Theme, [number, number, number][]> = {
  light: [
    [0.965, 0.008, 95],
    [0.91, 0.04, 90],
    [0.84, 0.08, 80],
    [0.74, 0.13, 62],
    [0.6, 0.165, 40],
    [0.44, 0.135, 27],
    [0.28, 0.075, 15],
  ],
  dark: [
    [0.27, 0.02, 265],
    [0.36, 0.055, 290],
    [0.45, 0.095, 340],
    [0.55, 0.135, 15],
    [0.66, 0.165, 40],
    [0.8, 0.14, 70],
    [0.95, 0.08, 95],
  ],
}

/** Number of colours of a scale. */
export const STEPS = 256

const SCALES: Record<Theme, Rgb[]> = { light: sample(PATHS.light), dark: sample(PATHS.dark) }

/** Colours of a theme's scale, from idle to full. */
export function scale(theme: Theme): readonly Rgb[] {
  return SCALES[theme]
}

/** Returns the colour of a utilization; values above 1 have the colour of 1. */
export function heat(utilization: number, theme: Theme): Rgb {
  const step = Math.round(Math.min(1, Math.max(0, utilization)) * (STEPS - 1))
  return SCALES[theme][step] as Rgb
}

export function css([r, g, b]: Rgb): string {
  return `rgb(${r} ${g} ${b})`
}

/** Returns black or white, the one with more contrast on a colour; the contrast is at least 4.58 to 1. */
export function inkOn(colour: Rgb): '#000' | '#fff' {
  return contrast(colour, [0, 0, 0]) >= contrast(colour, [255, 255, 255]) ? '#000' : '#fff'
}

/** Contrast ratio, WCAG 2.2. */
export function contrast(a: Rgb, b: Rgb): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number]
  return (high + 0.05) / (low + 0.05)
}

export function luminance(colour: Rgb): number {
  const [r, g, b] = colour.map(linear) as [number, number, number]
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

/** Converts an sRGB colour to OKLab (Ottosson 2020). */
export function oklab(colour: Rgb): Lab {
  const [r, g, b] = colour.map(linear) as [number, number, number]
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b)
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b)
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b)
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ]
}

/** Perceptual distance of two colours, in OKLab. */
export function distance(a: Lab, b: Lab): number {
  return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2])
}

function linear(value: number): number {
  const x = value / 255
  return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4
}

function rgb([L, a, b]: Lab): Rgb {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3
  const parts = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ]
  return parts.map((x) => {
    const clear = Math.min(1, Math.max(0, x))
    return Math.round(255 * (clear <= 0.0031308 ? 12.92 * clear : 1.055 * clear ** (1 / 2.4) - 0.055))
  }) as unknown as Rgb
}

/** Joins the points with a smooth curve and samples it at equal distances. */
function sample(points: [number, number, number][]): Rgb[] {
  const labs = points.map(([L, chroma, hue]): Lab => {
    const angle = (hue * Math.PI) / 180
    return [L, chroma * Math.cos(angle), chroma * Math.sin(angle)]
  })
  const fine = Array.from({ length: 2001 }, (_, at) => interpolate(labs, at / 2000))
  const far = [0]
  for (let at = 1; at < fine.length; at++)
    far.push((far[at - 1] as number) + distance(fine[at] as Lab, fine[at - 1] as Lab))
  const whole = far.at(-1) as number
  let at = 0
  return Array.from({ length: STEPS }, (_, step) => {
    const goal = (step / (STEPS - 1)) * whole
    while (at < fine.length - 2 && (far[at + 1] as number) < goal) at++
    return rgb(fine[(far[at + 1] as number) - goal < goal - (far[at] as number) ? at + 1 : at] as Lab)
  })
}

/** Point of a Catmull-Rom curve through the points, at a share in [0, 1] of its segments. */
function interpolate(points: Lab[], share: number): Lab {
  const at = Math.min(points.length - 2, Math.floor(share * (points.length - 1)))
  const t = share * (points.length - 1) - at
  const point = (n: number) => points[Math.min(points.length - 1, Math.max(0, n))] as Lab
  const [a, b, c, d] = [point(at - 1), point(at), point(at + 1), point(at + 2)]
  const one = (n: 0 | 1 | 2) =>
    0.5 *
    (2 * b[n] +
      (c[n] - a[n]) * t +
      (2 * a[n] - 5 * b[n] + 4 * c[n] - d[n]) * t * t +
      (3 * b[n] - a[n] - 3 * c[n] + d[n]) * t * t * t)
  return [one(0), one(1), one(2)]
}
