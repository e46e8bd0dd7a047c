/**
 * Responses of the service under /v1, with the fields that the page reads. Ids and times are strings (RFC 3339 with a
 * zone). Fields `_bps` are rates in bits per second. Sizes are strings (`256MiB`). Null means "unknown".
 *
 * `e2e/real/contract.spec.ts` compares these types with the OpenAPI document of a running service.
 */

/** Response type of each operation. */
export interface Responses {
  'GET /v1/status': Status
  'GET /v1/snapshot': Snapshot
  'GET /v1/racks/{rack}': RackDetail
  'GET /v1/history': History
  'GET /v1/links/{link}/history': History
  'GET /v1/decisions': Page<Decision>
  'GET /v1/decisions/{id}': Decision
  'GET /v1/hotspots': Page<HotLink>
  'GET /v1/migrations': Page<Migration>
  'POST /v1/migrations/{id}': Migration
  'GET /v1/policies': Policies
  'POST /v1/decisions/{id}/what-if': PolicyResult
  'GET /v1/workloads': Page<Workload>
  'GET /v1/enforcers': Page<Enforcer>
  'GET /v1/modes': ModesInForce
  'PATCH /v1/modes': ModesInForce
  'GET /v1/summary': Summary
  'GET /v1/demo': Demo
  'GET /v1/labs': Page<Lab>
}

/** Request body of each operation that has one. */
export interface RequestBodies {
  'POST /v1/migrations/{id}': { answer: 'done' | 'refused' | 'failed'; reason?: string }
  'POST /v1/decisions/{id}/what-if': { policy: string }
  'PATCH /v1/modes': { [kind in 'all' | ModeKind]?: string } & { reason?: string }
}

/** Data of each event of /v1/events, by event name. */
export interface Events {
  decision: Decision
  /** A link that became hot, or that cooled at `until`. */
  hotspot: Hotspot & { until: string | null }
  cluster: { cluster_version: string }
  leader: { role: string; leader: string | null }
  modes: { by: string; reason: string | null }
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
  policies: { replicas: string; tasks: string; moves: string | null; workload: string; volumes: string }
  /** Modes in force. */
  modes: Modes
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
  /** `sqlite`, `postgres` or `memory`. */
  store: string
  /** `process` or `power`: the failure that stored decisions survive; null in memory. */
  durability: string | null
  /** Seconds by which the machine's clock was set back, negative if forward. */
  clock_behind_s: number
  slow_links: number
  released_early: number
  /** Age of the state that reads are served from. */
  snapshot_age_s: number
  /** Time of the last transaction of the store; null before the first. */
  transaction_s: number | null
  /** Hosts by their telemetry; the names of at most 100 silent ones. */
  agents: { reporting: number; silent: number; absent: number; silent_hosts: string[] }
  connections: { open: number; limit: number; streams: number }
  comparisons: Comparisons[]
  warnings: string[]
  /** State of Prometheus polling; null without it. */
  telemetry: { prometheus: string; state: string; problem: string | null; silent: number } | null
  /** `leader`, or `follower`: a replica that serves reads while the leader decides. */
  role: string
  leader: string | null
  /** Reason why the store is unavailable, so that the service rejects placements; null if it is available. */
  stalled: string | null
  demo?: { speed: number; arms: string[] } | null
}

/** Kinds of decisions, each with its mode. */
export type ModeKind = 'replicas' | 'tasks' | 'moves' | 'workload' | 'volumes'

/** Modes by kind: `on`, `off`, `shadow` or `canary:10%:client`. */
export type Modes = { [kind in ModeKind]: string }

export interface ModesInForce {
  in_force: Modes
  set: Modes
  settings: Modes
  changed: string
  /** `settings`, or the name of the client that changed the modes. */
  by: string
  reason: string | null
  off_file: string | null
  off_file_exists: boolean
}

/** Comparisons of a kind of decision, by the effect of Leeward's choice, since the start of the service. */
export interface Comparisons {
  kind: string
  better: number
  same: number
  worse: number
  unknown: number
  refused: number
}

/** The racks in columns: whole, or as the difference from the snapshot `since`. */
export interface Snapshot {
  id: string
  since: string | null
  time: string
  /** End of the newest accepted window of a link. */
  telemetry: string | null
  cluster_version: string
  resolution: number
  racks?: RackColumns
  hosts?: { host?: (string | null)[]; rack?: (string | null)[] }
}

/** Columns of racks. A difference has `rows`, the distances of the changed rows, and no names. */
export interface RackColumns {
  rows?: number[]
  rack?: (string | null)[]
  pod?: (string | null)[]
  uplink?: (string | null)[]
  downlink?: (string | null)[]
  up_steps?: (number | null)[]
  down_steps?: (number | null)[]
  up_hot_since?: (string | null)[]
  down_hot_since?: (string | null)[]
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
  /** Reason for which the task may not be moved now. */
  stays?: string | null
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
  /** Choice of the other policy; in a what-if, the decision that was made. */
  beside: Beside | null
}

