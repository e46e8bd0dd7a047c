import type {
  Candidate,
  Decision,
  Demo,
  Device,
  Host,
  HotLink,
  Link,
  LinkLoad,
  Migration,
  RackDetail,
  Workload,
} from '../src/api/types'
import { random } from './random.ts'

const START = Date.UTC(2026, 2, 2, 9)
/** Seconds between two steps. */
export const INTERVAL = 10
/** Number of steps in which a link becomes hot at most once. */
const WINDOW = 90
const RACK_BPS = 40e9
const HOST_BPS = 25e9
const RACKS_PER_POD = 50
export const LIMIT = 0.75

type Way = 0 | 1
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

/** Simulated cluster with racks that become hot and cool down; the seed and the step determine every number. */
export class World {
  /** Step from which no rack sends reports; null while they do. */
  mutedFrom: number | null = null
  /** Step from which all links are cool; null if some are hot. */
  coolFrom: number | null = null

  constructor(
    readonly racks: number,
    private readonly seed: number,
    readonly hosts = 8,
  ) {}

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

  private silent(rack: number, step: number): boolean {
    if (this.mutedFrom !== null && step >= this.mutedFrom) return true
    if (rack % 19 === 7) return step % 400 > 60
    return random(this.seed, rack, Math.floor(step / 40), 5)() < 0.006
  }

