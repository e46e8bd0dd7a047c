import type {
  Decision,
  Demo,
  Device,
  Enforcer,
  Host,
  HotLink,
  Hotspot,
  Link,
  Migration,
  RackDetail,
  Reservation,
  Workload,
} from '../src/api/types'
import { INTERVAL, LIMIT, RACK_BPS, type Way } from './cluster.ts'
import { countOf, decide, kindOf, POLICIES, volumeOf } from './decisions.ts'
import { enforcement, enforcers } from './promises.ts'
import { random } from './random.ts'
import { Work, type Run } from './work.ts'

const START = Date.UTC(2026, 2, 23, 9)
/** Number of steps in which a link becomes hot at most once. */
const WINDOW = 90
/** Steps between two looks for hot times. */
const STRIDE = 3
const HOST_BPS = 25e9
/** Rate of a host's link that came up slowly. */
const SLOW_BPS = 10e9
const RACKS_PER_POD = 50

/** A rack with links of its own. */
interface Linked {
  rack: string
  pod: string | null
  up: Link
  down: Link
}
/** Load pattern of a placement: frequency and duration of hot periods, and the base utilization. */
interface Kind {
  key: number
  often: number
  long: number
  base: number
}
const KINDS: Record<string, Kind> = {
  cluster: { key: 1, often: 0.16, long: 34, base: 0.3 },
  default: { key: 2, often: 0.3, long: 70, base: 0.36 },
  leeward: { key: 2, often: 0.3, long: 9, base: 0.38 },
}

/** Workloads with a granted SLO; each reserves a rate on its path. */
const WORKLOADS = [
  ['orders-db', 1, 99.9, 0.02, 0.0162, 0.0071, 4e9],
  ['search-index', 2, 99.9, 0.05, 0.041, 0.0183, 3e9],
  ['mail-store', 3, 99, 0.1, 0.094, 0.1173, 2e9],
  ['session-cache', 1, 99.99, 0.005, 0.0048, 0.0021, 1e9],
  ['video-meta', 4, 99, 0.25, null, 0.08, 1e9],
  ['ledger-archive', 5, 95, 1, 0.61, null, 5e8],
  ['home-dirs', 4, 99, 0.15, 0.171, 0.062, 1e9],
].map((row) => {
  const [name, priority, percentile, latency_s, bound_s, seen_s, rate_bps] = row as Row
  return { name, priority, percentile, latency_s, bound_s, seen_s, rate_bps }
})
type Row = [string, number, number, number, number | null, number | null, number]

/** Simulated cluster with racks that become hot and cool down; the seed and the step determine every number. */
export class World {
  /** Step from which no rack sends reports; null while they do. */
  mutedFrom: number | null = null
  /** Step from which all links are cool; null if some are hot. */
  coolFrom: number | null = null
  private readonly work: Work
  /** Ids of the decisions of the first hour, by kind. */
  private readonly early = new Map<string, string[]>()

  constructor(
    readonly racks: number,
    private readonly seed: number,
    readonly hosts = 8,
  ) {
    this.work = new Work(this, seed)
    for (let step = 0; step < 360; step++)
      for (let n = 0; n < countOf(seed, step); n++) {
        const kind = kindOf(seed, step, n)
        this.early.set(kind, [...(this.early.get(kind) ?? []), `d-${step}-${n}`])
      }
  }

  /** A decision of the first hour, by kind and any number. */
  placed(kind: string, at: number): string {
    const ids = this.early.get(kind) ?? []
    return ids[at % ids.length] ?? ''
  }

  name(rack: number, way: Way): string {
    return `r${rack}:${way ? 'downlink' : 'uplink'}`
  }

  time(step: number): string {
    return new Date(START + step * INTERVAL * 1000).toISOString()
  }

  step(time: string): number {
    return Math.round((Date.parse(time) - START) / (INTERVAL * 1000))
  }

