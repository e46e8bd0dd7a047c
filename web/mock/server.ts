import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Decision, History, HotLink, Hotspot, Migration, Page, Policies, Status } from '../src/api/types'
import { INTERVAL, LIMIT } from './cluster.ts'
import { POLICIES as POLICY_OF } from './decisions.ts'
import { serve } from './files.ts'
import { lab } from './lab.ts'
import { MockModes } from './modes.ts'
import { Snapshots } from './snapshots.ts'
import { comparisons, summary } from './summary.ts'
import { parts, World } from './world.ts'

export interface MockOptions {
  racks?: number
  seed?: number
  demo?: boolean
  /** Bearer token that requests need. */
  token?: string
  /** Cluster without racks, decisions and workloads. */
  empty?: boolean
  /** Number of racks of a lab on the service's machine; without it, there is none. */
  lab?: number
}

/** Number of events that a new connection may resume from. */
const BUFFER = 1000
/** First step: the service starts with two hours of history. */
const FIRST = 720
const OFFERED: Policies = {
  replicas: ['uniform', 'leeward', 'sinbad'].map((name) => ({ name, label: name })),
  tasks: ['borg', 'utp'].map((name) => ({ name, label: name })),
  workload: [],
  volumes: [],
}

/** Connections of clients other than agents, and connections that the limit allows besides one for each host. */
const CLIENTS = 28
const SPARE_CONNECTIONS = 256
/** Number of silent agents that a status names. */
const MAX_NAMES = 100

/** Decisions until the first step, by cluster: they are the same for each mock of it. */
const pasts = new Map<string, Decision[]>()

function past(world: World, key: string): Decision[] {
  const known = pasts.get(key)
  if (known) return known
  const decisions = Array.from({ length: FIRST + 1 }, (_, step) => world.decisions(step)).flat()
  pasts.set(key, decisions)
  return decisions
}

/** Service of a simulated cluster. Its clock advances only with `tick`. */
export class Mock {
  readonly world: World
  step = FIRST
  /** Drops requests without a response, like a stopped service. */
  down = false
  /** Reason why the store is unavailable; null if it is available. */
  stalled: string | null = null
  /** Rejects changes of modes, as for a token without the role admin. */
  readOnly = false
  /** Resources that this service does not have: first parts of paths after /v1. */
  readonly missing: string[] = []
  private readonly options: MockOptions
  private readonly streams = new Set<ServerResponse>()
  private readonly buffer: { id: number; text: string }[] = []
  private events = 0
  private decisions: Decision[] = []
  private samples = 0
  private readonly snapshots = new Snapshots()
  readonly modes = new MockModes()
  private readonly answers = new Map<string, { state: string; reason: string | null }>()

  constructor(options: MockOptions = {}) {
    this.options = options
    const { racks = 40, seed = 1, empty = false } = options
    this.world = new World(empty ? 0 : racks, seed)
    if (empty) return
    this.decisions = [...past(this.world, `${racks}/${seed}`)]
    this.samples = this.samplesOf(FIRST) * FIRST
  }

  /** Samples of a step: two links for each host that reports, and two for each rack. */
  private samplesOf(step: number): number {
    return this.world.agents(step).links
  }

  /** Advances the clock by one interval and publishes the events. */
  tick(): void {
    const before = this.world.hot(this.step)
    this.step++
    if (this.options.empty) return
    this.samples += this.samplesOf(this.step)
    const decisions = this.world.decisions(this.step)
    this.decisions.push(...decisions)
    for (const decision of decisions) this.publish('decision', decision)
    const now = this.world.hot(this.step)
    const until = this.world.time(this.step)
    const event = ({ link, since, age_s, utilization }: Hotspot) => ({ link, since, age_s, utilization })
    for (const one of now) if (!has(before, one)) this.publish('hotspot', { ...event(one), until: null })
    for (const one of before) if (!has(now, one)) this.publish('hotspot', { ...event(one), until })
    this.snapshots.changed()
  }

  /** Closes every connection, and rejects new ones until `resume`. */
  stop(): void {
    this.down = true
    for (const stream of this.streams) stream.destroy()
    this.streams.clear()
    this.snapshots.close()
  }

  resume(): void {
    this.down = false
  }

  get listeners(): number {
    return this.streams.size
  }

  publish(name: string, value: unknown): void {
    const id = ++this.events
    const text = `id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(value)}\n\n`
    this.buffer.push({ id, text })
    if (this.buffer.length > BUFFER) this.buffer.shift()
    for (const stream of this.streams) stream.write(text)
  }

