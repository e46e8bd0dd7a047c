/**
 * Answers of the service under /v1, as far as the page reads them. Ids and times are strings (RFC 3339 with a zone), rates
 * are numbers of bits per second in fields `_bps`, sizes are texts (`256MiB`), and null means "not known".
 *
 * `e2e/real/contract.spec.ts` compares all of this with the description of a running service.
 */

/** What is asked, and what is answered. */
export interface Answers {
  'GET /v1/status': Status
  'GET /v1/racks': Page<Rack>
  'GET /v1/racks/{rack}': RackDetail
  'GET /v1/history': History
  'GET /v1/links/{link}/history': History
  'GET /v1/decisions': Page<Decision>
  'GET /v1/decisions/{id}': Decision
  'GET /v1/hotspots': Page<Hotspot>
  'GET /v1/migrations': Page<Migration>
  'POST /v1/migrations/{id}': Migration
  'GET /v1/policies': Policies
  'POST /v1/decisions/{id}/what-if': Decided
  'GET /v1/workloads': Page<Workload>
  'GET /v1/demo': Demo
}

/** What is sent with it. */
export interface Bodies {
  'POST /v1/migrations/{id}': { answer: 'done' | 'refused'; reason?: string }
  'POST /v1/decisions/{id}/what-if': { policy: string }
}

/** What /v1/events sends, by the name of the event. */
export interface Events {
  decision: Decision
  racks: { items: Rack[] }
  /** A link that became hot; or cooled, where `until` says when. */
  hotspot: Hotspot & { until: string | null }
  cluster: { cluster_version: string }
  leader: { role: string; leader: string | null }
}

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
  policies: { replicas: string; tasks: string }
  since: string
  time: string
  interval_s: number
  /** A link is hot from this utilization on. */
  hot_above: number
  epoch: number
  /** Decisions that are kept. */
  decisions: number
  /** Decisions since the service started, or the cluster or who leads changed. */
  decided: number
  /** Samples of links and devices, since then. */
  samples: number
  waiting: number
  /** `leader`, or `follower`: one that answers reads while another decides. */
  role: string
  leader: string | null
  /** Why nothing can be kept now, so that nothing is placed; null if it can. */
  stalled: string | null
  demo?: { speed: number; arms: string[] } | null
}

export interface Link {
  link: string
  capacity_bps: number
  seen: boolean
  derived: boolean
  measured_bps: number | null
  utilization: number | null
  until: string | null
  pending_bps: number
  reserved_bps: number
  residual_bps: number
  hot_since: string | null
  /** What the cluster says that it carries, where less is believed. */
  full_bps: number | null
  /** What waits to be sent. */
  queue_bytes: number | null
}

export interface Rack {
  rack: string
  pod: string | null
  hosts: number
  /** Null where racks have no links of their own, as in a hose or a mesh. */
  up: Link | null
  down: Link | null
  tasks: number
  replicas: number
}

export interface Device {
  device: string
  capacity: string | null
  /** The share of its time in which it is busy. */
  busy: number | null
  /** The share of its time that was promised. */
  reserved: number
  hot_since: string | null
  read_bps: number | null
  write_bps: number | null
  /** Requests that were with it in the mean. */
  queue: number | null
}

export interface Host {
  host: string
  up: boolean
  draining: boolean
  stored: string
  /** What it can store; null if it has no device with a capacity. */
  storage: string | null
  tasks: number
  replicas: number
  egress: Link | null
  ingress: Link | null
  devices: Device[]
}

export interface Task {
  task: string
  decision: string
  job: string | null
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

/** Steps of links, all beginning at `from`, which is null while nothing is known. */
export interface History {
  from: string | null
  step_s: number
  series: { link: string; utilization: (number | null)[] }[]
}

export interface Limit {
  at: string | null
  value_bps: number
}

/** What ranks a host for a task: the first that differs decides, and less is better. */
export interface Objectives {
  /** The position of the task in its request. */
  task: number
  in_rack: number
  balance: number
  /** Thousandths of a processor. */
  left: number
}

export interface Candidate {
  candidate: string
  limit: string | null
  /** How the load of its link is known: `counter`, `derived`, `unseen`. */
  sight: string | null
  value_bps: number | null
  objectives?: Objectives | null
  /** `chosen`, `outranked` or `refused`. */
  verdict: string
  because: string | null
}

/** What a policy decides, or would. */
export interface Decided {
  policy: string
  hosts: string[]
  limit: Limit | null
  note: string | null
  why: Candidate[]
}

export interface Decision extends Decided {
  id: string
  time: string
  /** `replicas`, `tasks`, ... */
  kind: string
  request: object
  epoch: number
  telemetry_age_s: number | null
  client: string | null
  sequence: number | null
  key: string | null
  expires: string | null
  released: string | null
}

export interface Hotspot {
  link: string
  since: string
  age_s: number
  utilization: number | null
}

export interface Migration {
  id: string
  time: string
  decision: string
  task: string
  job: string | null
  from: string
  to: string
  /** The hot link that it leaves. */
  link: string
  /** `advised`, `done`, `refused` or `expired`. */
  state: string
  reason: string | null
}

/** A policy; `label` is what to ask for. */
export interface Policy {
  name: string
  label: string
}

/** Policies by kind of decision. */
export interface Policies {
  replicas: Policy[]
  tasks: Policy[]
  workload: Policy[]
  volumes: Policy[]
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

export interface DemoArm {
  name: string
  policy: string
  hot_racks: number
  hot_share: number
  racks: { rack: string; up: number | null; down: number | null }[]
}

export interface Demo {
  time: string
  speed: number
  arms: DemoArm[]
  history: { step_s: number; arms: { name: string; hot_share: (number | null)[] }[] }
}
