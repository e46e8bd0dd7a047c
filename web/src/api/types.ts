/**
 * Responses of the service under /v1, with the fields that the page reads. Ids and times are strings (RFC 3339 with a
 * zone). Fields `_bps` are rates in bits per second. Sizes are strings (`256MiB`). Null means "unknown".
 *
 * `e2e/real/contract.spec.ts` compares these types with the OpenAPI document of a running service.
 */

/** Response type of each operation. */
export interface Responses {
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
  'POST /v1/decisions/{id}/what-if': PolicyResult
  'GET /v1/workloads': Page<Workload>
  'GET /v1/demo': Demo
}

/** Request body of each operation that has one. */
export interface RequestBodies {
  'POST /v1/migrations/{id}': { answer: 'done' | 'refused'; reason?: string }
  'POST /v1/decisions/{id}/what-if': { policy: string }
}

/** Data of each event of /v1/events, by event name. */
export interface Events {
  decision: Decision
  racks: { items: Rack[] }
  /** A link that became hot, or that cooled at `until`. */
  hotspot: Hotspot & { until: string | null }
  cluster: { cluster_version: string }
  leader: { role: string; leader: string | null }
}

export interface Page<T> {
  items: T[]
  next: string | null
}

/** An error response, RFC 9457. `type` is `urn:leeward:problem:` and a word. */
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
  /** Utilization from which a link is hot. */
  hot_above: number
  epoch: number
  /** Number of stored decisions. */
  decisions: number
  /** Number of decisions since the service started, or since the cluster or the leader last changed. */
  decided: number
  /** Number of samples of links and devices in the same period. */
  samples: number
  waiting: number
  /** `leader`, or `follower`: a replica that serves reads while the leader decides. */
  role: string
  leader: string | null
  /** Reason why the store is unavailable, so that the service rejects placements; null if it is available. */
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
  /** Capacity in the cluster file, if the service uses a lower one; else null. */
  full_bps: number | null
  /** Queue of unsent data at the interface. */
  queue_bytes: number | null
}

export interface Rack {
  rack: string
  pod: string | null
  hosts: number
  /** Null in networks without rack links, such as a hose or a mesh. */
  up: Link | null
  down: Link | null
  tasks: number
  replicas: number
}

export interface Device {
  device: string
  capacity: string | null
  /** Share of time in which the device is busy. */
  busy: number | null
  /** Share of time that is reserved for workloads with an SLO. */
  reserved: number
  hot_since: string | null
  read_bps: number | null
  write_bps: number | null
  /** Requests in the queue and in service, on average. */
  queue: number | null
}

export interface Host {
  host: string
  up: boolean
  draining: boolean
  stored: string
  /** Storage capacity; null if the host has no device with a capacity. */
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

/** Time series of links. All begin at `from`, which is null before the first sample. */
export interface History {
  from: string | null
  step_s: number
  series: { link: string; utilization: (number | null)[] }[]
}

export interface Limit {
  at: string | null
  value_bps: number
}

/** Lexicographic ranking of a host for a task: the first field that differs decides, and lower is better. */
export interface Objectives {
  /** Position of the task in the request. */
  task: number
  in_rack: number
  balance: number
  /** Processors left on the host with the task, in thousandths. */
  left: number
}

export interface Candidate {
  candidate: string
  limit: string | null
  /** Source of the link's load: `counter`, `derived` or `unseen`. */
  sight: string | null
  value_bps: number | null
  objectives?: Objectives | null
  /** `chosen`, `outranked` or `refused`. */
  verdict: string
  because: string | null
}

/** Result of a policy, for a decision or a what-if. */
export interface PolicyResult {
  policy: string
  hosts: string[]
  limit: Limit | null
  note: string | null
  why: Candidate[]
}

export interface Decision extends PolicyResult {
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
  /** Hot link that the move relieves. */
  link: string
  /** `advised`, `done`, `refused` or `expired`. */
  state: string
  reason: string | null
}

/** A policy; requests use `label`. */
export interface Policy {
  name: string
  label: string
}

/** Available policies, by kind of decision. */
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
