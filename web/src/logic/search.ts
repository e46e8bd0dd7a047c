import { moment } from './format'

/** Parameters of a search for decisions, in the order of the form. Each is a parameter of `GET /v1/decisions`. */
export const FIELDS = [
  ['ref', 'Reference', 'text that the caller gave: id of a block, pod, volume'],
  ['job', 'Job', 'name of a job'],
  ['client', 'Client', 'name of a client'],
  ['key', 'Key', 'idempotency key'],
  ['host', 'Host', 'r3h7'],
  ['rack', 'Rack', 'r3'],
  ['policy', 'Policy', 'sinbad'],
  ['since', 'Since', '2h, or 2026-03-02T09:00Z'],
  ['until', 'Until', '30min, or 2026-03-02T10:00Z'],
] as const

const NAMES: readonly string[] = [...FIELDS.map(([name]) => name), 'kind', 'fallback']

export type Search = Record<string, string>

/** The search in the query of an address: known parameters with a value. */
export function searchOf(query: Record<string, string>): Search {
  return Object.fromEntries(
    Object.entries(query).filter(([name, value]) => NAMES.includes(name) && value !== ''),
  )
}

/** Parses the text of the search box: `rack:r3 client:hdfs`, or a word alone, which is a reference. */
export function parseSearch(text: string): Search {
  const search: Search = {}
  for (const [, name = '', quoted, plain] of text.matchAll(/(?:([a-z]+):)?(?:"([^"]*)"|(\S+))/g)) {
    const value = quoted ?? plain ?? ''
    if (name === '' && value === 'fallback') search['fallback'] = 'true'
    else if (name === '' || !NAMES.includes(name)) search['ref'] = name === '' ? value : `${name}:${value}`
    else if (name === 'fallback') search['fallback'] = 'true'
    else search[name] = value
  }
  return search
}

/** The text of the search box of a search, without its kind. */
export function searchText(search: Search): string {
  const text = ([name, value]: [string, string]) =>
    name === 'fallback'
      ? 'fallback'
      : `${name}:${/[\s"]/.test(value) ? `"${value.replaceAll('"', '')}"` : value}`
  return Object.entries(search)
    .filter(([name]) => name !== 'kind')
    .map(text)
    .join(' ')
}

const UNITS: Record<string, number> = { s: 1, min: 60, h: 3600, d: 86_400, w: 604_800 }

/** A time as the service takes it. `2h` is two hours before `now`. Anything else stays, so that the service checks it. */
export function absoluteTime(text: string, now: number): string {
  const [, count, unit] = /^(\d+(?:\.\d+)?)(s|min|h|d|w)$/.exec(text) ?? []
  if (count !== undefined && unit !== undefined)
    return new Date(now - Number(count) * (UNITS[unit] ?? 0) * 1000).toISOString()
  const ms = moment(text)
  return ms === null ? text : new Date(ms).toISOString()
}

/** Parameters of the request for a search. */
export function parameters(search: Search, now: number): Search {
  const { since, until, ...others } = search
  return {
    ...others,
    ...(since ? { since: absoluteTime(since, now) } : {}),
    ...(until ? { until: absoluteTime(until, now) } : {}),
  }
}