  answer(request: IncomingMessage, response: ServerResponse): void {
    if (this.down) return void request.socket.destroy()
    const { token } = this.options
    if (token && request.headers.authorization !== `Bearer ${token}`) {
      const detail = 'Send a token of at least the role `read`, as `Authorization: Bearer TOKEN`.'
      return problem(response, 'unauthorized', 401, 'Token required', detail)
    }
    const url = new URL(request.url ?? '/', 'http://service')
    const path = url.pathname.slice('/v1/'.length).split('/').map(decodeURIComponent)
    if (path[0] === 'events') return this.listen(request, response)
    if (path[0] === 'snapshot' && !this.missing.includes('snapshot'))
      return this.snapshots.answer(
        this.world,
        () => this.step,
        url.searchParams,
        (body) => send(response, 200, body),
      )
    if (request.method === 'PATCH') return void this.patch(request, response)
    if (request.method === 'POST') return void this.post(path, request, response)
    const resource = this.find(path, url.searchParams)
    if (resource === undefined)
      problem(response, 'not-found', 404, 'Not found', `\`${url.pathname}\` is not known here.`)
    else send(response, 200, resource)
  }

  private find(path: string[], query: URLSearchParams): unknown {
    const [kind, name, part] = path
    if (this.missing.includes(kind ?? '')) return undefined
    const { world, step } = this
    const racks = world.racks
    const rack = Number(/^r(\d+)$/.exec(name ?? '')?.[1] ?? NaN)
    if (kind === 'status') return this.status()
    if (kind === 'modes') return this.modes.value
    if (kind === 'summary') {
      const { links } = world.agents(step)
      const moves = world.migrations(step)
      return summary(this.decisions, moves, links, query.get('since') ?? '', world.time(step))
    }
    if (kind === 'racks') return rack < racks ? world.detail(rack, step) : undefined
    if (kind === 'history') return this.history(query)
    if (kind === 'links' && name && part === 'history') return this.history(query, name)
    if (kind === 'hotspots') return page(this.hotspots())
    if (kind === 'migrations') return page(this.migrations())
    if (kind === 'policies') return OFFERED
    if (kind === 'workloads') return page(this.options.empty ? [] : world.workloads(step))
    if (kind === 'enforcers') return page(this.options.empty ? [] : world.enforcers(step))
    if (kind === 'labs') return page(this.options.lab ? [lab(this.options.lab, 1, step)] : [])
    if (kind === 'demo')
      return this.options.demo ? world.demo(step, Math.max(FIRST - 240, step - 360)) : undefined
    if (kind === 'decisions' && !name) {
      const matching = this.decisions.filter((one) => matches(one, query)).reverse()
      const from = query.has('after') ? matching.findIndex(({ id }) => id === query.get('after')) + 1 : 0
      const items = matching.slice(from, from + Number(query.get('limit') ?? 100))
      const more = from + items.length < matching.length
      return { items, next: more ? (items.at(-1)?.id ?? null) : null }
    }
    if (kind === 'decisions' && name) {
      const [, at, n] = /^d-(\d+)-(\d+)$/.exec(name) ?? []
      const stored = this.decisions.find((one) => one.id === name)
      return stored ?? (at ? world.decide(Number(at), Number(n), 'replicas', 'sinbad') : undefined)
    }
    return undefined
  }

  private async post(path: string[], request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [kind, name = '', part] = path
    let text = ''
    for await (const piece of request) text += String(piece)
    const body = JSON.parse(text) as { policy?: string; answer?: string; reason?: string }
    const [, at, n] = /^d-(\d+)-(\d+)$/.exec(name) ?? []
    const decision = this.decisions.find((one) => one.id === name)
    if (kind === 'decisions' && part === 'what-if' && decision)
      return send(response, 200, this.whatIf(decision, Number(at), Number(n), body.policy ?? ''))
    const move = this.migrations().find((one) => one.id === name)
    if (kind !== 'migrations' || !move)
      return problem(response, 'not-found', 404, 'Not found', `\`${name}\` is not known here.`)
    if (move.state !== 'advised')
      return problem(
        response,
        'answered',
        409,
        'The migration has another answer',
        `\`${name}\` is ${move.state}.`,
      )
    this.answers.set(name, { state: body.answer ?? '', reason: body.reason ?? null })
    send(response, 200, { ...move, ...this.answers.get(name) })
  }

  private async patch(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = ''
    for await (const piece of request) text += String(piece)
    if (this.readOnly)
      return problem(response, 'forbidden', 403, 'Not allowed', 'This needs the role `admin`.')
    this.modes.change(JSON.parse(text) as Record<string, string>, this.world.time(this.step))
    this.publish('modes', { set: this.modes.value.set, by: this.modes.value.by, reason: null })
    send(response, 200, this.modes.value)
  }

  /** Choice of another policy for the request of a decision, with the loads on the links of both choices. */
  private whatIf(decision: Decision, at: number, n: number, policy: string): Decision {
    const other = this.world.decide(at, n, decision.kind, policy)
    const { policy: own, hosts, beside } = decision
    const loads = beside && other.beside
    return {
      ...other,
      beside: loads
        ? { policy: own, hosts, refused: null, load: beside.decided, decided: other.beside?.decided ?? null }
        : null,
    }
  }

