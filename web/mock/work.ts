import type { HeavyWork, Migration, Task } from '../src/api/types'
import { INTERVAL, LIMIT, RACK_BPS, type Way } from './cluster.ts'
import { random } from './random.ts'
import type { World } from './world.ts'

/** Shares of a link's load that the three heaviest tasks of its rack send; the others share `REST`. */
const HEAVIEST = [0.36, 0.22, 0.12]
const REST = 0.14
/** Steps from the start of a hot period to the first advice, and from an advice without an answer to its end. */
const ADVICE = 6
const ANSWER = 300 / INTERVAL
/** Share of the moves that are refused. */
const REFUSING = 0.15
/** Steps after which a refused move was refused, and a link is cool again after a move that was done. */
const REFUSED = 3
const RELIEVED = 20
/** Steps between the end of a move and the next advice for the same link. */
const AGAIN = 3
const HOUR = 3600 / INTERVAL

/** A time in which a link is hot without a break; `until` is null while it lasts. */
export interface Run {
  from: number
  until: number | null
}

/** A task of a rack, and its part of the load of the rack's links. */
interface Share {
  at: number
  n: number
  share: number
}

const tolerates = ({ at, n }: { at: number; n: number }) => (at + n) % 2 === 0
const nameOf = (rack: number, { at, n }: { at: number; n: number }) => `t${rack}-${at}-${n}`
/** True if the load of a rack is not from tasks of Leeward: on every third one. */
const isForeign = (rack: number) => rack % 3 === 1

/** Tasks of the racks, and the moves off hot links: both tables of a page have the same tasks. */
export class Work {
  private readonly known = new Map<string, Migration[]>()

  constructor(
    private readonly world: World,
    private readonly seed: number,
  ) {}

  /** Number of tasks on a host. */
  count(rack: number, at: number): number {
    return isForeign(rack) ? 0 : 1 + (at % 3)
  }

  /** Tasks of a rack by their part of the load of a link, the heaviest first, without those that were moved away. */
  private shares(rack: number, way: Way, moved: ReadonlySet<string>): Share[] {
    const { hosts } = this.world
    const all = Array.from({ length: hosts }, (_, host) => (host + way) % hosts)
      .map((at, rank) => ({ at, rank }))
      .flatMap(({ at, rank }) => Array.from({ length: this.count(rack, at) }, (_, n) => ({ at, n, rank })))
      .sort((a, b) => a.n - b.n || a.rank - b.rank)
      .filter((one) => !moved.has(nameOf(rack, one)))
    // On the uplink of one rack of twenty, most of the load is from elsewhere.
    const part = rack % 20 === 12 && way === 0 ? 0.25 : 0.8 + 0.3 * random(this.seed, rack, way, 61)()
    const rest = REST / Math.max(1, all.length - HEAVIEST.length)
    return all.map(({ at, n }, rank) => ({ at, n, share: part * (HEAVIEST[rank] ?? rest) }))
  }

  tasks(rack: number, step: number): Task[] {
    const moved = this.moved(rack, step)
    const [up, down] = ([0, 1] as const).map((way) => {
      const load = (this.world.utilization(rack, way, step) ?? 0.3) * RACK_BPS
      const rates = this.shares(rack, way, moved).map((one): [string, number] => [
        nameOf(rack, one),
        Math.round(load * one.share),
      ])
      return new Map(rates)
    })
    return this.shares(rack, 0, moved).map(({ at, n }) => {
      const task = nameOf(rack, { at, n })
      return {
        task,
        decision: this.decision(rack, at, n),
        job: this.job(rack, at),
        host: `r${rack}h${at}`,
        tolerant: tolerates({ at, n }),
        stays: tolerates({ at, n }) ? null : 'sensitive',
        egress_bps: up?.get(task) ?? 0,
        ingress_bps: down?.get(task) ?? 0,
      }
    })
  }

  /** The heaviest tasks on a link. */
  heaviest(rack: number, way: Way, measured_bps: number, step: number): HeavyWork[] {
    return this.shares(rack, way, this.moved(rack, step))
      .slice(0, HEAVIEST.length)
      .map(({ at, n, share }) => ({
        decision: this.decision(rack, at, n),
        job: this.job(rack, at),
        task: nameOf(rack, { at, n }),
        host: `r${rack}h${at}`,
        rate_bps: Math.round(measured_bps * share),
        stays: tolerates({ at, n }) ? null : 'sensitive',
        size: null,
      }))
  }

