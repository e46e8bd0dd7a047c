import type { Snapshot } from '../src/api/types'
import type { World } from './world.ts'

/** Time after which a waiting request is answered without a change, in milliseconds. */
const WAIT_MS = 2000

type Columns = NonNullable<Snapshot['racks']>

/** Snapshots of the racks: whole, or as the difference from an earlier one. A request for a difference waits for a tick. */
export class Snapshots {
  private waiting = new Set<() => void>()

  /** Answers the waiting requests. */
  changed(): void {
    const waiting = [...this.waiting]
    this.waiting.clear()
    waiting.forEach((answer) => answer())
  }

  /** Drops the waiting requests. */
  close(): void {
    this.waiting.clear()
  }

  answer(world: World, step: () => number, query: URLSearchParams, send: (body: Snapshot) => void): void {
    if (query.has('hosts')) return send({ ...head(world, step(), null), hosts: hosts(world) })
    const since = query.get('since')
    const resolution = Number(query.get('resolution') ?? 0.01)
    if (since === null)
      return send({ ...head(world, step(), null), resolution, racks: whole(world, step(), resolution) })
    const before = Number(since)
    const now = () => {
      clearTimeout(timer)
      this.waiting.delete(now)
      const racks = difference(world, before, step(), resolution)
      send({ ...head(world, step(), since), resolution, racks })
    }
    const timer = setTimeout(now, WAIT_MS)
    if (step() > before) now()
    else this.waiting.add(now)
  }
}

function head(world: World, step: number, since: string | null): Snapshot {
  const time = world.time(step)
  const telemetry = world.racks ? time : null
  return { id: String(step), since, time, telemetry, cluster_version: '7', resolution: 0.01 }
}

function whole(world: World, step: number, resolution: number): Columns {
  const racks = world.all(step)
  const steps = (value: number | null) => (value === null ? null : Math.round(value / resolution))
  return {
    rack: racks.map(({ rack }) => rack),
    pod: racks.map(({ pod }) => pod),
    uplink: racks.map(({ up }) => up.link),
    downlink: racks.map(({ down }) => down.link),
    up_steps: racks.map(({ up }) => steps(up.utilization)),
    down_steps: racks.map(({ down }) => steps(down.utilization)),
    up_hot_since: racks.map(({ up }) => up.hot_since),
    down_hot_since: racks.map(({ down }) => down.hot_since),
  }
}

const STEPS = ['up_steps', 'down_steps'] as const
const TIMES = ['up_hot_since', 'down_hot_since'] as const

function difference(world: World, from: number, to: number, resolution: number): Columns {
  const [before, now] = [whole(world, from, resolution), whole(world, to, resolution)]
  const changed = (at: number) => [...STEPS, ...TIMES].some((name) => before[name]?.[at] !== now[name]?.[at])
  const rows = Array.from({ length: world.racks }, (_, at) => at).filter(changed)
  const added = (name: (typeof STEPS)[number]) =>
    rows.map((at) => {
      const value = now[name]?.[at] ?? null
      return value === null ? null : value - (before[name]?.[at] ?? 0)
    })
  const times = (name: (typeof TIMES)[number]) => rows.map((at) => now[name]?.[at] ?? null)
  return {
    rows: rows.map((row, at) => row - (rows[at - 1] ?? 0)),
    up_steps: added('up_steps'),
    down_steps: added('down_steps'),
    up_hot_since: times('up_hot_since'),
    down_hot_since: times('down_hot_since'),
  }
}

function hosts(world: World): NonNullable<Snapshot['hosts']> {
  const all = Array.from({ length: world.racks * world.hosts }, (_, at) => [
    `r${Math.floor(at / world.hosts)}`,
    at % world.hosts,
  ])
  return { host: all.map(([rack, host]) => `${rack}h${host}`), rack: all.map(([rack]) => String(rack)) }
}
