import type { Candidate, Decision, Link, LinkLoad } from '../src/api/types'
import { random } from './random.ts'
import type { World } from './world.ts'

/** Policies that look at no load: each is the default of its kind. */
const DEFAULTS: Record<string, string> = { replicas: 'uniform', tasks: 'borg', volumes: 'average' }
/** Leeward's policies: the default of the service for blocks, and `utp` for tasks. */
export const POLICIES: Record<string, string> = { replicas: 'sinbad', tasks: 'utp', volumes: 'compactor' }
const CLIENTS: Record<string, string> = { replicas: 'hdfs-1', tasks: 'batch', volumes: 'csi' }
/** Size of blocks that `sinbad` leaves to the default policy. */
const SMALL = '64MiB'
const CANDIDATES = 12
/** Highest load of blocks that were placed since the last report of a link. */
const CHARGED_BPS = 16e9
/** Steps for which a block is counted. */
const LASTS = 30

/** A rack that may take work, with its links. */
interface Place {
  rack: number
  up: Link
  down: Link
}

/** Kind of the decision `n` of a step. */
export function kindOf(seed: number, step: number, n: number): string {
  const draw = random(seed, step, n, 45)()
  return draw < 0.76 ? 'replicas' : draw < 0.95 ? 'tasks' : 'volumes'
}

/** Number of decisions of a step. */
export function countOf(seed: number, step: number): number {
  return 1 + Math.floor(random(seed, step, 41)() * 3)
}

/** The decision `n` of a step by a policy, beside the choice of the default policy. */
export function decide(
  world: World,
  seed: number,
  step: number,
  n: number,
  kind: string,
  policy: string,
): Decision {
  const draw = random(seed, step, n, 43)
  const place = (rack: number): Place => ({
    rack,
    up: world.link(rack, 0, step),
    down: world.link(rack, 1, step),
  })
  const host = (rack: number, at: number) => world.usable(rack, at % world.hosts)
  const size = draw() < 0.06 ? SMALL : draw() < 0.8 ? '256MiB' : '512MiB'
  const writer = place(Math.floor(draw() * world.racks))
  const writerHost = host(writer.rack, Math.floor(draw() * world.hosts))
  const at = Math.floor(draw() * world.hosts)
  const pool = new Set(Array.from({ length: CANDIDATES }, () => Math.floor(draw() * world.racks)))
  const racks = [...pool].filter((rack) => kind !== 'replicas' || rack !== writer.rack).map(place)
  const seen = ({ up, down }: Place) => up.seen && down.seen
  // Blocks that were placed since the last report are charged to a link.
  const charge = ({ rack }: Place) => CHARGED_BPS * random(seed, step, n, rack, 47)() ** 3
  const leftOf = (one: Place) => Math.max(0, Math.round(one.down.residual_bps - charge(one)))
  const left = new Map(racks.map((one) => [one.rack, leftOf(one)]))
  const byLoad = [...racks].sort((a, b) => (left.get(b.rack) ?? 0) - (left.get(a.rack) ?? 0))
  const small = kind === 'replicas' && size === SMALL
  const isDefault = policy === DEFAULTS[kind] || policy === 'random'
  const blind = isDefault || (policy === 'sinbad' && small)
  /** The place that a policy chooses: without loads the first of the sample. */
  const placeOf = (blind: boolean) => (blind ? racks[0] : byLoad.find(seen))
  const chosen = placeOf(blind)

  /** HDFS's order for a block: the writer's host, then two hosts of another rack. A task or a volume takes one host. */
  const hostsOf = (blind: boolean) => {
    const one = placeOf(blind)
    if (!one) return []
    const shift = blind ? 2 : 0
    const first = host(one.rack, at + shift)
    if (kind !== 'replicas') return [first]
    const second = [3, 4, 5].map((more) => host(one.rack, at + shift + more)).find((name) => name !== first)
    return [writerHost, first, second ?? first]
  }
  /** Links that a choice loads: a block leaves the rack of its writer. */
  const linksOf = (one: Place | undefined) =>
    one ? [...(kind === 'replicas' ? [writer.up] : []), one.down] : []

  const hosts = hostsOf(blind)
  const ranked = blind ? racks : byLoad
  const why = ranked.slice(0, 8).map(({ rack, down }): Candidate => {
    const refused = !blind && !down.seen
    return {
      candidate: `r${rack}`,
      limit: blind ? null : down.link,
      sight: blind ? null : down.seen ? (down.derived ? 'derived' : 'counter') : 'unseen',
      value_bps: blind || refused ? null : (left.get(rack) ?? 0),
      verdict: rack === chosen?.rack ? 'chosen' : refused ? 'refused' : 'outranked',
      because: refused ? 'its load is not known' : null,
    }
  })
  const requests: Record<string, object> = {
    replicas: { size, writer: writerHost, replicas: 3, lasts: '5min' },
    tasks: {
      name: 'app',
      job: `job-${(step + n) % 7}`,
      tasks: [{ name: `t-${step}-${n}`, cpus: '4' }],
      tags: [],
    },
    volumes: { volume: volumeOf(`d-${step}-${n}`), size: '500GB', slo: '99.9 % < 20 ms' },
  }
  const other = isDefault ? (POLICIES[kind] ?? '') : (DEFAULTS[kind] ?? '')
  const otherIsBlind = !isDefault || small
  const guarantee = kind === 'volumes'
  return {
    id: `d-${step}-${n}`,
    kind,
    time: new Date(Date.parse(world.time(step)) + n * 700).toISOString(),
    policy,
    request: requests[kind] ?? {},
    hosts,
    limit: blind || !chosen ? null : { at: chosen.down.link, value_bps: left.get(chosen.rack) ?? 0 },
    epoch: step * 4 + n,
    telemetry_age_s: blind ? null : 0.4 + (n % 3),
    note: policy === 'sinbad' && small ? 'smaller than the policy’s threshold: placed as uniform does' : null,
    why,
    client: CLIENTS[kind] ?? null,
    sequence: step * 3 + n,
    key: null,
    ref: kind === 'replicas' ? `blk_${1_000_000 + step * 10 + n}` : null,
    mode: 'on',
    by_default: false,
    beside: {
      policy: other,
      hosts: hostsOf(otherIsBlind),
      refused: null,
      load: guarantee ? null : loadOf(linksOf(placeOf(otherIsBlind))),
      decided: guarantee || !chosen ? null : loadOf(linksOf(chosen)),
    },
    released: null,
    expires: kind === 'replicas' ? world.time(step + LASTS) : null,
  }
}

/** Name of the volume of a decision: each has its own. */
export function volumeOf(decision: string): string {
  const [, step, n] = /^d-(\d+)-(\d+)$/.exec(decision) ?? []
  return `vol-${Number(step) * 3 + Number(n)}`
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
