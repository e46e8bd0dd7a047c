import { Client } from '../api/client'
import type { Problem } from '../api/problem'
import type { ServerEvent } from '../api/sse'
import { backOff, followEvents, pause, type Listener } from '../api/stream'
import type { History, Policies, Snapshot, Status } from '../api/types'
import { tick as rendered } from 'svelte'
import { EMPTY, reduce, withDecisions, withRacks, type Board } from '../logic/board'
import { connectionOf, type Connection } from '../logic/connection'
import { moment } from '../logic/format'
import { RackFrames } from '../logic/frames'
import { haveLinks } from '../logic/racks'

const TOKEN = 'leeward-token'
const HOUR_MS = 3_600_000
/** Step of the last hour of a link, in seconds. */
export const HOUR_STEP_S = 30
/** Interval between status requests; the status has fields that no event contains. */
const STATUS_MS = 5000
/** Averaging window of the rates: a number of status requests, or of reporting intervals if an interval is longer. */
const RATE_WINDOW = 4
/** Batching delay: thousands of decisions may arrive per second, and one render shows a batch. */
const BATCH_MS = 200

/** State that all pages share: the client, the streamed data, and the connection. */
class App implements Listener {
  readonly client = new Client(() => this.token)
  status = $state.raw<Status | null>(null)
  board = $state.raw<Board>(EMPTY)
  /** Policies available for what-if requests; null if the service does not list them. */
  policies = $state.raw<Policies | null>(null)
  /** Number of connections. Pages reload their data after each new connection, because events may be missing. */
  connections = $state(0)
  /** Decisions and samples per second; null before the second status. */
  rates = $state.raw<{ decisions: number; samples: number } | null>(null)
  /** This machine's clock, updated every second. */
  now = $state(Date.now())
  /** True while the token dialog is open. */
  tokenDialogOpen = $state(false)

  private phase = $state<'connecting' | 'open' | 'lost' | 'denied'>('connecting')
  private problem = $state.raw<Problem | null>(null)
  private lastTick = $state<number | null>(null)
  private retry = $state<number | null>(null)
  /** Offset of the service's clock from the clock of this machine, in milliseconds. */
  private clockOffset = $state(0)
  private token = $state<string | null>(sessionStorage.getItem(TOKEN))
  private running: AbortController | null = null
  private changes = 0
  private statuses: Status[] = []
  private pending: ServerEvent[] = []
  /** Number of the current connection, to ignore late responses of earlier connections. Losses count too. */
  private generation = 0
  private flushTimer: ReturnType<typeof setTimeout> | undefined
  private readonly frames = new RackFrames()

  readonly connection: Connection = $derived(
    connectionOf({
      phase: this.phase,
      problem: this.problem,
      now: this.now,
      tick: this.lastTick,
      retry: this.retry,
      interval_s: this.status?.interval_s ?? 1,
      telemetry_s: this.telemetry_s,
      links: haveLinks(this.board.racks),
    }),
  )
  readonly live: boolean = $derived(this.connection.kind === 'live')
  /** Utilization from which a link is hot. */
  readonly limit: number = $derived(this.status?.hot_above ?? 0.75)

  /** True once the service's clock is known; unlike the status, it changes only once. */
  readonly clockKnown: boolean = $derived(this.status !== null)

  /** The service's clock. */
  get time(): number {
    return this.now + this.clockOffset
  }

  /** Time `ms` milliseconds ago, by the service's clock, as RFC 3339. */
  ago(ms: number): string {
    return new Date(this.time - ms).toISOString()
  }

  /** Seconds since `time`, by the service's clock; null without a time. */
  since(time: string | null): number | null {
    const ms = moment(time)
    return ms === null ? null : (this.time - ms) / 1000
  }

  lastHour(link: string, signal: AbortSignal): Promise<History> {
    return this.client.linkHistory(link, this.ago(HOUR_MS), HOUR_STEP_S, signal)
  }

  /** Age of the newest telemetry, in seconds; null without telemetry. */
  get telemetry_s(): number | null {
    return this.board.telemetryTime === null
      ? null
      : Math.max(0, (this.time - this.board.telemetryTime) / 1000)
  }

  get hasToken(): boolean {
    return this.token !== null
  }

  /** Starts to follow the service; restarts if it already does. */
  start(): void {
    this.running?.abort()
    this.generation++
    this.running = new AbortController()
    this.phase = 'connecting'
    this.problem = null
    const { signal } = this.running
    void followEvents(this.client, this, signal)
    const clock = setInterval(() => (this.now = Date.now()), 1000)
    const statuses = setInterval(() => void this.readStatus(), STATUS_MS)
    // Requests a second status soon, because rates need two.
    const second = setTimeout(() => void this.readStatus(), STATUS_MS / 4)
    signal.addEventListener(
      'abort',
      () => (clearInterval(clock), clearInterval(statuses), clearTimeout(second)),
    )
  }

  /** Stores a token for this browser session and reconnects; null removes the token. */
  login(token: string | null): void {
    this.token = token
    if (token === null) sessionStorage.removeItem(TOKEN)
    else sessionStorage.setItem(TOKEN, token)
    this.tokenDialogOpen = false
    this.start()
  }