  /** Reason for which no task moves off a hot link; null while an advised move waits, and before the first advice. */
  noMove(rack: number, way: Way, link: string, step: number): string | null {
    const moves = this.ofRack(rack, step).filter((one) => one.link === link)
    if (moves.some(({ state }) => state === 'advised')) return null
    return this.refusal(rack, way) ?? (moves.length ? 'fixed' : null)
  }

  private refusal(rack: number, way: Way): string | null {
    if (isForeign(rack)) return 'others'
    return { 1: 'fixed', 3: 'no-target' }[(rack + 2 * way) % 5] ?? null
  }

  /** Moves of the last hour, the latest first. */
  migrations(step: number): Migration[] {
    return Array.from({ length: this.world.racks }, (_, rack) => this.ofRack(rack, step))
      .flat()
      .sort((a, b) => (a.time < b.time ? 1 : -1))
  }

  private moved(rack: number, step: number): Set<string> {
    return new Set(
      this.ofRack(rack, step)
        .filter(({ state }) => state === 'done')
        .map(({ task }) => task),
    )
  }

  /** Moves off the links of a rack: one at a time, and the next after the end of the one before. */
  private ofRack(rack: number, step: number): Migration[] {
    const key = `${rack}/${step}/${this.world.coolFrom}/${this.world.mutedFrom}`
    const before = this.known.get(key)
    if (before) return before
    const runs = ([0, 1] as const)
      .flatMap((way) => this.world.runs(rack, way, step - HOUR, step).map((run) => ({ way, run })))
      .filter(({ way }) => this.refusal(rack, way) === null)
      .sort((a, b) => a.run.from - b.run.from)
    const moves: Migration[] = []
    const moved = new Set<string>()
    for (const { way, run } of runs) {
      const tolerant = this.shares(rack, way, moved).filter(tolerates)
      let at = run.from + ADVICE
      for (let n = 0; at < (run.until ?? step + 1); n++) {
        const task = tolerant[n]
        if (!task) break
        const { state, ends } = this.stateOf(random(this.seed, rack, way, at, 67)(), at, run, step)
        moves.push(this.move(rack, way, at, task, state))
        if (state === 'done') moved.add(nameOf(rack, task))
        at = ends + AGAIN
      }
    }
    if (this.known.size > 5000) this.known.clear()
    this.known.set(key, moves)
    return moves
  }

  /** A move that was done cools its link; one that was refused or expired does not. */
  private stateOf(draw: number, at: number, { until }: Run, step: number): { state: string; ends: number } {
    if (draw < REFUSING && step - at >= REFUSED) return { state: 'refused', ends: at + REFUSED }
    if (until !== null && until - at <= RELIEVED) return { state: 'done', ends: until }
    if (step - at < ANSWER) return { state: 'advised', ends: Infinity }
    return { state: 'expired', ends: at + ANSWER }
  }

  private move(rack: number, way: Way, step: number, { at, n }: Share, state: string): Migration {
    const { world } = this
    const link = world.name(rack, way)
    return {
      id: `m-${link}-${step}`,
      time: world.time(step),
      decision: this.decision(rack, at, n),
      task: nameOf(rack, { at, n }),
      job: this.job(rack, at),
      from: `r${rack}h${at}`,
      to: world.usable(this.coolRack(rack, step), (step + at + n) % world.hosts),
      link,
      state,
      reason: state === 'refused' ? 'it holds a lock' : null,
    }
  }

  /** A rack whose links are seen and cool. */
  private coolRack(rack: number, step: number): number {
    const { racks } = this.world
    const load = (one: number, way: Way) => this.world.utilization(one, way, step) ?? 1
    for (let distance = 1; distance < racks; distance++) {
      const one = (rack + distance * 7 + (step % 5)) % racks
      if (Math.max(load(one, 0), load(one, 1)) < LIMIT / 2) return one
    }
    return (rack + 1) % racks
  }

  private decision(rack: number, at: number, n: number): string {
    return this.world.placed('tasks', rack * 24 + at * 3 + n)
  }

  private job(rack: number, at: number): string {
    return `job-${(rack + at) % 7}`
  }
}
