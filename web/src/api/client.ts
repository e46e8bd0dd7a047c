import { Problem } from './problem'
import type { Responses, RequestBodies, Page } from './types'

/** Page size limit of the API; the client reads longer lists page by page. */
const PAGE_LIMIT = 1000
/** Number of decisions in one request. */
const DECISIONS_LIMIT = 100

/** Largest number of decisions a second in the stream: a page shows no more, and a tab stays below 20 kB/s. */
const DECISIONS_PER_S = 10

/** Columns of the racks that the page follows. */
const RACK_COLUMNS = 'rack,pod,uplink,downlink,up_steps,down_steps,up_hot_since,down_hot_since'

/** Unit of loads, as a share of the capacity. */
const RESOLUTION = 0.001

type Operation = keyof Responses
type List = { [O in Operation]: Responses[O] extends Page<unknown> ? O : never }[Operation]
type Item<O extends List> = Responses[O] extends Page<infer T> ? T : never
type Query = Record<string, string | number | null | undefined>

/** Options of a request: values of the path parameters, query parameters, and the body. */
interface RequestOptions<O extends Operation> {
  names?: Record<string, string>
  query?: Query
  body?: O extends keyof RequestBodies ? RequestBodies[O] : never
  signal?: AbortSignal | undefined
}

/** HTTP client of the service that served this page. Every method throws only `Problem`. */
export class Client {
  constructor(
    private readonly token: () => string | null,
    private readonly root = '',
  ) {}

  status = (signal?: AbortSignal) => this.request('GET /v1/status', { signal })
  /** The racks: at once without `since`, else when they changed, as the difference from that snapshot. */
  snapshot = (since: string | null, signal?: AbortSignal) =>
    this.request('GET /v1/snapshot', {
      query: {
        racks: RACK_COLUMNS,
        resolution: RESOLUTION,
        since,
        ...(since === null ? {} : { interval: '1s', wait: '2s' }),
      },
      signal,
    })
  rack = (rack: string, signal?: AbortSignal) =>
    this.request('GET /v1/racks/{rack}', { names: { rack }, signal })
  history = (since: string, step_s: number, signal?: AbortSignal) =>
    this.request('GET /v1/history', { query: { kind: 'rack', since, step_s }, signal })
  linkHistory = (link: string, since: string, step_s: number, signal?: AbortSignal) =>
    this.request('GET /v1/links/{link}/history', { names: { link }, query: { since, step_s }, signal })
  /** Rack of each host. */
  hostRacks = async (signal?: AbortSignal): Promise<Map<string, string>> => {
    const { hosts } = await this.request('GET /v1/snapshot', { query: { hosts: 'host,rack' }, signal })
    const racks = hosts?.rack ?? []
    return new Map((hosts?.host ?? []).map((host, at) => [host ?? '', racks[at] ?? '']))
  }
  /** A page of decisions, the latest first; `search` has parameters of the operation. */
  decisions = (search: Record<string, string>, after: string | null = null, signal?: AbortSignal) =>
    this.request('GET /v1/decisions', { query: { ...search, limit: DECISIONS_LIMIT, after }, signal })
  decision = (id: string, signal?: AbortSignal) =>
    this.request('GET /v1/decisions/{id}', { names: { id }, signal })
  policies = (signal?: AbortSignal) => this.request('GET /v1/policies', { signal })
  whatIf = (id: string, policy: string, signal?: AbortSignal) =>
    this.request('POST /v1/decisions/{id}/what-if', { names: { id }, body: { policy }, signal })
  workloads = (signal?: AbortSignal) => this.all('GET /v1/workloads', signal)
  enforcers = (signal?: AbortSignal) => this.all('GET /v1/enforcers', signal)
  hotspots = (signal?: AbortSignal) => this.all('GET /v1/hotspots', signal)
  migrations = (signal?: AbortSignal) => this.all('GET /v1/migrations', signal)
  answer = (id: string, body: RequestBodies['POST /v1/migrations/{id}']) =>
    this.request('POST /v1/migrations/{id}', { names: { id }, body })
  modes = (signal?: AbortSignal) => this.request('GET /v1/modes', { signal })
  setModes = (body: RequestBodies['PATCH /v1/modes']) => this.request('PATCH /v1/modes', { body })
  summary = (since: string, signal?: AbortSignal) =>
    this.request('GET /v1/summary', { query: { since }, signal })
  demo = (signal?: AbortSignal) => this.request('GET /v1/demo', { signal })
  labs = (signal?: AbortSignal) => this.all('GET /v1/labs', signal)

  /** Opens the event stream without the loads of racks, which `snapshot` has; the caller reads the returned body. */
  async events(lastId: string | null, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const headers: Record<string, string> = { accept: 'text/event-stream' }
    if (lastId !== null) headers['last-event-id'] = lastId
    const path = `/v1/events?racks=false&decisions_per_s=${DECISIONS_PER_S}`
    const response = await this.send(path, headers, { signal })
    if (!response.body) throw Problem.unreachable('no body')
    return response.body
  }

  private async all<O extends List>(operation: O, signal?: AbortSignal): Promise<Item<O>[]> {
    const items: Item<O>[] = []
    let after: string | null = null
    do {
      const page = (await this.request(operation, { query: { limit: PAGE_LIMIT, after }, signal })) as Page<
        Item<O>
      >
      items.push(...page.items)
      after = page.next
    } while (after !== null)
    return items
  }

  private async request<O extends Operation>(
    operation: O,
    options: RequestOptions<O>,
  ): Promise<Responses[O]> {
    const [method, template] = operation.split(' ') as [string, string]
    // A name may contain any character.
    const path = template.replace(/{(\w+)}/g, (_, name: string) =>
      encodeURIComponent(options.names?.[name] ?? ''),
    )
    const params = Object.entries(options.query ?? {}).filter(
      ([, value]) => value !== null && value !== undefined,
    )
    const query = new URLSearchParams(params.map(([name, value]) => [name, String(value)])).toString()
    const headers: Record<string, string> = { accept: 'application/json, application/problem+json' }
    const init: RequestInit = { method }
    if (options.body) {
      headers['content-type'] = 'application/json'
      init.body = JSON.stringify(options.body)
    }
    if (options.signal) init.signal = options.signal
    const response = await this.send(query ? `${path}?${query}` : path, headers, init)
    return (await response.json().catch((cause: unknown) => {
      throw Problem.unreachable(cause)
    })) as Responses[O]
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
    if (!response.ok) throw await Problem.fromResponse(response)
    return response
  }
}
