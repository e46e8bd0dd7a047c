/**
 * What the controller says under /v1. Ids and times are strings (RFC 3339 with a zone), rates are numbers of bits
 * per second in fields `_bps`, sizes are texts (`256MiB`), and null means "not known".
 */

export interface Page<T> {
  items: T[]
  next: string | null
}

/** An error, RFC 9457. `type` is `urn:leeward:problem:` and a word. */
export interface ProblemDocument {
  type: string
  title: string
  status: number
  detail?: string
  field?: string
}

export interface Status {
  version: string
  cluster: string
  cluster_version: string
  policies: { replicas: string; tasks: string; moves: string }
  role: 'leader' | 'follower'
  leader: string | null
  since: string
  time: string
  epoch: number
  interval_s: number
  /** A link is hot from this utilization on. */
  limit: number
  decisions: number
  waiting: number
  reports_s: number
  store: 'sqlite' | 'postgres'
  durability: 'process' | 'power'
  demo: { speed: number; arms: string[] } | null
}

export interface Link {
  link: string
  capacity_bps: number
  measured_bps: number | null
  utilization: number | null
  residual_bps: number
  seen: boolean
  derived: boolean
  until: string | null
  hot_since: string | null
  pending_bps: number
  reserved_bps: number
}

export interface Rack {
  rack: string
  pod: string | null
  hosts: number
  up: Link
  down: Link
  tasks: number
  replicas: number
}

export interface Device {
  device: string
  utilization: number | null
}

export interface Host {
  host: string
  up: boolean
  draining: boolean
  stored: string | null
  capacity: string | null
  egress: Link
  ingress: Link
  tasks: number
  replicas: number
  devices: Device[]
}

export interface Task {
  task: string
  job: string
  host: string
  tolerant: boolean
  egress_bps: number
  ingress_bps: number
}

export interface Replica {
  decision: string
  host: string
  size: string
}

export interface Reservation {
  workload: string
  link: string
  rate_bps: number
  priority: number
}

export interface RackDetail {
  rack: string
  pod: string | null
  links: Link[]
  hosts: Host[]
  tasks: Task[]
  replicas: Replica[]
  reservations: Reservation[]
}

/** Steps of one link, the first of them beginning at `from`. */
export interface LinkHistory {
  link: string
  step_s: number
  from: string
  utilization: (number | null)[]
}

/** Steps of many links, all beginning at `from`. */
export interface History {
  from: string
  step_s: number
  series: { link: string; utilization: (number | null)[] }[]
}

export type DecisionKind = 'replicas' | 'tasks' | 'volumes' | 'workload' | 'move'

export interface Limit {
  at: string
  value_bps: number
}

export interface Candidate {
  domain: string
  limit: string | null
  value_bps: number | null
  verdict: 'chosen' | 'outranked' | 'refused'
  reason: string | null
}

export interface Decision {
  id: string
  kind: DecisionKind
  time: string
  policy: string
  request: Record<string, unknown>
  hosts: string[]
  limit: Limit | null
  epoch: number
  telemetry_age_s: number | null
  note: string | null
  why: Candidate[]
  released: string | null
  expires: string | null
}

export interface Workload {
  name: string
  priority: number
  slo: { percentile: number; latency_s: number }
  bound_s: number | null
  seen_s: number | null
  volume: string
  path: string[]
  decision: string
}

export interface Migration {
  id: string
  time: string
  task: string
  job: string
  from: string
  to: string
  link: string
  state: 'advised' | 'done' | 'refused' | 'expired'
}

export interface Hotspot {
  link: string
  since: string
  age_s: number
  utilization: number | null
  peak: number
  migrations: string[]
  cause: { text: string } | null
}

export interface DemoArm {
  name: string
  policy: string
  hot_racks: number
  hot_share: number
  p99: number | null
  racks: { rack: string; up: number | null; down: number | null }[]
}

export interface Demo {
  time: string
  speed: number
  arms: DemoArm[]
  history: { step_s: number; arms: { name: string; hot_share: (number | null)[] }[] }
}

/** What /v1/events sends, by the name of the event. */
export interface Events {
  decision: Decision
  racks: { items: Rack[] }
  hotspot: Hotspot
  migration: Migration
  cluster: { cluster_version: string }
  leader: { role: 'leader' | 'follower'; leader: string | null }
}