  private migrations(): Migration[] {
    return this.world.migrations(this.step).map((one) => ({ ...one, ...this.answers.get(one.id) }))
  }

  /** Hot links. A task that was answered may not move again soon, so its link has no move unless another one waits. */
  private hotspots(): HotLink[] {
    const waits = new Set(this.migrations().flatMap((one) => (one.state === 'advised' ? [one.link] : [])))
    const answered = new Set(this.migrations().flatMap((one) => (this.answers.has(one.id) ? [one.link] : [])))
    return this.world
      .hotspots(this.step)
      .map((one) =>
        waits.has(one.link)
          ? { ...one, no_move: null }
          : { ...one, no_move: one.no_move ?? (answered.has(one.link) ? 'fixed' : null) },
      )
  }

  private status(): Status {
    const { reporting, absent, silent, slow } = this.world.agents(this.step)
    return {
      version: '0.1.0',
      cluster: 'east-2',
      cluster_version: '7',
      policies: {
        replicas: POLICY_OF['replicas'] ?? '',
        tasks: POLICY_OF['tasks'] ?? '',
        moves: 'utp',
        workload: 'dnc',
        volumes: POLICY_OF['volumes'] ?? '',
      },
      modes: this.modes.value.in_force,
      store: 'sqlite',
      durability: 'power',
      clock_behind_s: 0,
      slow_links: slow,
      released_early: 0,
      snapshot_age_s: 0.42,
      transaction_s: 0.0021,
      agents: { reporting, silent: silent.length, absent, silent_hosts: silent.slice(0, MAX_NAMES) },
      connections: {
        open: reporting + CLIENTS,
        limit: this.world.racks * this.world.hosts + SPARE_CONNECTIONS,
        streams: this.listeners,
      },
      comparisons: comparisons(this.decisions),
      warnings: [],
      telemetry: null,
      role: 'leader',
      leader: null,
      since: this.world.time(0),
      time: this.world.time(this.step),
      epoch: this.step * 4,
      interval_s: INTERVAL,
      hot_above: LIMIT,
      stalled: this.stalled,
      decisions: this.decisions.length,
      decided: this.decisions.length,
      samples: this.samples,
      waiting: 0,
      demo: this.options.demo ? { speed: 60, arms: ['leeward', 'default'] } : null,
    }
  }

  /** History of one link, or of all rack links; by default the last hour. */
  private history(query: URLSearchParams, one: string | null = null): History {
    const { steps, from, step_s } = this.steps(query)
    const racks = Array.from({ length: this.world.racks }, (_, rack) => rack)
    const links = one ? [one] : racks.flatMap((rack) => [`r${rack}:uplink`, `r${rack}:downlink`])
    const series = links.map((link) => {
      const [rack, way] = parts(link)
      return { link, utilization: steps.map((step) => round3(this.world.utilization(rack, way, step))) }
    })
    return { from, step_s, series }
  }

  private steps(query: URLSearchParams) {
    const every = Number(query.get('step_s') ?? INTERVAL) / INTERVAL
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
    if (last !== undefined)
      for (const { id, text } of this.buffer) if (id > Number(last)) response.write(text)
    this.streams.add(response)
    request.on('close', () => this.streams.delete(response))
  }

  /** Serves the built page and this API on a free port. */
  async serve(dist: string): Promise<{ url: string; close: () => void }> {
    const server = await serve(dist, (request, response) => this.answer(request, response))
    return { url: server.url, close: () => (this.stop(), server.close()) }
  }
}

function has(hotspots: Hotspot[], { link, since }: Hotspot): boolean {
  return hotspots.some((one) => one.link === link && one.since === since)
}

/** True if a decision matches the parameters of a search. */
function matches(decision: Decision, query: URLSearchParams): boolean {
  const { kind, client, key, ref, hosts, policy, time, note, request } = decision
  const has = (name: string, value: (wanted: string) => boolean) => {
    const wanted = query.get(name)
    return wanted === null || value(wanted)
  }
  return (
    has('kind', (wanted) => kind === wanted) &&
    has('client', (wanted) => client === wanted) &&
    has('key', (wanted) => key === wanted) &&
    has('ref', (wanted) => ref === wanted) &&
    has('job', (wanted) => (request as { job?: string }).job === wanted) &&
    has('host', (wanted) => hosts.includes(wanted)) &&
    has('rack', (wanted) => hosts.some((host) => host.startsWith(`${wanted}h`))) &&
    has('policy', (wanted) => policy.split(':')[0] === wanted) &&
    has('fallback', () => note !== null) &&
    has('since', (wanted) => Date.parse(time) >= Date.parse(wanted)) &&
    has('until', (wanted) => Date.parse(time) <= Date.parse(wanted))
  )
}

function page<T>(items: T[]): Page<T> {
  return { items, next: null }
}

function round3(value: number | null): number | null {
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
