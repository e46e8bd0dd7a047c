import { Client } from '../api/client'
import type { Problem } from '../api/problem'
import type { ServerEvent } from '../api/sse'
import { follow, type Listener } from '../api/stream'
import type { History, Policies, Status } from '../api/types'
import { tick as rendered } from 'svelte'
import { EMPTY, reduce, withDecisions, withRacks, type Board } from '../logic/board'
import { connectionOf, type Connection } from '../logic/connection'
import { moment } from '../logic/format'
import { linked } from '../logic/racks'

const TOKEN = 'leeward-token'
const HOUR_MS = 3_600_000
/** Steps in which the last hour of a link is shown, in seconds. */
export const HOUR_STEP_S = 30
/** How often the status is asked for: what no event tells. */
const STATUS_MS = 5000
/** Statuses, or intervals if they are longer, that rates are told of. */
const RATES = 4
/** Decisions may come by the thousand a second; what comes within this long is shown together. */
const TOGETHER_MS = 200

/** What all pages share: the service, what it streams, and how well it is heard. */
class App implements Listener {
  readonly client = new Client(() => this.token)
  status = $state.raw<Status | null>(null)
  board = $state.raw<Board>(EMPTY)
  /** Policies that can be asked what they would have decided; none of a service that does not tell. */
  policies = $state.raw<Policies | null>(null)
  /** Rises with every connection: what pages asked for before may have missed something. */
  connections = $state(0)
  /** Decisions, and samples of links, a second; null until there were two statuses. */
  rates = $state.raw<{ decisions: number; samples: number } | null>(null)
  /** This machine's clock, every second. */
  now = $state(Date.now())
  /** Whether the reader is asked for a token. */
  asking = $state(false)

  private phase = $state<'connecting' | 'open' | 'lost' | 'denied'>('connecting')
  private problem = $state.raw<Problem | null>(null)
  private ticked = $state<number | null>(null)
  private retry = $state<number | null>(null)
  /** What the service's clock is ahead of this machine's, in milliseconds. */
  private ahead = $state(0)
  private token = $state<string | null>(sessionStorage.getItem(TOKEN))
  private running: AbortController | null = null
  private changes = 0
  private statuses: Status[] = []
  private heard: ServerEvent[] = []
  /** Which connection this is; each loss counts too. */
  private stream = 0
  private waiting: ReturnType<typeof setTimeout> | undefined

  readonly connection: Connection = $derived(
    connectionOf({
      phase: this.phase,
      problem: this.problem,
      now: this.now,
      tick: this.ticked,
      retry: this.retry,
      interval_s: this.status?.interval_s ?? 1,
      telemetry_s: this.telemetry_s,
      links: linked(this.board.racks),
    }),
  )
  readonly live: boolean = $derived(this.connection.kind === 'live')
  /** Links are hot from this utilization on. */
  readonly limit: number = $derived(this.status?.hot_above ?? 0.75)

  /** Whether the service's clock is known; the status itself changes all the time. */
  readonly known: boolean = $derived(this.status !== null)

  /** The service's clock. */
  get time(): number {
    return this.now + this.ahead
  }

  /** The time that was so many milliseconds ago. */
  ago(ms: number): string {
    return new Date(this.time - ms).toISOString()
  }

  /** How long ago something was, in seconds; null if it never was. */
  since(time: string | null): number | null {
    const ms = moment(time)
    return ms === null ? null : (this.time - ms) / 1000
  }

  lastHour(link: string, signal: AbortSignal): Promise<History> {
    return this.client.linkHistory(link, this.ago(HOUR_MS), HOUR_STEP_S, signal)
  }

  /** How old the newest report is, in seconds; null if there is none. */
  get telemetry_s(): number | null {
    return this.board.at === null ? null : Math.max(0, (this.time - this.board.at) / 1000)
  }

  get hasToken(): boolean {
    return this.token !== null
  }

  /** Begins to follow the service, anew if it does already. */
  start(): void {
    this.running?.abort()
    this.stream++
    this.running = new AbortController()
    this.phase = 'connecting'
    this.problem = null
    const { signal } = this.running
    void follow(this.client, this, signal)
    const clock = setInterval(() => (this.now = Date.now()), 1000)
    const asks = setInterval(() => void this.ask(), STATUS_MS)
    // Two soon after each other, so that rates are known.
    const second = setTimeout(() => void this.ask(), STATUS_MS / 4)
    signal.addEventListener('abort', () => (clearInterval(clock), clearInterval(asks), clearTimeout(second)))
  }

