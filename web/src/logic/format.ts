/** Formats numbers for readers, with units. Unknown values are a dash. */

export const UNKNOWN = '–'
/** Keeps a number and its unit on one line. */
const GAP = '\u00a0'

type Maybe = number | null | undefined

const isKnown = (value: Maybe): value is number => typeof value === 'number' && Number.isFinite(value)

/** Three significant digits, without trailing zeros: 1.25, 12.5, 125, 1250. */
function digits(value: number): string {
  const size = Math.abs(value)
  const places = size === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(size) + 1e-12))
  return String(Number(value.toFixed(Math.min(places, 6))))
}

/** A rate: 9.4 Gbps. */
export function rate(bps: Maybe): string {
  if (!isKnown(bps)) return UNKNOWN
  const units: [number, string][] = [
    [1e12, 'Tbps'],
    [1e9, 'Gbps'],
    [1e6, 'Mbps'],
    [1e3, 'kbps'],
  ]
  // A value of at least 999.5 of a unit would round up to 1000, so it takes the next unit.
  const [size, unit] = units.find(([size]) => Math.abs(bps) >= size * 0.9995) ?? [1, 'bps']
  return digits(bps / size) + GAP + unit
}

/**
 * Formats a size of the API, such as `256MiB` or a number of bytes: 256 MiB, 7.09 TB. The unit is the largest suitable one
 * of its kind, binary or decimal.
 *
 * @param decimal Uses decimal units for binary sizes too, so that the sizes of a column compare.
 */
export function size(text: string | null | undefined, decimal = false): string {
  const [, number, unit] = /^([\d.]+)([KMGTP]i?)?B$/.exec(text ?? '') ?? []
  if (number === undefined) return text ?? UNKNOWN
  const binary = unit?.endsWith('i') ?? false
  const [step, mark] = binary && !decimal ? [1024, 'i'] : [1000, '']
  let [value, at] = [Number(number), unit ? 'KMGTP'.indexOf(unit[0] as string) + 1 : 0]
  if (binary && decimal) [value, at] = [value * 1024 ** at, 0]
  while (value >= step && at < 5) [value, at] = [value / step, at + 1]
  return digits(value) + GAP + (at === 0 ? '' : 'KMGTP'[at - 1] + mark) + 'B'
}

/** A share: 83 %. `places` is the number of decimals. */
export function share(value: Maybe, places = 0): string {
  if (!isKnown(value)) return UNKNOWN
  return (value * 100).toFixed(places) + GAP + '%'
}

/** A duration: 14 ms, 2.5 s, 12 min, 3.2 h, 4 d. */
export function duration(seconds: Maybe): string {
  if (!isKnown(seconds)) return UNKNOWN
  const size = Math.abs(seconds)
  if (size === 0) return `0${GAP}s`
  if (size < 0.9995e-3) return digits(seconds * 1e6) + GAP + 'us'
  if (size < 0.9995) return digits(seconds * 1e3) + GAP + 'ms'
  if (size < 119.5) return digits(seconds) + GAP + 's'
  if (size < 7170) return Math.round(seconds / 60) + GAP + 'min'
  if (size < 172_800) return digits(Math.round(seconds / 360) / 10) + GAP + 'h'
  return digits(Math.round(seconds / 8640) / 10) + GAP + 'd'
}

/** An age, in whole seconds or larger steps so that it does not flicker: 8 s, 3 min. */
export function age(seconds: Maybe): string {
  if (!isKnown(seconds)) return UNKNOWN
  return duration(seconds < 119.5 ? Math.max(0, Math.round(seconds)) : seconds)
}

/** A number without a unit, with three significant digits: 2.35. */
export function number(value: Maybe): string {
  return isKnown(value) ? digits(value) : UNKNOWN
}

/** A rate per second: 12.5 /s. */
export function perSecond(value: Maybe): string {
  if (!isKnown(value)) return UNKNOWN
  return (value >= 1000 ? count(Math.round(value)) : digits(value)) + GAP + '/s'
}

/** A count: 12,500. */
export function count(value: Maybe): string {
  return isKnown(value) ? value.toLocaleString('en', { maximumFractionDigits: 0 }) : UNKNOWN
}

/** A factor: 2.4 times. */
export function times(value: Maybe): string {
  return isKnown(value) ? `${digits(value)} times` : UNKNOWN
}

/** A time of day in the reader's zone: 14:03:20. */
export function clock(ms: Maybe, seconds = true): string {
  if (!isKnown(ms)) return UNKNOWN
  const at = new Date(ms)
  const two = (value: number) => String(value).padStart(2, '0')
  return [at.getHours(), at.getMinutes(), ...(seconds ? [at.getSeconds()] : [])].map(two).join(':')
}

/** Parses an RFC 3339 time to milliseconds since the epoch; null if it is missing or invalid. */
export function moment(text: string | null | undefined): number | null {
  const ms = text ? Date.parse(text) : NaN
  return Number.isNaN(ms) ? null : ms
}

/** A count with its noun: `1 rack`, `3 racks`. */
export function quantity(value: number, word: string): string {
  return `${count(value)} ${word}${value === 1 ? '' : 's'}`
}

/** A percentile of an SLO: 99.9 %. */
export function percentile(value: number): string {
  return `${Number((value <= 1 ? value * 100 : value).toFixed(4))}${GAP}%`
}

/** A time for readers: 14:03:20 on the day of `now`, else with its date: 2026-03-02 14:03. */
export function stamp(ms: Maybe, now: number): string {
  if (!isKnown(ms)) return UNKNOWN
  const day = (time: number) => {
    const at = new Date(time)
    return [at.getFullYear(), at.getMonth() + 1, at.getDate()]
      .map((part) => String(part).padStart(2, '0'))
      .join('-')
  }
  return day(ms) === day(now) ? clock(ms) : `${day(ms)} ${clock(ms, false)}`
}

/** Hours with their unit: 3.21 h. */
export function hours(value: Maybe): string {
  if (!isKnown(value)) return UNKNOWN
  return `${Math.abs(value) >= 1000 ? count(Math.round(value)) : digits(value)}${GAP}h`
}
