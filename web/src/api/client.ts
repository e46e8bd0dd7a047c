import { Problem } from './problem'
import type {
  Decision,
  DecisionKind,
  Demo,
  History,
  Hotspot,
  LinkHistory,
  Migration,
  Page,
  Rack,
  RackDetail,
  Status,
  Workload,
} from './types'

/** Most items of one answer; longer lists are asked for in parts. */
const MOST = 1000

type Query = Record<string, string | number | null | undefined>

/** The controller that served this page. Every call throws a `Problem`, and nothing else. */
export class Client {
  constructor(
    private readonly token: () => string | null,
    private readonly root = '',
  ) {}

  status = (signal?: AbortSignal) => this.get<Status>('/v1/status', {}, signal)
  racks = (signal?: AbortSignal) => this.all<Rack>('/v1/racks', {}, signal)
  rack = (rack: string, signal?: AbortSignal) => this.get<RackDetail>(path`/v1/racks/${rack}`, {}, signal)
  history = (since: string, step_s: number, signal?: AbortSignal) =>
    this.get<History>('/v1/history', { kind: 'rack', since, step_s }, signal)
  linkHistory = (link: string, since: string, step_s: number, signal?: AbortSignal) =>
    this.get<LinkHistory>(path`/v1/links/${link}/history`, { since, step_s }, signal)
  decisions = (kind: DecisionKind | null, signal?: AbortSignal) =>
    this.get<Page<Decision>>('/v1/decisions', { kind, limit: 200 }, signal).then((page) => page.items)
  decision = (id: string, signal?: AbortSignal) => this.get<Decision>(path`/v1/decisions/${id}`, {}, signal)
  whatIf = (id: string, policy: string, signal?: AbortSignal) =>
    this.get<Decision>(path`/v1/decisions/${id}/what-if`, { policy }, signal)
  workloads = (signal?: AbortSignal) => this.all<Workload>('/v1/workloads', {}, signal)
  migrations = (signal?: AbortSignal) => this.all<Migration>('/v1/migrations', {}, signal)
  hotspots = (signal?: AbortSignal) => this.all<Hotspot>('/v1/hotspots', {}, signal)
  demo = (signal?: AbortSignal) => this.get<Demo>('/v1/demo', {}, signal)

  /** Opens the stream of events; the caller reads its body. */
  async events(last: string | null, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const headers: Record<string, string> = { accept: 'text/event-stream' }
    if (last !== null) headers['last-event-id'] = last
    const response = await this.ask('/v1/events', headers, signal)
    if (!response.body) throw Problem.unreachable('no body')
    return response.body
  }

  private async all<T>(path: string, query: Query, signal?: AbortSignal): Promise<T[]> {
    const items: T[] = []
    let after: string | null = null
    do {
      const page: Page<T> = await this.get<Page<T>>(path, { ...query, limit: MOST, after }, signal)
      items.push(...page.items)
      after = page.next
    } while (after !== null)
    return items
  }

  private async get<T>(path: string, query: Query, signal?: AbortSignal): Promise<T> {
    const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined)
    const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
    const response = await this.ask(
      search ? `${path}?${search}` : path,
      { accept: 'application/json, application/problem+json' },
      signal,
    )
    return (await response.json().catch((cause: unknown) => {
      throw Problem.unreachable(cause)
    })) as T
  }

  private async ask(path: string, headers: Record<string, string>, signal?: AbortSignal): Promise<Response> {
    const token = this.token()
    const init: RequestInit = {
      headers: token ? { ...headers, authorization: `Bearer ${token}` } : headers,
      cache: 'no-store',
      credentials: 'omit',
    }
    if (signal) init.signal = signal
    const response = await fetch(this.root + path, init).catch((cause: unknown) => {
      throw Problem.unreachable(cause)
    })
    if (!response.ok) throw await Problem.of(response)
    return response
  }
}

/** A path whose parts may hold any letter. */
function path(texts: TemplateStringsArray, ...parts: string[]): string {
  return texts.reduce((made, text, at) => made + encodeURIComponent(parts[at - 1] ?? '') + text)
}