  /** Utilization of a rack's uplink (0) or downlink (1); null without a report. */
  utilization(rack: number, way: Way, step: number, kind = 'cluster'): number | null {
    if (kind === 'cluster' && this.silent(rack, step)) return null
    if (kind === 'cluster' && this.coolFrom !== null && step >= this.coolFrom)
      return 0.2 + 0.3 * random(this.seed, rack, way, step)()
    const { key, often, long, base } = KINDS[kind] as Kind
    const own = random(this.seed, key, rack, way)
    const level = base * (0.5 + own())
    const phase = own() * 6.283
    let load = level * (1 + 0.25 * Math.sin(step / 60 + phase))
    load += 0.05 * (random(this.seed, key, rack, way, step)() - 0.5)
    const window = Math.floor(step / WINDOW)
    for (let one = window; one > window - 5; one--) {
      const draw = random(this.seed, key, rack, way, one, 77)
      if (draw() > often) continue
      const since = step - (one * WINDOW + Math.floor(draw() * WINDOW))
      const size = 0.42 + 0.4 * draw()
      const hold = long * (0.4 + 1.2 * draw())
      if (since < 0) continue
      const rise = Math.min(1, (since + 1) / 4)
      load += size * rise * (since < hold ? 1 : Math.exp(-(since - hold) / (long / 4)))
    }
    return Math.min(0.995, Math.max(0.01, load))
  }

  /** True if no agent of the rack reports. */
  silent(rack: number, step: number): boolean {
    if (this.mutedFrom !== null && step >= this.mutedFrom) return true
    // One rack of 19 is silent for most of the time, each with its own start.
    if (rack % 19 === 7) return (((step - 2 * (rack - 7)) % 400) + 400) % 400 > 60
    return random(this.seed, rack, Math.floor(step / 40), 5)() < 0.006
  }

  link(rack: number, way: Way, step: number): Link {
    const utilization = this.utilization(rack, way, step)
    let hot: number | null = null
    for (let at = step; (this.utilization(rack, way, at) ?? 0) >= LIMIT && at > step - 400; at--) hot = at
    const name = this.name(rack, way)
    const draw = random(this.seed, rack, way, step, 9)
    return link(name, RACK_BPS, utilization, this.time(step), {
      hot_since: hot === null ? null : this.time(hot),
      derived: rack % 11 === 3,
      pending_bps: Math.round(draw() * 1.5e9),
      reserved_bps: this.reservedOn(name),
    })
  }

  rack(rack: number, step: number): Linked {
    return {
      rack: `r${rack}`,
      pod: `p${Math.floor(rack / RACKS_PER_POD)}`,
      up: this.link(rack, 0, step),
      down: this.link(rack, 1, step),
    }
  }

  all(step: number): Linked[] {
    return Array.from({ length: this.racks }, (_, rack) => this.rack(rack, step))
  }

  /** Times in which a link was hot, of those that began in a time span. */
  runs(rack: number, way: Way, since: number, step: number): Run[] {
    const isHot = (at: number) => (this.utilization(rack, way, at) ?? 0) >= LIMIT
    const runs: Run[] = []
    // No advice is for a shorter run than the stride.
    for (let at = since + 1; at <= step; at += STRIDE) {
      if (!isHot(at)) continue
      let from = at
      while (from > since && isHot(from - 1)) from--
      while (at <= step && isHot(at)) at++
      if (from > since) runs.push({ from, until: at > step ? null : at })
    }
    return runs
  }

  detail(rack: number, step: number): RackDetail {
    const summary = this.rack(rack, step)
    const hosts = Array.from({ length: this.hosts }, (_, at) => this.host(rack, at, step))
    const replicas = hosts.flatMap(({ host }, at) =>
      Array.from({ length: 2 }, (_, n) => ({
        decision: this.placed('replicas', rack * 16 + at * 2 + n),
        host,
        size: '256MiB',
      })),
    )
    return {
      rack: summary.rack,
      pod: summary.pod,
      links: [summary.up, summary.down],
      hosts,
      tasks: this.work.tasks(rack, step),
      replicas,
      reservations: this.reservations(rack),
    }
  }

  /** Reservations of the workloads whose requests cross the links of a rack or of its hosts. */
  private reservations(rack: number): Reservation[] {
    return WORKLOADS.flatMap(({ name, priority, rate_bps }, at) =>
      this.path(at)
        .filter((link) => link.startsWith(`r${rack}:`) || link.startsWith(`r${rack}h`))
        .map((link) => ({ workload: name, link, rate_bps, priority })),
    )
  }

  private reservedOn(link: string): number {
    return WORKLOADS.reduce((sum, { rate_bps }, at) => sum + (this.path(at).includes(link) ? rate_bps : 0), 0)
  }

  /** Links from the client of a workload to the host of its volume. */
  private path(at: number): string[] {
    const [from, to] = [(12 + 5 * at) % this.racks, (20 + 7 * at) % this.racks]
    return [`r${from}h1:egress`, `r${from}:uplink`, `r${to}:downlink`, `r${to}h2:ingress`]
  }

  /** True if a host is down. */
  private isDown(rack: number, at: number): boolean {
    return rack === 2 && at === 5
  }