/** Load on the links of a choice. */
export interface LinkLoad {
  link: string | null
  utilization: number | null
  hot: number
  unknown: number
  rate_bps: number | null
}

export interface Beside {
  policy: string
  hosts: string[]
  refused: string | null
  /** Load on the links of this choice, and on those of the decision; null for guarantees. */
  load: LinkLoad | null
  decided: LinkLoad | null
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
  /** Text that the caller gave with the request, such as the id of a block. */
  ref?: string | null
  expires: string | null
  released: string | null
  /** Mode of its kind at the decision. */
  mode: string
  /** True if the default policy decided. */
  by_default: boolean
}

export interface Hotspot {
  link: string
  since: string
  age_s: number
  utilization: number | null
}

/** A hot link with the causes of its load. */
export interface HotLink extends Hotspot {
  heaviest: HeavyWork[]
  measured_bps: number | null
  /** Measured load beyond the rates of all known tasks. */
  unexplained_bps: number | null
  /** Reason for which no task moves off the link; null if an advised move waits. */
  no_move: string | null
}

/** A task, or a transfer of a block: then without a task and a rate. */
export interface HeavyWork {
  decision: string
  job: string | null
  task: string | null
  host: string | null
  rate_bps: number | null
  /** Reason for which the task may not be moved now. */
  stays?: string | null
  size: string | null
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
  /** `advised`, `taken`, `done`, `refused`, `failed`, `expired`, or `considered` in shadow mode. */
  state: string
  /** Executor that took the move or reported its end. */
  executor?: string | null
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

/** A promised workload at a place that needs an enforcer. */
export interface EnforcementPlace {
  kind: 'net' | 'nfs'
  host: string
  stage: string
  state: 'applied' | 'drifted' | 'refused' | 'pending' | 'expired' | 'absent'
  enforcer: string | null
  detail: string | null
}

/** Enforcement of a promise that holds, and what its requests experience. */
export interface Enforcement {
  state: 'decided' | 'partial' | 'enforced' | 'seen' | 'unenforced'
  places: EnforcementPlace[]
  /** Requests that enforcers counted since `counted_since`; null before the first acknowledgement of one at the server. */
  total: { requests: number; late: number }
  counted_since: string | null
  /** Enforcer that reported the measured latency, at the server; null for a client. */
  seen_by: string | null
  /** Share of late requests relative to the share that the SLO permits, by window; null without requests. */
  burn: { window_s: number; rate: number | null }[]
  alerts: ('fast' | 'slow' | 'lasting')[]
}

/** A program that applies the promises of a host. */
export interface Enforcer {
  enforcer: string
  kind: 'net' | 'nfs'
  host: string
  state: 'live' | 'expired'
  since: string
  /** Version that it has applied, and the version that it should apply. */
  version: number | null
  current: number
  workloads: { workload: string; state: 'applied' | 'refused' | 'drifted'; detail: string | null }[]
}

export interface Workload {
  name: string
  priority: number
  slo: { percentile: number; latency_s: number }
  bound_s: number | null
  seen_s: number | null
  volume: string
  path: string[]
  version: number
  /** Null if the guarantee has ended, or if the default policy decided. */
  enforcement: Enforcement | null
  decision: string
}

/** The effect of the service over a time span. */
export interface Summary {
  from: string
  to: string
  step_s: number
  decisions: SummaryDecisions[]
  moves: { considered: number; advised: number; done: number; refused: number }
  hot_link_hours: {
    seen: number
    with_leeward: number
    without_leeward: number
    /** Link-hours with telemetry. */
    observed: number
    compared: number
    uncompared: number
  }
  steps: { ends: string; decided: number; hot_h: number; with_h: number; without_h: number }[]
  /** At most ten decisions, the largest difference first; a gain above 0 means that Leeward's choice was better. */
  mattered: { gain: { hot_links: number; utilization: number }; decision: Decision }[]
}

export interface SummaryDecisions {
  kind: string
  decided: number
  by_default: number
  refused: number
  blind: number
  fallback: number
  better: number
  same: number
  worse: number
  unknown: number
  one_refused: number
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

/** A lab with circuits, at the time of its latest view. Lists of pairs are by source and then by destination. */
export interface Lab {
  name: string
  /** Virtual time since the begin. */
  at_s: number
  /** Real seconds for each virtual one. */
  dilation: number
  racks: number
  /** Circuits that are up: source and destination. */
  circuits: [number, number][]
  queued_packets: number[]
  capacity_packets: number[]
  /** Bytes that each rack has sent. */
  packet_bytes: number[]
  circuit_bytes: number[]
  dropped_packets: number
  /** Packets lost outside the switch: the lab was then too fast for the machine. */
  lost_packets: number
  late_p99_s: number | null
}
