import type { RackColumns, Snapshot } from '../api/types'
import { moment } from './format'

/** A link of a rack as the page follows it. */
export interface LiveLink {
  link: string
  /** Null if the link is not seen. */
  utilization: number | null
  hot_since: string | null
  /** Last known utilization of a link that is not seen, and its time; null if there is none. */
  last: { utilization: number; time: number } | null
}

/** A rack as the page follows it. Both links are null in networks without rack links. */
export interface LiveRack {
  rack: string
  pod: string | null
  up: LiveLink | null
  down: LiveLink | null
}

const WAYS = [
  ['uplink', 'up_steps', 'up_hot_since'],
  ['downlink', 'down_steps', 'down_hot_since'],
] as const

/** Follows the racks through whole snapshots and differences. */
export class RackFrames {
  /** Id of the last snapshot; null before the first. */
  id: string | null = null
  private columns: Required<Omit<RackColumns, 'rows'>> | null = null
  private last = new Map<string, { utilization: number; time: number }>()

  /** Forgets the last snapshot, so that the next one is whole. */
  restart(): void {
    this.id = null
  }

  /** Takes a snapshot and returns the racks after it. Throws an error for a difference from another snapshot. */
  apply(snapshot: Snapshot): LiveRack[] {
    const { racks = {}, since, resolution } = snapshot
    if (since === null) this.columns = whole(racks)
    else if (since !== this.id || !this.columns) throw new Error(`the snapshot ${since} is not known`)
    else change(this.columns, racks)
    this.id = snapshot.id
    return this.read(this.columns, resolution, moment(snapshot.time) ?? 0)
  }

  private read(columns: Required<Omit<RackColumns, 'rows'>>, resolution: number, time: number): LiveRack[] {
    const link = (at: number, [name, steps, hot]: (typeof WAYS)[number]): LiveLink | null => {
      const link = columns[name][at] ?? null
      if (link === null) return null
      const step = columns[steps][at] ?? null
      const utilization = step === null ? null : step * resolution
      if (utilization !== null) this.last.set(link, { utilization, time })
      return {
        link,
        utilization,
        hot_since: columns[hot][at] ?? null,
        last: utilization === null ? (this.last.get(link) ?? null) : null,
      }
    }
    return columns.rack.map((rack, at) => ({
      rack: rack ?? '',
      pod: columns.pod[at] ?? null,
      up: link(at, WAYS[0]),
      down: link(at, WAYS[1]),
    }))
  }
}

function whole(racks: RackColumns): Required<Omit<RackColumns, 'rows'>> {
  const { rack = [], pod = [], uplink = [], downlink = [] } = racks
  const { up_steps = [], down_steps = [], up_hot_since = [], down_hot_since = [] } = racks
  return { rack, pod, uplink, downlink, up_steps, down_steps, up_hot_since, down_hot_since }
}

/** Applies a difference: numbers are added to those before, and times replace them. */
function change(columns: Required<Omit<RackColumns, 'rows'>>, racks: RackColumns): void {
  let row = 0
  racks.rows?.forEach((distance, at) => {
    row += distance
    for (const [, steps, hot] of WAYS) {
      const added = racks[steps]?.[at] ?? null
      columns[steps][row] = added === null ? null : (columns[steps][row] ?? 0) + added
      columns[hot][row] = racks[hot]?.[at] ?? null
    }
  })
}