  link(rack: number, way: Way, step: number): Link {
    const utilization = this.utilization(rack, way, step)
    let hot: number | null = null
    for (let at = step; (this.utilization(rack, way, at) ?? 0) >= LIMIT && at > step - 400; at--) hot = at
    const name = `r${rack}:${way ? 'downlink' : 'uplink'}`
    const draw = random(this.seed, rack, way, step, 9)
    return link(name, RACK_BPS, utilization, this.time(step), {
      hot_since: hot === null ? null : this.time(hot),
      derived: rack % 11 === 3,
      pending_bps: Math.round(draw() * 1.5e9),
      reserved_bps: rack % 3 === 0 ? 4e9 : 0,
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

  detail(rack: number, step: number): RackDetail {
    const summary = this.rack(rack, step)
    const hosts = Array.from({ length: this.hosts }, (_, at) => this.host(rack, at, step))
    const tasks = hosts.flatMap(({ host }, at) =>
      Array.from({ length: 1 + (at % 3) }, (_, n) => ({
        task: `t${rack}-${at}-${n}`,
        decision: `d-${step - 3 * n - at}-0`,
        job: `job-${(rack + n) % 7}`,
        host,
        tolerant: (at + n) % 2 === 0,
        egress_bps: 2e8 * (n + 1),
        ingress_bps: 3e8 * (at + 1),
      })),
    )
    const replicas = hosts.flatMap(({ host }, at) =>
      Array.from({ length: 2 }, (_, n) => ({ decision: `d-${step - 3 * n - at}-0`, host, size: '256MiB' })),
    )
    const reservations =
      rack % 3 === 0 ? [{ workload: 'orders-db', link: summary.up.link, rate_bps: 4e9, priority: 1 }] : []
    return {
      rack: summary.rack,
      pod: summary.pod,
      links: [summary.up, summary.down],
      hosts,
      tasks,
      replicas,
      reservations,
    }
  }

  host(rack: number, at: number, step: number): Host {
    const host = `r${rack}h${at}`
    const draw = random(this.seed, rack, at, 31)
    const part = 0.3 + 0.9 * draw()
    const up = !(rack === 2 && at === 5)
    const hostLink = (way: Way) => {
      const load = this.utilization(rack, way, step)
      const name = `${host}:${way ? 'ingress' : 'egress'}`
      return link(
        name,
        HOST_BPS,
        load === null || !up ? null : Math.min(0.97, load * part),
        this.time(step),
        // One host per rack has a degraded link.
        {
          queue_bytes: way === 0 && up ? Math.round(2e6 * part) : null,
          full_bps: at === 3 ? 2 * HOST_BPS : null,
        },
      )
    }
    return {
      host,
      up,
      draining: rack === 4 && at === 1,
      stored: `${(2 + draw() * 9).toFixed(1)}TB`,
      storage: '16TB',
      egress: hostLink(0),
      ingress: hostLink(1),
      tasks: 1 + (at % 3),
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

  hotspots(step: number): HotLink[] {
    const links = this.all(step).flatMap(({ up, down }) => [up, down])
    return links
      .filter((one) => one.hot_since !== null)
      .map((one) => ({
        link: one.link,
        since: one.hot_since as string,
        age_s: (step - this.step(one.hot_since as string)) * INTERVAL,
        utilization: one.utilization,
        measured_bps: one.measured_bps,
        ...this.causes(one, step),
      }))
      .sort((a, b) => b.age_s - a.age_s || (a.link < b.link ? -1 : 1))
  }

  /** Causes of a hot link. On every third rack, the load is not from tasks of Leeward. */
  private causes(link: Link, step: number): Pick<HotLink, 'heaviest' | 'unexplained_bps' | 'no_move'> {
    const [rack, way] = parts(link.link)
    const measured = link.measured_bps ?? 0
    if (rack % 3 === 1) return { heaviest: [], unexplained_bps: measured, no_move: 'others' }
    const heaviest = [0, 1, 2].map((n) => ({
      decision: `d-${step - 9 - n}-0`,
      job: `job-${(rack + n) % 7}`,
      task: `t${rack}-${n}-0`,
      host: `r${rack}h${n + way}`,
      rate_bps: Math.round(measured * (0.4 - 0.12 * n)),
      size: null,
    }))
    const known = heaviest.reduce((sum, one) => sum + one.rate_bps, 0)
    const no_move = [null, 'fixed', 'no-target', null][(rack + way) % 4] ?? null
    return { heaviest, unexplained_bps: Math.max(0, measured - known), no_move }
  }

  migrations(step: number): Migration[] {
    const states = ['advised', 'done', 'refused', 'expired'] as const
    const isOld = ({ age_s, no_move }: HotLink) => age_s > 9 * INTERVAL && no_move !== 'others'
    const old = this.hotspots(step).filter(isOld)
    return old.flatMap((hotspot, at) =>
      Array.from({ length: 1 + (at % 2) }, (_, n) => {
        const [rack, way] = parts(hotspot.link)
        const state = states[(at + n) % 2 ? (rack + way) % 4 : 0] ?? 'advised'
        const to = `r${(rack + 5 + n) % this.racks}h${n + 2}`
        const time = this.time(this.step(hotspot.since) + 9)
        return {
          id: `m-${hotspot.link}-${n}`,
          time,
          decision: `d-${step - 9}-0`,
          task: `t${rack}-${n}-0`,
          job: `job-${rack % 7}`,
          from: `r${rack}h${n}`,
          to,
          link: hotspot.link,
          state,
          reason: state === 'refused' ? 'it holds a lock' : null,
        }
      }),
    )
  }

  /** The decisions of a step. */
  decisions(step: number): Decision[] {
    const draw = random(this.seed, step, 41)
    return Array.from({ length: 1 + Math.floor(draw() * 3) }, (_, n) => {
      const kind = ['replicas', 'replicas', 'replicas', 'tasks', 'volumes'][Math.floor(draw() * 5)]
      return this.decide(step, n, kind ?? 'replicas', kind === 'tasks' ? 'utp' : 'leeward')
    })
  }

  decide(step: number, n: number, kind: string, policy: string): Decision {
    const draw = random(this.seed, step, n, 43)
    const pool = new Set(Array.from({ length: 12 }, () => Math.floor(draw() * this.racks)))
    const racks = [...pool].map((rack) => ({ rack, link: this.link(rack, 1, step) }))
    const blind = policy === 'uniform' || policy === 'random' || policy === 'borg'
    const ranked = blind ? racks : racks.sort((a, b) => b.link.residual_bps - a.link.residual_bps)
    const free = blind ? ranked : ranked.filter(({ link }) => link.seen)
    const wanted = kind === 'replicas' ? 3 : 1
    const chosen = free.slice(0, wanted)
    const why: Candidate[] = ranked.slice(0, 8).map(({ rack, link }) => {
      const took = chosen.some((one) => one.rack === rack)
      const refused = !blind && !link.seen
      return {
        candidate: `r${rack}`,
        limit: blind ? null : link.link,
        sight: blind ? null : link.seen ? (link.derived ? 'derived' : 'counter') : 'unseen',
        value_bps: blind || refused ? null : link.residual_bps,
        verdict: took ? 'chosen' : refused ? 'refused' : 'outranked',
        because: refused ? 'its load is not known' : null,
      }
    })
    const hosts = chosen.map(({ rack }, at) => `r${rack}h${(n + at * 3 + step) % this.hosts}`)
    const narrow = chosen.map(({ link }) => link).sort((a, b) => a.residual_bps - b.residual_bps)[0]
    const sizes = ['64MiB', '256MiB', '1GiB']
    const writer = `r${Math.floor(draw() * this.racks)}h1`
    const requests: Record<string, object> = {
      replicas: { size: sizes[n % 3], writer, replicas: 3 },
      tasks: { name: 'app', job: `job-${n}`, tasks: [{ name: `t-${step}-${n}`, cpus: '4' }], tags: [] },
      volumes: { volume: `vol-${step % 50}`, size: '500GB', slo: '99.9 % < 20 ms' },
    }
    return {
      id: `d-${step}-${n}`,
      kind,
      time: new Date(Date.parse(this.time(step)) + n * 700).toISOString(),
      policy,
      request: requests[kind] ?? {},
      hosts,
      limit: blind || !narrow ? null : { at: narrow.link, value_bps: narrow.residual_bps },
      epoch: step * 4 + n,
      telemetry_age_s: blind ? null : 0.4 + (n % 3),
      note:
        policy === 'sinbad' && n % 3 === 0
          ? 'smaller than the policy’s threshold: placed as uniform does'
          : null,
      why,
      client: n % 3 === 0 ? 'hdfs-1' : null,
      sequence: n % 3 === 0 ? step : null,
      key: null,
      ref: kind === 'replicas' ? `blk_${1_000_000 + step * 10 + n}` : null,
      mode: 'on',
      by_default: false,
      beside: this.beside(racks, chosen, hosts, step, n, kind),
      released: null,
      expires: this.time(step + 30),
    }
  }

  /** The choice of the default policy beside a decision: other racks, whose downlinks are fuller. */
  private beside(
    racks: { rack: number; link: Link }[],
    chosen: { rack: number; link: Link }[],
    hosts: string[],
    step: number,
    n: number,
    kind: string,
  ): Decision['beside'] {
    if (kind === 'volumes') return null
    const others = [...racks].sort((a, b) => a.rack - b.rack).slice(0, chosen.length)
    return {
      policy: kind === 'tasks' ? 'borg' : 'uniform',
      hosts: others.map(({ rack }, at) => `r${rack}h${(n + at + step) % this.hosts}`),
      refused: null,
      load: loadOf(others.map(({ link }) => link)),
      decided: hosts.length ? loadOf(chosen.map(({ link }) => link)) : null,
    }
  }

  workloads(step: number): Workload[] {
    const rows: [string, number, number, number, number | null, number | null][] = [
      ['orders-db', 1, 0.999, 0.02, 0.0162, 0.0071],
      ['search-index', 2, 0.999, 0.05, 0.041, 0.0183],
      ['mail-store', 3, 0.99, 0.1, 0.094, 0.1173],
      ['session-cache', 1, 0.9999, 0.005, 0.0048, 0.0021],
      ['video-meta', 4, 0.99, 0.25, null, 0.08],
      ['ledger-archive', 5, 0.95, 1, 0.61, null],
      ['home-dirs', 4, 0.99, 0.15, 0.171, 0.062],
    ]
    return rows.map(([name, priority, percentile, latency_s, bound_s, seen_s], at) => ({
      name,
      priority,
      slo: { percentile, latency_s },
      bound_s,
      seen_s: seen_s === null ? null : seen_s * (0.95 + 0.1 * random(this.seed, at, Math.floor(step / 6))()),
      volume: `vol-${at}`,
      path: [`r${at}h1:egress`, `r${at}:uplink`, `r${at * 3}:downlink`, `r${at * 3}h2:ingress`],
      decision: `d-${700 - at}-0`,
    }))
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

/** Load on the links of a choice. */
function loadOf(links: Link[]): LinkLoad {
  const seen = links.filter((one) => one.seen)
  const [fullest] = [...seen].sort((a, b) => (b.utilization ?? 0) - (a.utilization ?? 0))
  return {
    link: fullest?.link ?? null,
    utilization: fullest?.utilization ?? null,
    hot: seen.filter((one) => one.hot_since !== null).length,
    unknown: links.length - seen.length,
    rate_bps: fullest ? Math.max(5e7, Math.round(fullest.residual_bps / 20)) : null,
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