  /** Takes a token for this session of the browser; null forgets it. */
  login(token: string | null): void {
    this.token = token
    if (token === null) sessionStorage.removeItem(TOKEN)
    else sessionStorage.setItem(TOKEN, token)
    this.asking = false
    this.start()
  }

  opened(): void {
    void this.catchUp(++this.stream)
  }

  lost(problem: Problem, wait_ms: number | null): void {
    this.stream++
    this.fail(problem, wait_ms)
  }

  private fail(problem: Problem, wait_ms: number | null): void {
    this.now = Date.now()
    this.problem = problem
    this.phase = wait_ms === null ? 'denied' : 'lost'
    this.retry = wait_ms === null ? null : this.now + wait_ms
    if (wait_ms === null) this.asking = true
  }

  events(events: ServerEvent[]): void {
    this.heard.push(...events)
    if (events.some((event) => event.name === 'racks')) this.take()
    else this.waiting ??= setTimeout(() => this.take(), TOGETHER_MS)
  }

  /** Takes in what was heard. */
  private take(): void {
    clearTimeout(this.waiting)
    this.waiting = undefined
    const events = this.heard
    this.heard = []
    const began = performance.now()
    this.board = reduce(this.board, events)
    if (this.board.changes !== this.changes) {
      this.changes = this.board.changes
      void this.ask()
    }
    if (!events.some((event) => event.name === 'racks')) return
    this.now = this.ticked = Date.now()
    void measured(began)
  }

  /** Reads what was before the stream, or while there was none. Nothing is live before. */
  private async catchUp(stream: number): Promise<void> {
    const signal = this.running?.signal
    try {
      const [racks, decisions, hotspots, migrations] = await Promise.all([
        this.client.racks(signal),
        this.client.decisions(null, signal),
        this.client.hotspots(signal),
        this.client.migrations(signal),
        this.ask(),
      ])
      if (stream !== this.stream) return
      const told = withDecisions(decisions, this.board.decisions)
      const board = { ...this.board, hotspots, migrations, decisions: told }
      const read = withRacks(board, racks)
      // A tick of this connection may have been faster than the answer.
      const newer = this.board.at !== null && read.at !== null && read.at < this.board.at
      this.board = newer ? board : read
      this.phase = 'open'
      this.problem = null
      this.now = this.ticked = Date.now()
      this.connections++
      void this.client.policies(signal).then(
        (found) => (this.policies = found),
        () => {},
      )
    } catch (problem) {
      if (stream !== this.stream || signal?.aborted) return
      const { denied } = problem as Problem
      this.fail(problem as Problem, denied ? null : STATUS_MS)
      if (!denied) setTimeout(() => stream === this.stream && void this.catchUp(stream), STATUS_MS)
    }
  }

  /** Rates over several statuses: of one interval they would be nothing, or all of its reports at once. */
  private counted(status: Status): { decisions: number; samples: number } | null {
    const of = ({ time }: Status) => (moment(time) ?? 0) / 1000
    const patience = RATES * Math.max(STATUS_MS / 1000, status.interval_s)
    const within = (one: Status) => one.since === status.since && of(status) - of(one) <= patience
    this.statuses = [...this.statuses.filter(within), status]
    const first = this.statuses[0] ?? status
    const passed = of(status) - of(first)
    if (passed < status.interval_s || passed <= 0) return null
    const rate = (now: number, then: number) => Math.max(0, now - then) / passed
    return { decisions: rate(status.decided, first.decided), samples: rate(status.samples, first.samples) }
  }

  private async ask(): Promise<void> {
    const asked = Date.now()
    const status = await this.client.status(this.running?.signal).catch(() => null)
    if (!status) return
    const time = moment(status.time)
    if (time !== null) this.ahead = time - (asked + Date.now()) / 2
    this.rates = this.counted(status)
    this.status = status
  }
}

/** Notes how long the page took over a tick, as the performance entry `tick`. */
async function measured(began: number): Promise<void> {
  await rendered()
  performance.clearMeasures('tick')
  performance.measure('tick', { start: began, end: performance.now() })
}

export const app = new App()