  private isDraining(rack: number, at: number): boolean {
    return rack === 4 && at === 1
  }

  /** Name of a host that takes new work: the next one if this one is down or draining. */
  usable(rack: number, at: number): string {
    const is = this.isDown(rack, at) || this.isDraining(rack, at)
    return `r${rack}h${is ? (at + 1) % this.hosts : at}`
  }

  /** True if a host's link came up at a lower rate than in the cluster file: three of them. */
  private isSlow(rack: number, at: number, way: Way): boolean {
    return at === 3 && (rack === 12 || (rack === 31 && way === 0))
  }

  /** Agents by their reports, and the number of links and of slow links with telemetry. */
  agents(step: number) {
    const all = Array.from({ length: this.racks }, (_, rack) => rack)
    const silent = all.filter((rack) => this.silent(rack, step))
    const seen = all.filter((rack) => !this.silent(rack, step))
    const hosts = Array.from({ length: this.hosts }, (_, at) => at)
    const slow = seen.flatMap((rack) =>
      hosts.flatMap((at) => ([0, 1] as const).filter((way) => this.isSlow(rack, at, way))),
    )
    const names = silent.flatMap((rack) =>
      hosts.filter((at) => !this.isDown(rack, at)).map((at) => `r${rack}h${at}`),
    )
    const absent = all.flatMap((rack) => hosts.filter((at) => this.isDown(rack, at))).length
    const reporting = this.racks * this.hosts - names.length - absent
    return { reporting, absent, silent: names, links: 2 * (reporting + seen.length), slow: slow.length }
  }

  host(rack: number, at: number, step: number): Host {
    const host = `r${rack}h${at}`
    const draw = random(this.seed, rack, at, 31)
    const part = 0.3 + 0.9 * draw()
    const up = !this.isDown(rack, at)
    const tasks = this.work.tasks(rack, step)
    const hostLink = (way: Way) => {
      const load = this.utilization(rack, way, step)
      const name = `${host}:${way ? 'ingress' : 'egress'}`
      const slow = this.isSlow(rack, at, way)
      const capacity = slow ? SLOW_BPS : HOST_BPS
      const sum = (some: typeof tasks) =>
        some.reduce((all, one) => all + (way ? one.ingress_bps : one.egress_bps), 0)
      // Its tasks, its part of the other load of the rack's link, and traffic within the rack.
      const other = (load ?? 0) * RACK_BPS - sum(tasks)
      const bps = sum(tasks.filter((one) => one.host === host)) + other / this.hosts + 2.5e9 * part
      return link(
        name,
        capacity,
        load === null || !up ? null : Math.min(0.97, bps / capacity),
        this.time(step),
        {
          queue_bytes: way === 0 && up && load !== null ? Math.round(2e6 * part) : null,
          full_bps: slow ? HOST_BPS : null,
          reserved_bps: this.reservedOn(name),
        },
      )
    }
    return {
      host,
      up,
      draining: this.isDraining(rack, at),
      stored: `${(2 + draw() * 9).toFixed(1)}TB`,
      storage: '16TB',
      egress: hostLink(0),
      ingress: hostLink(1),
      tasks: tasks.filter((one) => one.host === host).length,
      replicas: 2,
      devices: [0, 1].map((n) => this.device(`${host}:nvme${n}`, rack, at, n, step, up)),
    }
  }

  private device(device: string, rack: number, at: number, n: number, step: number, up: boolean): Device {
    const draw = random(this.seed, rack, at, n, 51)
    // One device per rack is hot.
    const level = at === 1 && n === 0 ? 0.9 : 0.1 + 0.5 * draw()
    const busy = up ? Math.min(0.99, level + 0.08 * random(this.seed, rack, at, n, step)()) : null
    return {
      device,
      capacity: '8TB',
      busy,
      reserved: n === 0 ? 0.15 : 0,
      hot_since: busy !== null && busy >= LIMIT ? this.time(step - 30) : null,
      read_bps: busy === null ? null : Math.round(busy * 9e9),
      write_bps: busy === null ? null : Math.round(busy * 3e9),
      queue: busy === null ? null : Number((busy / (1.05 - busy)).toFixed(2)),
    }
  }

  /** Hot links, the longest hot first. */
  hot(step: number): (Hotspot & { measured_bps: number | null })[] {
    const links = this.all(step).flatMap(({ up, down }) => [up, down])
    return links
      .filter((one) => one.hot_since !== null)
      .map((one) => ({
        link: one.link,
        since: one.hot_since as string,
        age_s: (step - this.step(one.hot_since as string)) * INTERVAL,
        utilization: one.utilization,
        measured_bps: one.measured_bps,
      }))
      .sort((a, b) => b.age_s - a.age_s || (a.link < b.link ? -1 : 1))
  }

