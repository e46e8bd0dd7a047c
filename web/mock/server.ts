import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, normalize } from 'node:path'
import type { Decision, History, Page, Status } from '../src/api/types'
import { INTERVAL, LIMIT, parts, World } from './world.ts'

export interface MockOptions {
  racks?: number
  seed?: number
  demo?: boolean
  /** What a bearer must say. */
  token?: string
  /** No rack, decision or workload at all. */
  empty?: boolean
}

/** Events that a connection may resume from. */
const BUFFER = 1000
/** The step at which the controller is first asked: two hours of history are there. */
const FIRST = 720
const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
}
/** As strict as the controller may send it with the page. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'"

/** A controller of a simulated cluster. Time stands still but for `tick`. */
export class Mock {
  readonly world: World
  step = FIRST
  /** Whether requests are cut off, as by a controller that is gone. */
  gone = false
  private readonly options: MockOptions
  private readonly streams = new Set<ServerResponse>()
  private readonly sent: { id: number; text: string }[] = []
  private events = 0
  private made: Decision[] = []

  constructor(options: MockOptions = {}) {
    this.options = options
    this.world = new World(options.empty ? 0 : (options.racks ?? 40), options.seed ?? 1)
    if (!options.empty)
      for (let step = FIRST - 60; step <= FIRST; step++) this.made.push(...this.world.decisions(step))
  }

  /** Goes on by one interval, and tells all who listen. */
  tick(): void {
    const before = new Map(this.world.migrations(this.step).map((one) => [one.id, one.state]))
    this.step++
    if (this.options.empty) return this.publish('racks', { items: [] })
    const decisions = this.world.decisions(this.step)
    this.made.push(...decisions)
    for (const decision of decisions) this.publish('decision', decision)
    for (const hotspot of this.world.hotspots(this.step)) this.publish('hotspot', hotspot)
    for (const migration of this.world.migrations(this.step))
      if (before.get(migration.id) !== migration.state) this.publish('migration', migration)
    this.publish('racks', { items: this.world.all(this.step) })
  }

  /** Cuts every connection; new ones are cut too until `back`. */
  leave(): void {
    this.gone = true
    for (const stream of this.streams) stream.destroy()
    this.streams.clear()
  }

  back(): void {
    this.gone = false
  }

  get listeners(): number {
    return this.streams.size
  }

  publish(name: string, value: unknown): void {
    const id = ++this.events
    const text = `id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(value)}\n\n`
    this.sent.push({ id, text })
    if (this.sent.length > BUFFER) this.sent.shift()
    for (const stream of this.streams) stream.write(text)
  }

  answer(request: IncomingMessage, response: ServerResponse): void {
    if (this.gone) return void request.socket.destroy()
    const { token } = this.options
    if (token && request.headers.authorization !== `Bearer ${token}`) {
      const detail = 'Send a token of at least the role `read`, as `Authorization: Bearer TOKEN`.'
      return problem(response, 'token', 401, 'A token is needed', detail)
    }
    const url = new URL(request.url ?? '/', 'http://controller')
    const path = url.pathname.slice('/v1/'.length).split('/').map(decodeURIComponent)
    if (path[0] === 'events') return this.listen(request, response)
    const found = this.find(path, url.searchParams)
    if (found === undefined)
      problem(response, 'not-found', 404, 'There is no such thing', `\`${url.pathname}\` is not known here.`)
    else send(response, 200, found)
  }

  private find(path: string[], query: URLSearchParams): unknown {
    const [kind, name, part] = path
    const { world, step } = this
    const racks = world.racks
    const rack = Number(/^r(\d+)$/.exec(name ?? '')?.[1] ?? NaN)
    if (kind === 'status') return this.status()
    if (kind === 'racks' && !name) return page(world.all(step))
    if (kind === 'racks') return rack < racks ? world.detail(rack, step) : undefined
    if (kind === 'history') return this.history(query)
    if (kind === 'links' && name && part === 'history') return this.linkHistory(name, query)
    if (kind === 'hotspots') return page(world.hotspots(step))
    if (kind === 'migrations') return page(world.migrations(step))
    if (kind === 'workloads') return page(this.options.empty ? [] : world.workloads(step))
    if (kind === 'demo')
      return this.options.demo ? world.demo(step, Math.max(FIRST - 240, step - 360)) : undefined
    if (kind === 'decisions' && !name) {
      const wanted = query.get('kind')
      const found = this.made.filter((one) => !wanted || one.kind === wanted)
      return page(found.slice(-Number(query.get('limit') ?? 100)).reverse())
    }
    if (kind === 'decisions' && name) {
      const [, at, n] = /^d-(\d+)-(\d+)$/.exec(name) ?? []
      const kept = this.made.find((one) => one.id === name)
      const found = kept ?? (at ? world.decide(Number(at), Number(n), 'replicas', 'leeward') : undefined)
      if (!found || part !== 'what-if') return found
      return {
        ...world.decide(Number(at), Number(n), found.kind, query.get('policy') ?? 'uniform'),
        id: found.id,
      }
    }
    return undefined
  }

