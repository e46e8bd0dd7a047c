import { Problem } from './problem'
import type { Answers, Bodies, Page } from './types'

/** Most items of one answer; longer lists are asked for in parts. */
const MOST = 1000
/** Decisions that are asked for at once. */
const DECISIONS = 100

type Operation = keyof Answers
type List = { [O in Operation]: Answers[O] extends Page<unknown> ? O : never }[Operation]
type Item<O extends List> = Answers[O] extends Page<infer T> ? T : never
type Query = Record<string, string | number | null | undefined>

/** What an operation is asked with: what stands for the names in its path, after `?`, and in its body. */
interface Asked<O extends Operation> {
  names?: Record<string, string>
  query?: Query
  body?: O extends keyof Bodies ? Bodies[O] : never
  signal?: AbortSignal | undefined
}

/** The service that served this page. Every call throws a `Problem`, and nothing else. */
export class Client {
  constructor(
    private readonly token: () => string | null,
    private readonly root = '',
  ) {}

  status = (signal?: AbortSignal) => this.ask('GET /v1/status', { signal })
  racks = (signal?: AbortSignal) => this.all('GET /v1/racks', signal)
  rack = (rack: string, signal?: AbortSignal) => this.ask('GET /v1/racks/{rack}', { names: { rack }, signal })
  history = (since: string, step_s: number, signal?: AbortSignal) =>
    this.ask('GET /v1/history', { query: { kind: 'rack', since, step_s }, signal })
  linkHistory = (link: string, since: string, step_s: number, signal?: AbortSignal) =>
    this.ask('GET /v1/links/{link}/history', { names: { link }, query: { since, step_s }, signal })
  decisions = (kind: string | null, signal?: AbortSignal) =>
    this.ask('GET /v1/decisions', { query: { kind, limit: DECISIONS }, signal }).then(({ items }) => items)
  decision = (id: string, signal?: AbortSignal) =>
    this.ask('GET /v1/decisions/{id}', { names: { id }, signal })
  policies = (signal?: AbortSignal) => this.ask('GET /v1/policies', { signal })
  whatIf = (id: string, policy: string, signal?: AbortSignal) =>
    this.ask('POST /v1/decisions/{id}/what-if', { names: { id }, body: { policy }, signal })
  workloads = (signal?: AbortSignal) => this.all('GET /v1/workloads', signal)
  hotspots = (signal?: AbortSignal) => this.all('GET /v1/hotspots', signal)
  migrations = (signal?: AbortSignal) => this.all('GET /v1/migrations', signal)
  answer = (id: string, body: Bodies['POST /v1/migrations/{id}']) =>
    this.ask('POST /v1/migrations/{id}', { names: { id }, body })
  demo = (signal?: AbortSignal) => this.ask('GET /v1/demo', { signal })

  /** Opens the stream of events; the caller reads its body. */
  async events(last: string | null, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const headers: Record<string, string> = { accept: 'text/event-stream' }
    if (last !== null) headers['last-event-id'] = last
    const response = await this.send('/v1/events', headers, { signal })
    if (!response.body) throw Problem.unreachable('no body')
    return response.body
  }

  private async all<O extends List>(operation: O, signal?: AbortSignal): Promise<Item<O>[]> {
    const items: Item<O>[] = []
    let after: string | null = null
    do {
      const page = (await this.ask(operation, { query: { limit: MOST, after }, signal })) as Page<Item<O>>
      items.push(...page.items)
      after = page.next
    } while (after !== null)
    return items
  }

  private async ask<O extends Operation>(operation: O, asked: Asked<O>): Promise<Answers[O]> {
    const [method, template] = operation.split(' ') as [string, string]
    // A name may hold any letter.
    const path = template.replace(/{(\w+)}/g, (_, name: string) =>
      encodeURIComponent(asked.names?.[name] ?? ''),
    )
    const given = Object.entries(asked.query ?? {}).filter(
      ([, value]) => value !== null && value !== undefined,
    )
    const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
    const headers: Record<string, string> = { accept: 'application/json, application/problem+json' }
    const init: RequestInit = { method }
    if (asked.body) {
      headers['content-type'] = 'application/json'
      init.body = JSON.stringify(asked.body)
    }
    if (asked.signal) init.signal = asked.signal
    const response = await this.send(query ? `${path}?${query}` : path, headers, init)
    return (await response.json().catch((cause: unknown) => {
      throw Problem.unreachable(cause)
    })) as Answers[O]
  }

  private async send(path: string, headers: Record<string, string>, init: RequestInit): Promise<Response> {
    const token = this.token()
    const response = await fetch(this.root + path, {
      ...init,
      headers: token ? { ...headers, authorization: `Bearer ${token}` } : headers,
      cache: 'no-store',
      credentials: 'omit',
    }).catch((cause: unknown) => {
      throw Problem.unreachable(cause)
    })
    if (!response.ok) throw await Problem.of(response)
    return response
  }
}