  /** Hot links with their causes. */
  hotspots(step: number): HotLink[] {
    return this.hot(step).map((one) => ({ ...one, ...this.causes(one, step) }))
  }

  /** Causes of a hot link. On every third rack, the load is not from tasks of Leeward. */
  private causes(
    link: Pick<HotLink, 'link' | 'measured_bps'>,
    step: number,
  ): Pick<HotLink, 'heaviest' | 'unexplained_bps' | 'no_move'> {
    const [rack, way] = parts(link.link)
    const measured = link.measured_bps ?? 0
    const known = this.work
      .tasks(rack, step)
      .reduce((sum, one) => sum + (way ? one.ingress_bps : one.egress_bps), 0)
    return {
      heaviest: this.work.heaviest(rack, way, measured, step),
      unexplained_bps: Math.max(0, measured - known),
      no_move: this.work.noMove(rack, way, link.link, step),
    }
  }

  /** Moves of the last hour, the latest first. */
  migrations(step: number): Migration[] {
    return this.work.migrations(step)
  }

  /** The decisions of a step. */
  decisions(step: number): Decision[] {
    return Array.from({ length: countOf(this.seed, step) }, (_, n) => {
      const kind = kindOf(this.seed, step, n)
      return this.decide(step, n, kind, POLICIES[kind] ?? '')
    })
  }

  decide(step: number, n: number, kind: string, policy: string): Decision {
    return decide(this, this.seed, step, n, kind, policy)
  }

  workloads(step: number): Workload[] {
    return WORKLOADS.map(({ name, priority, percentile, latency_s, bound_s, seen_s }, at) => {
      const [decision, path] = [this.placed('volumes', at), this.path(at)]
      const noise = 0.95 + 0.1 * random(this.seed, at, Math.floor(step / 6))()
      return {
        name,
        priority,
        slo: { percentile, latency_s },
        bound_s,
        seen_s: seen_s === null ? null : seen_s * noise,
        volume: volumeOf(decision),
        path,
        ...enforcement(name, path, seen_s, this.time(0)),
        decision,
      }
    })
  }

  enforcers(step: number): Enforcer[] {
    return enforcers(this.workloads(step), this.time(0))
  }

  demo(step: number, since: number): Demo {
    const names = ['leeward', 'default']
    const shares = (name: string, at: number) => {
      const hot = Array.from({ length: this.racks }, (_, rack) => {
        const [up, down] = [this.utilization(rack, 0, at, name), this.utilization(rack, 1, at, name)]
        return Math.max(up ?? 0, down ?? 0) >= LIMIT ? 1 : 0
      })
      return hot.reduce<number>((sum, one) => sum + one, 0)
    }
    const steps = Array.from({ length: step - since + 1 }, (_, at) => since + at)
    return {
      time: this.time(step),
      speed: 60,
      arms: names.map((name) => ({
        name,
        policy: name === 'default' ? 'uniform' : 'leeward',
        hot_racks: shares(name, step),
        hot_share: shares(name, step) / this.racks,
        racks: Array.from({ length: this.racks }, (_, rack) => ({
          rack: `r${rack}`,
          up: this.utilization(rack, 0, step, name),
          down: this.utilization(rack, 1, step, name),
        })),
      })),
      history: {
        step_s: INTERVAL,
        arms: names.map((name) => ({ name, hot_share: steps.map((at) => shares(name, at) / this.racks) })),
      },
    }
  }
}

export function parts(link: string): [number, Way] {
  const [, rack, way] = /^r(\d+):(uplink|downlink)$/.exec(link) ?? []
  return [Number(rack ?? 0), way === 'downlink' ? 1 : 0]
}

function link(
  name: string,
  capacity: number,
  utilization: number | null,
  until: string,
  extra: Partial<Link>,
): Link {
  return {
    link: name,
    capacity_bps: capacity,
    measured_bps: utilization === null ? null : Math.round(utilization * capacity),
    utilization,
    residual_bps: utilization === null ? 0 : Math.round((1 - utilization) * capacity),
    seen: utilization !== null,
    derived: false,
    until: utilization === null ? null : until,
    hot_since: null,
    pending_bps: 0,
    reserved_bps: 0,
    full_bps: null,
    queue_bytes: null,
    ...extra,
  }
}