  private status(): Status {
    return {
      version: '0.9.0',
      cluster: 'east-2',
      cluster_version: '7',
      policies: { replicas: 'leeward', tasks: 'utp-reactive', moves: 'utp-reactive' },
      role: 'leader',
      leader: null,
      since: this.world.time(0),
      time: this.world.time(this.step),
      epoch: this.step * 4,
      interval_s: INTERVAL,
      limit: LIMIT,
      decisions: this.made.length,
      waiting: 0,
      reports_s: this.options.empty ? 0 : (this.world.racks * this.world.hosts) / INTERVAL,
      store: 'sqlite',
      durability: 'process',
      demo: this.options.demo ? { speed: 60, arms: ['leeward', 'default'] } : null,
    }
  }

  private history(query: URLSearchParams): History {
    const { steps, from, step_s } = this.steps(query)
    const racks = Array.from({ length: this.world.racks }, (_, rack) => rack)
    const series = racks.flatMap((rack) =>
      ([0, 1] as const).map((way) => ({
        link: `r${rack}:${way ? 'downlink' : 'uplink'}`,
        utilization: steps.map((step) => rounded(this.world.utilization(rack, way, step))),
      })),
    )
    return { from, step_s, series }
  }

  private linkHistory(link: string, query: URLSearchParams) {
    const [rack, way] = parts(link)
    const { steps, from, step_s } = this.steps(query)
    return {
      link,
      from,
      step_s,
      utilization: steps.map((step) => rounded(this.world.utilization(rack, way, step))),
    }
  }

  private steps(query: URLSearchParams) {
    const every = Math.max(1, Math.round(Number(query.get('step_s') ?? 60) / INTERVAL))
    const since = Math.max(0, this.world.step(query.get('since') ?? this.world.time(this.step - 360)))
    const first = Math.ceil(since / every) * every
    const steps: number[] = []
    for (let step = first; step <= this.step; step += every) steps.push(step)
    return { steps, from: this.world.time(first), step_s: every * INTERVAL }
  }

  private listen(request: IncomingMessage, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
    response.write(': connected\n\n')
    const last = request.headers['last-event-id']
    if (last !== undefined) for (const { id, text } of this.sent) if (id > Number(last)) response.write(text)
    this.streams.add(response)
    request.on('close', () => this.streams.delete(response))
  }

  /** Serves the built page and the API at a free port of the loopback interface. */
  async serve(dist: string): Promise<{ url: string; close: () => void }> {
    const server: Server = createServer((request, response) => {
      if (request.url?.startsWith('/v1/')) this.answer(request, response)
      else file(dist, request, response)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    return { url: `http://127.0.0.1:${port}/`, close: () => (this.leave(), server.close()) }
  }
}

function file(dist: string, request: IncomingMessage, response: ServerResponse): void {
  const path = normalize(new URL(request.url ?? '/', 'http://controller').pathname)
  const name = path === '/' ? '/index.html' : path
  try {
    const body = readFileSync(join(dist, name))
    const type = TYPES[extname(name)] ?? 'application/octet-stream'
    response.writeHead(200, { 'content-type': type, 'content-security-policy': POLICY }).end(body)
  } catch {
    response.writeHead(404).end()
  }
}

function page<T>(items: T[]): Page<T> {
  return { items, next: null }
}

function rounded(value: number | null): number | null {
  return value === null ? null : Math.round(value * 1000) / 1000
}

function send(response: ServerResponse, status: number, value: unknown, type = 'application/json'): void {
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(JSON.stringify(value))
}

function problem(
  response: ServerResponse,
  word: string,
  status: number,
  title: string,
  detail: string,
): void {
  const document = { type: `urn:leeward:problem:${word}`, title, status, detail }
  send(response, status, document, 'application/problem+json')
}