  onOpen(): void {
    void this.catchUp(++this.generation)
  }

  onLost(problem: Problem, wait_ms: number | null): void {
    this.generation++
    this.fail(problem, wait_ms)
  }

  private fail(problem: Problem, wait_ms: number | null): void {
    this.now = Date.now()
    this.problem = problem
    this.phase = wait_ms === null ? 'denied' : 'lost'
    this.retry = wait_ms === null ? null : this.now + wait_ms
    if (wait_ms === null) this.tokenDialogOpen = true
  }

  onEvents(events: ServerEvent[]): void {
    this.pending.push(...events)
    this.flushTimer ??= setTimeout(() => this.flush(), BATCH_MS)
  }

  /** Applies the pending events to the board. */
  private flush(): void {
    clearTimeout(this.flushTimer)
    this.flushTimer = undefined
    const events = this.pending
    this.pending = []
    this.board = reduce(this.board, events)
    if (this.board.changes !== this.changes) {
      this.changes = this.board.changes
      void this.readStatus()
    }
  }

  /** Takes a snapshot of the racks, and flushes pending events with it. */
  private take(snapshot: Snapshot): void {
    const began = performance.now()
    this.flush()
    this.board = withRacks(this.board, this.frames.apply(snapshot), snapshot.telemetry)
    this.now = this.lastTick = Date.now()
    void recordTick(began)
  }

  /** Follows the racks until the connection is lost. A hidden page reads nothing. */
  private async followRacks(generation: number): Promise<void> {
    const signal = this.running?.signal
    const isCurrent = () => generation === this.generation && !signal?.aborted
    let failures = 0
    while (isCurrent() && signal) {
      try {
        await visible(signal)
        const snapshot = await this.client.snapshot(this.frames.id, signal)
        if (!isCurrent()) return
        this.take(snapshot)
        failures = 0
      } catch {
        if (!isCurrent()) return
        this.frames.restart()
        await pause(backOff(failures++, Math.random()), signal)
      }
    }
  }

  /** Reads the full state after a connection. The page is not live before this succeeds. */
  private async catchUp(generation: number): Promise<void> {
    const signal = this.running?.signal
    try {
      this.frames.restart()
      const [snapshot, { items: decisions }, hotspots, migrations] = await Promise.all([
        this.client.snapshot(null, signal),
        this.client.decisions({}, null, signal),
        this.client.hotspots(signal),
        this.client.migrations(signal),
        this.readStatus(),
      ])
      if (generation !== this.generation) return
      const allDecisions = withDecisions(decisions, this.board.decisions)
      this.board = { ...this.board, hotspots, migrations, decisions: allDecisions }
      this.take(snapshot)
      this.phase = 'open'
      this.problem = null
      this.connections++
      void this.followRacks(generation)
      void this.client.policies(signal).then(
        (policies) => (this.policies = policies),
        () => {},
      )
    } catch (problem) {
      if (generation !== this.generation || signal?.aborted) return
      const { denied } = problem as Problem
      this.fail(problem as Problem, denied ? null : STATUS_MS)
      if (!denied)
        setTimeout(() => generation === this.generation && void this.catchUp(generation), STATUS_MS)
    }
  }

  /** Adds a status and returns the rates over the window. Rates over one interval would jump between zero and a burst. */
  private updateRates(status: Status): { decisions: number; samples: number } | null {
    const seconds = ({ time }: Status) => (moment(time) ?? 0) / 1000
    const window_s = RATE_WINDOW * Math.max(STATUS_MS / 1000, status.interval_s)
    const within = (one: Status) => one.since === status.since && seconds(status) - seconds(one) <= window_s
    this.statuses = [...this.statuses.filter(within), status]
    const first = this.statuses[0] ?? status
    const elapsed_s = seconds(status) - seconds(first)
    if (elapsed_s < status.interval_s || elapsed_s <= 0) return null
    const rate = (now: number, then: number) => Math.max(0, now - then) / elapsed_s
    return { decisions: rate(status.decided, first.decided), samples: rate(status.samples, first.samples) }
  }

  private async readStatus(): Promise<void> {
    const sent = Date.now()
    const status = await this.client.status(this.running?.signal).catch(() => null)
    if (!status) return
    const time = moment(status.time)
    if (time !== null) this.clockOffset = time - (sent + Date.now()) / 2
    this.rates = this.updateRates(status)
    this.status = status
  }
}

/** Waits until the page is visible. */
function visible(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const check = () => {
      if (document.hidden && !signal.aborted) return
      document.removeEventListener('visibilitychange', check)
      signal.removeEventListener('abort', check)
      resolve()
    }
    document.addEventListener('visibilitychange', check)
    signal.addEventListener('abort', check)
    check()
  })
}

/** Records the processing and render time of a tick as the performance entry `tick`. */
async function recordTick(began: number): Promise<void> {
  await rendered()
  performance.clearMeasures('tick')
  performance.measure('tick', { start: began, end: performance.now() })
}

export const app = new App()
