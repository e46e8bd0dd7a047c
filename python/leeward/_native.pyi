from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, final

import pyarrow

from leeward._arrays import Floats, Hosts, Ids, Ints, Mask
from leeward._arrow import Table
from leeward._display import Pictures
from leeward._inputs import Document
from leeward._policies import Started

__all__ = [
    "AppRequest",
    "BlockRequest",
    "Cluster",
    "EngineSession",
    "LabNetwork",
    "OperationsRun",
    "OperationsScenario",
    "PacketRun",
    "PacketScenario",
    "RequestBatch",
    "Run",
    "Scenario",
    "Scheduler",
    "SimulatedClock",
    "SloWorkloads",
    "Trace",
    "View",
    "VolumeExperiment",
    "__version__",
    "app_file",
    "byte_count",
    "bytes_text",
    "check_demand",
    "check_device",
    "check_policy",
    "check_service",
    "check_slo",
    "draw_links",
    "draw_visits",
    "draw_workloads",
    "enforce_net",
    "enforce_nfs",
    "evaluate_circuits",
    "file_text",
    "lab_failures",
    "lab_machines",
    "lab_prefix",
    "lab_view",
    "labs",
    "migrate",
    "new_token",
    "pack_slo",
    "place_replicas",
    "place_tasks",
    "plug_ins",
    "probe_bottlenecks",
    "probe_calibrate",
    "probe_cross",
    "probe_earlier",
    "probe_hops",
    "probe_listen",
    "probe_mesh",
    "probe_modelled",
    "probe_path",
    "probe_questions",
    "probe_recognised",
    "probe_stability",
    "probe_steady",
    "published_workloads",
    "rate_text",
    "read_capture",
    "read_days",
    "read_demand",
    "record_lab_failure",
    "reevaluate",
    "remove_lab",
    "remove_nfs_file",
    "replay_nfs",
    "run_agent",
    "run_lab",
    "schedule_circuits",
    "schema",
    "schemas",
    "seconds",
    "serve",
    "simulate_apps",
    "simulate_contention",
    "simulate_flows",
    "stand_lab",
]
__version__: str

@final
class Cluster:
    """A network: hosts, racks, pods, links and devices with their capacities. Immutable.

    Hosts are numbered rack by rack. Rack 3 is `r3` and its host 7 `r3h7`, unless the file names them; a host
    of a mesh without racks is `h7`. Links and devices follow their owner: `r3h7:egress`, `r3:uplink`,
    `r3h7:disk0`.
    """

    def __new__(cls, source: Cluster | Mapping[str, Any] | str | PathLike[str]) -> Cluster:
        """Takes a path, a text of more than one line (YAML or JSON), a mapping, or a cluster.

        Raises:
            InputError: The source is not a valid cluster, or the file cannot be read.
        """

    @staticmethod
    def from_file(path: str | PathLike[str]) -> Cluster:
        """Reads a cluster file."""

    @staticmethod
    def from_text(text: str, name: str = "<text>") -> Cluster:
        """Reads YAML or JSON text; `name` stands for the file in errors."""

    @property
    def name(self) -> str:
        """Display name."""

    @property
    def shape(self) -> Literal["tree", "pipe", "hose"]:
        """Shape: a tree of racks and pods, or one of the two kinds of mesh."""

    @property
    def hosts(self) -> int:
        """Number of hosts."""

    @property
    def racks(self) -> int:
        """Number of racks; on a mesh, number of groups of hosts."""

    @property
    def pods(self) -> int:
        """Number of pods."""

    def host_names(self) -> list[str]:
        """Names of all hosts, in order of their numbers."""

    def resources(self) -> pyarrow.Table:
        """All links and devices: `index` (int32), `name`, `kind`, `capacity` (int64).

        The capacity of a link is in bits per second, and the capacity of a device in nanoseconds of service
        per second.
        """

    def links(self) -> pyarrow.Table:
        """All links with their places; each direction is a separate row.

        Columns: `link` (int32, from 0), `name`; `cross_section` (`host-ToR`, `ToR-pod`, `pod-core`, or `pair`
        in a pipe mesh), `direction` (`up`: away from the host, rack or pod; `down`; `one-way` of a pair);
        `host` (null for links of racks and pods), `rack` (null for links of pods), `pod` (null in a cluster
        without pods); `capacity_bps` (int64).
        """

    def rack_table(self) -> pyarrow.Table:
        """All racks, with the sums over their hosts.

        Columns: `rack`, `pod` (null in a cluster without pods), `kind` (`compute`, `disk` or `mixed`),
            `hosts` (int32), `cpus` (float64; null: no limit), `storage_bps` (int64: read rate of its devices,
            in bits per second), `storage_bytes` (int64; null: no limit).
        """

    def host_table(self) -> pyarrow.Table:
        """All hosts and their places: `host`, `rack`, `pod` (null in a cluster without pods)."""

    def path(self, *endpoints: str) -> list[tuple[str, float]]:
        """Resources on the path of a flow through these endpoints, each with its work per byte of the flow.

        Args:
            endpoints: Hosts (`r3h7`), racks or pods (`r3` for an unspecified host in it), and devices
                (`r3h7:disk0:write`, `r3h7:disk0:read`). Three or more make a chain.

        Raises:
            InputError: An endpoint does not exist.
        """

    def describe(self) -> dict[str, Any]:
        """Numbers of hosts, racks, links and devices, as `leeward cluster show -o json` prints them."""

    @property
    def text(self) -> str:
        """Text of its file; of a mapping, its JSON."""

@final
class View:
    """The network as a policy may see it.

    Arrays are read-only and stay valid after the call; the view does not. Hosts, racks and links are numbers
    from 0, in the order of the cluster. Rates are in bit/s.
    """

    @property
    def now_s(self) -> float:
        """Time of the decision, in seconds since the start of the run."""

    @property
    def interval_s(self) -> float:
        """Time between reports of telemetry, in seconds."""

    @property
    def hot_above(self) -> float:
        """Utilization above which a link is hot."""

    @property
    def hosts(self) -> Ids:
        """Numbers of all hosts, from 0 (int32)."""

    @property
    def racks(self) -> Ids:
        """Numbers of all racks, from 0 (int32)."""

    @property
    def links(self) -> Ids:
        """Numbers of all links, from 0 (int32)."""

    @property
    def rack_of(self) -> Ids:
        """Rack of each host (int32)."""

    @property
    def pod_of(self) -> Ids:
        """Pod of each rack, from 0; -1 in a cluster without pods (int32)."""

    @property
    def fault_domain_of(self) -> Ids:
        """Fault domain of each host (int32)."""

    @property
    def host_names(self) -> tuple[str, ...]:
        """Name of each host."""

    @property
    def rack_names(self) -> tuple[str, ...]:
        """Name of each rack."""

    @property
    def link_names(self) -> tuple[str, ...]:
        """Name of each link."""

    @property
    def link_kinds(self) -> tuple[str, ...]:
        """Kind of each link, as in `Cluster.resources`."""

    @property
    def ingress(self) -> Ids:
        """Link into each host; -1 on a pipe mesh (int32)."""

    @property
    def egress(self) -> Ids:
        """Link out of each host; -1 on a pipe mesh (int32)."""

    @property
    def downlink(self) -> Ids:
        """Link into each rack; -1 on a mesh (int32)."""

    @property
    def uplink(self) -> Ids:
        """Link out of each rack; -1 on a mesh (int32)."""

    @property
    def is_open(self) -> Mask:
        """True for each host that is up, not draining and not full (bool)."""

    @property
    def free_bytes(self) -> Floats:
        """Free storage of each host, in bytes; infinite without a limit (float64)."""

    @property
    def stored_bytes(self) -> Floats:
        """Bytes stored on each host (float64)."""

    @property
    def free_cpus(self) -> Floats:
        """Free processors of each host; infinite without a limit (float64)."""

    @property
    def free_memory_bytes(self) -> Floats:
        """Free memory of each host, in bytes; infinite without a limit (float64)."""

    @property
    def disk_residual(self) -> Floats:
        """Rate that the least busy disk of each host can still write, in bit/s (float64).

        Infinite without disks, NaN if no disk has a known load.
        """

    @property
    def residual_in(self) -> Floats:
        """Rate left on the way from the core into each host, in bit/s: the least of its links (float64).

        Zero where a load is unknown, NaN on a pipe mesh.
        """

    @property
    def residual_out(self) -> Floats:
        """Rate left on the way from each host to the core, in bit/s, as `residual_in` (float64)."""

    @property
    def utilization_in(self) -> Floats:
        """Greatest utilization on the way from the core into each host (float64).

        NaN where a load is unknown.
        """

    @property
    def utilization_out(self) -> Floats:
        """Greatest utilization on the way from each host to the core, as `utilization_in` (float64)."""

    @property
    def rack_residual_in(self) -> Floats:
        """Rate left on the link into each rack, in bit/s (float64).

        Zero where the load is unknown, NaN on a mesh.
        """

    @property
    def rack_residual_out(self) -> Floats:
        """Rate left on the link out of each rack, in bit/s, as `rack_residual_in` (float64)."""

    @property
    def rack_utilization_in(self) -> Floats:
        """Utilization of the link into each rack (float64).

        NaN where the load is unknown, and on a mesh.
        """

    @property
    def rack_utilization_out(self) -> Floats:
        """Utilization of the link out of each rack, as `rack_utilization_in` (float64)."""

    @property
    def link_capacity(self) -> Floats:
        """Capacity of each link that the ledger assumes, in bit/s (float64)."""

    @property
    def link_measured(self) -> Floats:
        """Measured load of each link, in bit/s; NaN where it is unknown (float64)."""

    @property
    def link_load(self) -> Floats:
        """Load of each link, measured and placed, in bit/s (float64).

        Placed load counts until telemetry shows it. NaN where the load is unknown.
        """

    @property
    def link_residual(self) -> Floats:
        """Rate left on each link for best-effort work, in bit/s; zero where the load is unknown (float64)."""

    @property
    def link_utilization(self) -> Floats:
        """Load of each link over its capacity; NaN where the load is unknown (float64)."""

    @property
    def link_expected(self) -> Floats:
        """Capacity that Sinbad's estimator expects on each link, in bit/s (float64).

        NaN where the load is unknown.
        """

    @property
    def link_share(self) -> Floats:
        """Rate that one more flow would get on each link, in bit/s (float64; Choreo section 3.2)."""

    @property
    def link_hot(self) -> Mask:
        """True for each link that was hot in its last windows (bool)."""

    def eligible(self, request: BlockRequest | AppRequest, task: int = 0) -> Mask:
        """True for each host that the constraints of a request allow (bool).

        For an app, the constraints on one of its tasks count.
        """

    def path(self, source: int | str, destination: int | str) -> list[int]:
        """Numbers of the links on the way between two hosts, racks or pods."""

    def add(self, request: BlockRequest | AppRequest, hosts: Hosts) -> None:
        """Adds the traffic of a request, placed on these hosts, to the what-if."""

    def add_flow(self, source: int | str, destination: int | str, size_bytes: int, flows: int = 1) -> None:
        """Adds flows between two hosts, racks or pods to the what-if, of this number of bytes together."""

    def add_rate(self, source: int | str, destination: int | str, rate_bps: float) -> None:
        """Adds a stream between two hosts, racks or pods to the what-if, at a rate in bit/s."""

    def without(self, request: BlockRequest | AppRequest) -> None:
        """Takes the committed load of a request out of the what-if."""

    def checkpoint(self) -> int:
        """A number for the current state of the what-if, for `rollback`."""

    def rollback(self, checkpoint: int) -> None:
        """Returns the what-if to a state; later states no longer exist."""

@final
class BlockRequest:
    """A block to write, or a stripe of coded chunks."""

    @property
    def kind(self) -> str:
        """Kind of the request: `replicas`."""

    @property
    def id(self) -> int:
        """Number of the request."""

    @property
    def seed(self) -> int:
        """Seed for random choices: a function of the run's seed and of the request alone."""

    @property
    def file(self) -> int:
        """Number of the file."""

    @property
    def size(self) -> int:
        """Size of each copy or chunk, in bytes."""

    @property
    def count(self) -> int:
        """Number of hosts to choose: of new copies, the writer's own included, or of missing chunks."""

    @property
    def replicas(self) -> int:
        """The same number as `count`."""

    @property
    def parity(self) -> int | None:
        """Number of parity chunks of a stripe; None for copies."""

    @property
    def fault_domains(self) -> int:
        """Number of fault domains besides the first copy's that must hold a copy.

        Of a stripe, number of fault domains that may be lost.
        """

    @property
    def writer(self) -> int | None:
        """Host that writes the block, by number; None for a writer outside the cluster."""

    @property
    def blocks_left(self) -> int:
        """Blocks of the file still to write, this one included."""

    @property
    def existing(self) -> list[int]:
        """Hosts that hold a copy or a chunk already, by number."""

    @property
    def preferred(self) -> list[int]:
        """Hosts that the request prefers, by number, in their order."""

    @property
    def excluded(self) -> list[int]:
        """Hosts that the request excludes, by number; `View.eligible` knows all constraints."""

    @property
    def storage(self) -> str | None:
        """Type of storage that must hold the copies; None for any."""

    @property
    def max_imbalance(self) -> float | None:
        """Greatest excess of a host's used share of storage over the average; None for any."""

@final
class RequestBatch:
    """Blocks to place together."""

    def __len__(self) -> int:
        """Number of requests."""

    def __getitem__(self, index: int, /) -> BlockRequest:
        """One of the requests."""

    @property
    def seed(self) -> int:
        """Seed for random choices of the whole batch."""

    @property
    def ids(self) -> Ints:
        """Number of each request (int64)."""

    @property
    def sizes(self) -> Ints:
        """Size of each copy or chunk, in bytes (int64)."""

    @property
    def counts(self) -> Ints:
        """Number of hosts to choose for each request (int64)."""

    @property
    def writers(self) -> Ints:
        """Writer of each request, by number; -1 for a writer outside the cluster (int64)."""

@final
class AppRequest:
    """Tasks to place together: a task of a scheduler, or an app with traffic between its tasks."""

    @property
    def kind(self) -> str:
        """Kind of the request: `tasks`."""

    @property
    def id(self) -> int:
        """Number of the request."""

    @property
    def job(self) -> int:
        """Number of the job of the tasks."""

    @property
    def seed(self) -> int:
        """Seed for random choices: a function of the run's seed and of the request alone."""

    @property
    def count(self) -> int:
        """Number of hosts to choose: one for each task."""

    @property
    def cpus(self) -> Floats:
        """Processors of each task (float64)."""

    @property
    def memory_bytes(self) -> Floats:
        """Memory of each task, in bytes (float64)."""

    @property
    def egress_mean_bps(self) -> Floats:
        """Average rate of each task out of its rack, in bit/s (float64)."""

    @property
    def egress_peak_bps(self) -> Floats:
        """Peak rate of each task out of its rack, in bit/s (float64)."""

    @property
    def ingress_mean_bps(self) -> Floats:
        """Average rate of each task into its rack, in bit/s (float64)."""

    @property
    def ingress_peak_bps(self) -> Floats:
        """Peak rate of each task into its rack, in bit/s (float64)."""

    @property
    def tolerant(self) -> Mask:
        """True for each task that may be moved (bool)."""

    @property
    def transfers(self) -> list[Ints]:
        """Transfers of all phases: sending task, receiving task, bytes and phase, each an array (int64)."""

    @property
    def matrix(self) -> Floats:
        """Bytes from each task to each, in all phases together: an array of tasks by tasks (float64)."""

    @property
    def apart(self) -> str | None:
        """Level at which the tasks are apart: `host`, `rack`, or None."""

    @property
    def goal(self) -> str:
        """Goal that comes first: `time` or `cost`."""

    @property
    def excluded(self) -> list[int]:
        """Hosts that the request excludes, by number; `View.eligible` knows all constraints."""

@final
class Scheduler:
    """A task policy without load information. Places one app at a time."""

    def __new__(cls, cluster: Cluster, policy: str, seed: int = 1) -> Scheduler:
        """Starts without running apps."""

    def place(self, number: int, job: int, app: str) -> list[str] | None:
        """Places an app (JSON or YAML) and marks it as running. None if it is refused."""

    def end(self, number: int) -> None:
        """Ends an app."""

@final
class EngineSession:
    """An engine with its own clock; see `leeward.Session`."""

    def __new__(
        cls,
        cluster: Cluster,
        replicas: str,
        tasks: str,
        seed: int = 1,
        explain: int = 0,
        settings: str = "{}",
        own_replicas: Callable[[int], Started] | None = None,
        own_tasks: Callable[[int], Started] | None = None,
    ) -> EngineSession:
        """Starts at time 0, without placements. `settings` of the ledger are JSON."""

    @property
    def now_s(self) -> float:
        """Current time of the session, in seconds from its start."""

    @property
    def interval_s(self) -> float:
        """Time between reports, in seconds."""

    @property
    def placements(self) -> int:
        """Number of placements that were not released."""

    def advance(self, now_s: float) -> None:
        """Moves the time forward."""

    def report(self, loads: Table, since_s: float | None = None, until_s: float | None = None) -> int:
        """Reports mean loads of links over a window, by default the interval after now.

        Columns: `link`, `load_bps` (null: unknown). The time moves to the end of the window. Returns the
        number of loads that did not count.
        """

    def set_host(self, host: str, up: bool | None = None, draining: bool | None = None) -> None:
        """Marks a host as up or down, or as draining or not."""

    def place_replicas(self, request: str) -> dict[str, Any]:
        """Places the copies of a block, with the fields of a request as JSON, and commits the decision."""

    def place_batch(
        self, sizes: Ints, writers: Ints, replicas: int = 3, fault_domains: int | None = None
    ) -> tuple[list[int], list[int], list[str]]:
        """Places blocks together: `sizes` in bytes, and writers by number, -1 for one outside the cluster.

        Returns the number of each placement, -1 for a refused block; a row of hosts for each; and the reasons
        of refusals.
        """

    def commit_replicas(self, request: str, hosts: list[str]) -> tuple[int, list[str | None]]:
        """Commits copies of a block on hosts that the caller chose.

        Returns their number, and for each host the reason for which a policy would refuse it, or None.
        """

    def place_tasks(self, app: Document | None, constraints: str) -> dict[str, Any]:
        """Places the tasks of an app with constraints as JSON, and commits the decision."""

    def commit_tasks(
        self, app: Document | None, constraints: str, hosts: list[str]
    ) -> tuple[int, str, list[tuple[str, str | None]]]:
        """Commits the tasks of an app on hosts that the caller chose, one for each task.

        Returns their number, the name of the app, and for each task its name and the reason for which a
        policy would refuse its host, or None.
        """

    def release(self, numbers: list[int], stored: bool = True) -> list[int]:
        """Ends placements: their traffic leaves the ledger, and tasks leave their hosts.

        With `stored` false, blocks are deleted. Returns the numbers that were not there.
        """

    def links(self) -> pyarrow.Table:
        """All links now, with their loads.

        Columns: `link`, `capacity_bps`, `load_bps` (null: unknown), `residual_bps`, `utilization` (null:
        unknown).
        """

@final
class Scenario:
    """A scenario file, read and validated: a cluster, workloads, events and policies."""

    @staticmethod
    def from_file(path: str | PathLike[str], data: str | PathLike[str] | None = None) -> Scenario:
        """Reads a scenario file; `data` is the folder for files named `data:...`."""

    @staticmethod
    def from_text(
        text: str,
        base: str | PathLike[str],
        data: str | PathLike[str] | None = None,
        name: str = "<text>",
        cluster: Cluster | None = None,
        tables: dict[str, pyarrow.Table] = ...,
    ) -> Scenario:
        """Reads a scenario from text; other files are looked up from the folder `base`.

        `cluster` takes the place of the cluster file. A workload reads the table `NAME` of `tables` by the
        file `table:NAME`.
        """

    def _parts(self) -> tuple[str, Path, Path | None, str, Cluster, dict[str, pyarrow.Table]]:
        """Arguments of `from_text` that make it again."""

    @property
    def text(self) -> str:
        """Text of its file; of a mapping, its JSON."""

    @property
    def name(self) -> str:
        """Display name."""

    @property
    def cluster(self) -> Cluster:
        """The cluster as its file describes it."""

    @property
    def policies(self) -> list[str]:
        """Policies that the scenario names; the others are compared with the first."""

    @property
    def seed(self) -> int:
        """Seed of all draws, unless a run has another."""

    @property
    def horizon_s(self) -> float:
        """Length of a run, in seconds."""

    @property
    def warmup_s(self) -> float:
        """Warm-up at the beginning, whose results do not count, in seconds."""

    @property
    def sample_s(self) -> float:
        """Length of the intervals over which link loads are recorded, in seconds."""

    @property
    def hot(self) -> float:
        """Utilization above which a link is hot."""

    @property
    def kind(self) -> str:
        """Kind of its runs: `replicas`, tasks of a `cell`, `apps` or `coflows`."""

    def run(
        self,
        policies: list[str],
        seeds: list[int],
        jobs: int = 1,
        progress: Callable[[int, float], object] | None = None,
        own: dict[str, Callable[[int], Started]] = ...,
    ) -> list[Run]:
        """Runs every policy under every seed, up to `jobs` at once; see `leeward.simulate`."""

@final
class Run:
    """Records of one run of a scenario. Times are seconds from its start."""

    @staticmethod
    def _restore(scenario: Scenario, policy: str, seed: int, provenance: list[str], record: bytes) -> Run:
        """A run of a pickle."""

    @property
    def scenario(self) -> Scenario:
        """The scenario."""

    @property
    def policy(self) -> str:
        """The policy, with its settings."""

    @property
    def seed(self) -> int:
        """The seed."""

    @property
    def hot(self) -> float:
        """Utilization above which a link is hot."""

    @property
    def kind(self) -> str:
        """Kind of the run: `replicas`, tasks of a `cell`, `apps` or `coflows`."""

    @property
    def warmup_s(self) -> float:
        """Warm-up at the beginning, whose results do not count, in seconds."""

    @property
    def sample_s(self) -> float:
        """Length of the intervals over which link loads were recorded, in seconds."""

    @property
    def provenance(self) -> list[str]:
        """Sources of the arrivals: a line for each workload."""

    def summary(self) -> dict[str, Any]:
        """The run in a few numbers: write times, imbalance, hot links, storage."""

    def compare(self, baseline: Run) -> dict[str, Any]:
        """Compares this run with another run on the same arrivals, write by write.

        Raises:
            InputError: The runs had different arrivals.
        """

    def blocks(self) -> pyarrow.Table:
        """A row for each block, in the order of requests."""

    def files(self) -> pyarrow.Table:
        """A row for each file, in order of start."""

    def jobs(self) -> pyarrow.Table:
        """A row for each job, in order of start."""

    def links(self) -> pyarrow.Table:
        """Mean load of each rack and pod link in each interval."""

    def balance(self) -> pyarrow.Table:
        """Imbalance of the links of each kind in each interval."""

    def hotspots(self) -> pyarrow.Table:
        """Hot periods: consecutive intervals in which a link was hot."""

    def hosts(self) -> pyarrow.Table:
        """Bytes on each host at the end."""

    def tasks(self) -> pyarrow.Table:
        """Tasks of a cell: arrival, placement, end, host, number of moves."""

    def moves(self) -> pyarrow.Table:
        """Moves of tasks, by time: both hosts, and the hot link that the task left."""

    def cell(self) -> pyarrow.Table:
        """A cell by interval: hot racks, utilization of uplinks, tasks scheduled and moved."""

    def reads(self) -> pyarrow.Table:
        """A row for each read of written data, in the order of requests."""

    def repairs(self) -> pyarrow.Table:
        """Repairs of blocks with lost copies, in order of start: sources, lost and new hosts, times."""

    def apps(self) -> pyarrow.Table:
        """Apps: arrival, placement, end, hosts, bytes sent, moves."""

    def coflows(self) -> pyarrow.Table:
        """Coflows, in order of arrival: width, bytes, lower bound, completion."""

    def migrations(self) -> pyarrow.Table:
        """Migrations of apps, by time: predicted times with and without the move, and its predicted cost."""

    def plot(self, baseline: Run | None = None) -> Pictures:
        """The pictures of the report, of this run or beside a baseline on the same arrivals."""

def read_capture(
    files: list[str],
    *,
    by: str,
    interval_s: int,
    mapping: str | None = None,
    cluster: Cluster | None = None,
    size: str = "frame",
    content: str = "auto",
    ports: list[int] = ...,
    sampling: int | None = None,
    counters: bool = False,
    direction: str = "both",
    tunnels: str = "outer",
    classes: Sequence[tuple[str, Sequence[str]]] | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[pyarrow.Table]: ...
def read_demand(path: str) -> list[list[int]]: ...
def check_demand(rows: Sequence[Sequence[float]]) -> list[list[int]]: ...
def schedule_circuits(
    demand: Sequence[Sequence[float]],
    network: tuple[str, str, str, str, str],
    scheduler: str,
    settings: str | None = None,
) -> dict[str, Any]: ...
def evaluate_circuits(
    demand: Sequence[Sequence[float]],
    network: tuple[str, str, str, str, str],
    days: Sequence[tuple[int, Sequence[tuple[int, int]]]],
    name: str,
) -> dict[str, Any]: ...
def read_days(path: str) -> list[tuple[int, list[tuple[int, int]]]]: ...
def check_policy(policy: str, kind: str) -> None: ...
def plug_ins() -> list[dict[str, Any]]: ...
def place_replicas(
    cluster: Cluster,
    policy: str,
    size: str,
    telemetry: str | PathLike[str] | Table | None = None,
    writer: str | None = None,
    replicas: int | None = None,
    coding: str | None = None,
    fault_domains: int | None = None,
    exclude: list[str] = ...,
    tags: list[str] = ...,
    collocate: list[str] = ...,
    max_imbalance: float | None = None,
    existing: list[str] = ...,
    prefer: list[str] = ...,
    storage: str | None = None,
    labels: dict[str, list[str]] = ...,
    seed: int = 1,
    explain: int = 0,
    clock: tuple[float, float] | None = None,
    own: Callable[[int], Started] | None = None,
) -> dict[str, Any]: ...
def app_file(path: str | PathLike[str], data: str | PathLike[str] | None) -> dict[str, Any]: ...
def place_tasks(
    cluster: Cluster,
    policy: str,
    app: Document | None = None,
    matrix: list[list[float]] | None = None,
    square: str | None = None,
    cpus: str | None = None,
    memory: str | None = None,
    data: str | PathLike[str] | None = None,
    telemetry: str | PathLike[str] | Table | None = None,
    cross_traffic: str | PathLike[str] | Table | None = None,
    exclude: list[str] = ...,
    tags: list[str] = ...,
    labels: dict[str, list[str]] = ...,
    apart: str | None = None,
    together: bool = True,
    seed: int = 1,
    explain: int = 0,
    clock: tuple[float, float] | None = None,
    own: Callable[[int], Started] | None = None,
) -> dict[str, Any]: ...
def reevaluate(
    cluster: Cluster,
    policy: str,
    app: Document | None,
    hosts: dict[str, str],
    remaining: list[list[list[float]]] | None = None,
    square: str | None = None,
    data: str | PathLike[str] | None = None,
    pause_s: float = 0.0,
    state: int | None = None,
    margin: float = 0.1,
    telemetry: str | PathLike[str] | Table | None = None,
    cross_traffic: str | PathLike[str] | Table | None = None,
    exclude: list[str] = ...,
    tags: list[str] = ...,
    labels: dict[str, list[str]] = ...,
    apart: str | None = None,
    seed: int = 1,
    clock: tuple[float, float] | None = None,
    own: Callable[[int], Started] | None = None,
) -> dict[str, Any]: ...
def migrate(
    cluster: Cluster,
    policy: str,
    running: Document,
    telemetry: str | PathLike[str] | Table,
    hot: float | None = None,
    seed: int = 1,
    clock: tuple[float, float] | None = None,
) -> dict[str, Any]: ...
def simulate_apps(
    cluster: Cluster,
    policy: str,
    apps: list[tuple[float, list[tuple[float, int]], list[tuple[int, int, int]]]],
    seed: int = 1,
    believed: Cluster | None = None,
) -> list[dict[str, Any]]: ...

_Train = tuple[int, int, int, str]
_Hosts = list[tuple[str, str]]
_Progress = Callable[[int, int], object] | None
_PathPair = tuple[tuple[int, int], tuple[int, int]]
"""Two paths, by hosts."""
_PairTraffic = tuple[_PathPair, list[int], list[int], list[int]]
"""Two paths, and bytes in each 10 ms: of the first transfer alone, of it during the second, of the second."""

def probe_listen(listen: str, secret: str | None, listening: Callable[[str], object]) -> None:
    """Takes part in measurements until the process ends; calls `listening` with the address."""

def probe_path(
    source: str, to: str, train: _Train, times: int, secret: str | None, progress: _Progress
) -> list[dict[str, Any]]:
    """Measures a path with trains, one after another."""

def probe_modelled(
    train: _Train, line_bps: float, rate_bps: float, bucket_bytes: float, queue_bytes: int
) -> dict[str, Any]:
    """Estimate from a train over a simulated link: a token bucket behind a queue."""

def probe_questions(hosts: int, pairs: int, seed: int) -> tuple[list[_PathPair], list[_PathPair]]:
    """Pairs of paths of a bottleneck survey: between four different hosts, and from one common host."""

def probe_earlier() -> float:
    """Seconds between the start of the first transfer and the start of the second."""

def probe_recognised(duration: str, four: list[_PairTraffic], one: list[_PairTraffic]) -> dict[str, Any]:
    """Result of a bottleneck survey for given transfers of one duration."""

def probe_stability(rates_bps: list[float], every_s: float, lags_s: list[float]) -> list[dict[str, Any]]:
    """Stability of rates that were measured at intervals, for each lag."""

def probe_mesh(
    hosts: _Hosts,
    train: _Train,
    at_once: int,
    hops: bool,
    bottlenecks: tuple[str, int, int] | None,
    shape: str | None,
    name: str,
    secret: str | None,
    progress: _Progress,
) -> dict[str, Any]:
    """Measures every path between hosts."""

def probe_hops(hosts: _Hosts, secret: str | None, progress: _Progress) -> dict[str, Any]:
    """Counts the hops between hosts and fits them to a tree."""

def probe_bottlenecks(
    hosts: _Hosts,
    duration: str,
    pairs: int,
    seed: int,
    hops: bool,
    secret: str | None,
    progress: _Progress,
) -> dict[str, Any]:
    """Searches for shared bottlenecks."""

def probe_calibrate(
    hosts: _Hosts,
    paths: int,
    train: _Train,
    bursts: list[int],
    packets: list[int],
    duration: str,
    secret: str | None,
    progress: _Progress,
) -> dict[str, Any]:
    """Compares trains with bulk transfers."""

def probe_cross(
    source: str,
    to: str,
    duration: str,
    path_rate: str | None,
    congestion: str | None,
    own: list[int],
    secret: str | None,
    progress: _Progress,
) -> dict[str, Any]:
    """Counts competing connections on a path."""

def probe_steady(
    source: str,
    to: str,
    train: _Train,
    every: str,
    times: int,
    lags: list[str],
    secret: str | None,
    progress: _Progress,
) -> dict[str, Any]:
    """Measures a path repeatedly."""

def run_agent(arguments: str, tell: Callable[[str], object]) -> None: ...
def enforce_net(arguments: str, tell: Callable[[str], object]) -> dict[str, Any] | None: ...
def enforce_nfs(arguments: str, log: Callable[[str], object], report: Callable[[str], object]) -> None: ...
def replay_nfs(trace: Trace, arguments: str, progress: Callable[[float], object]) -> dict[str, Any]:
    """Replays a trace as calls of an NFS client, and returns a summary. See `leeward traces replay`.

    Raises:
        InputError: The trace or an argument is invalid, or the server does not have the export.
        OSError: The server closed the connection, or is too slow for the trace by far.
    """

def remove_nfs_file(arguments: str) -> None:
    """Removes the file of a replay from its export. A file that has gone already is no error.

    Raises:
        InputError: An argument is invalid, or the server does not have the export or keeps the file.
    """

def check_service(given: dict[str, str | int | None]) -> None: ...
def serve(
    given: dict[str, str | int | None],
    listening: Callable[[str, str | None], object],
    demo: bool = False,
    clock: SimulatedClock | None = None,
) -> None: ...

@final
class SimulatedClock:
    """Clock of a service, which shows the same time until it is advanced."""

    def __new__(cls, start: str) -> SimulatedClock:
        """Starts at a time such as `2026-03-02T00:00:00Z`.

        Raises:
            InputError: Invalid time, or before 2020.
        """

    def advance(self, seconds: float) -> None:
        """Advances by a time of at most a year.

        Raises:
            InputError: Invalid number of seconds.
        """

    def now(self) -> str:
        """Current time."""

def new_token(name: str, role: str, hosts: list[str], file: str | None) -> tuple[str, str]: ...
def simulate_flows(cluster: Cluster, flows: Table) -> pyarrow.Table: ...
def schemas() -> list[str]: ...
def schema(kind: str) -> str: ...
def rate_text(bps: int) -> str: ...
def bytes_text(bytes: int) -> str: ...  # noqa: A002 (the name in the module)
def seconds(text: str) -> float: ...

@final
class OperationsScenario:
    """A scenario of operations, read and validated. See `leeward.operations`."""

    @staticmethod
    def from_file(path: str) -> OperationsScenario:
        """Reads and checks a scenario file."""

    @staticmethod
    def from_text(
        text: str, base: str | PathLike[str], name: str = "<text>", cluster: Cluster | None = None
    ) -> OperationsScenario:
        """Reads a scenario from text; the file of its cluster is looked up from the folder `base`.

        `cluster` takes the place of the cluster of the text.
        """

    @property
    def name(self) -> str:
        """Name of the scenario."""

    @property
    def cluster(self) -> Cluster:
        """The cluster."""

    @property
    def classes(self) -> list[str]:
        """Names of the classes of service."""

    @property
    def horizon_s(self) -> float:
        """Length of the run, in seconds."""

    @property
    def sample_s(self) -> float:
        """Length of a window of telemetry, in seconds."""

    def run(self, progress: Callable[[float], object] | None = None) -> OperationsRun:
        """Runs the scenario; calls `progress` with the completed share of the horizon."""

@final
class OperationsRun:
    """Records of a run of operations. Times are seconds from its start."""

    @property
    def cluster(self) -> Cluster:
        """The cluster of the scenario."""

    @property
    def classes(self) -> list[str]:
        """Names of the classes of service."""

    @property
    def sample_s(self) -> float:
        """Length of a window of telemetry, in seconds."""

    def totals(self) -> dict[str, Any]:
        """Numbers of packets, segments and timeouts of the whole run, and of recorded operations and jobs."""

    def operations(self) -> pyarrow.Table:
        """Operations, in the order of their end."""

    def jobs(self) -> pyarrow.Table:
        """Jobs, in the order of their end."""

    def workers(self) -> pyarrow.Table:
        """Workers of stages, in the order of their end."""

    def links(self) -> pyarrow.Table:
        """Traffic of the links of racks and pods, by window and class of service."""

@final
class PacketScenario:
    """A scenario of the packet simulator, read and validated. See `leeward.packets`."""

    @staticmethod
    def from_file(path: str) -> PacketScenario:
        """Reads and checks a scenario file."""

    @staticmethod
    def from_text(
        text: str,
        name: str = "<text>",
        scheduler: tuple[
            str,
            Callable[
                [list[list[int]], tuple[str, str, str, str, str]], list[tuple[int, list[tuple[int, int]]]]
            ],
        ]
        | None = None,
    ) -> PacketScenario:
        """`scheduler(rows, network)` computes the days of circuits and replaces the scheduler in the text."""

    @property
    def racks(self) -> int:
        """Number of racks."""

    @property
    def hosts_per_rack(self) -> int:
        """Number of hosts of each rack."""

    @property
    def horizon_s(self) -> float:
        """Maximum length of a run, in seconds."""

    @property
    def sampled(self) -> list[tuple[int, int]]:
        """Observed pairs of racks, as (source, destination)."""

    def run(self, progress: Callable[[float], object] | None = None) -> PacketRun:
        """Runs the scenario; calls `progress` with the completed share of the horizon."""

@final
class PacketRun:
    """Records of a run of the packet simulator. Times are seconds from its start."""

    def totals(self) -> dict[str, Any]:
        """End of the run, number of finished flows, and packets and bytes by outcome."""

    def flows(self) -> pyarrow.Table:
        """Flows, by number."""

    def trains(self) -> pyarrow.Table:
        """Trains of packets, by number, and the estimate of the probe for each."""

    def copies(self) -> pyarrow.Table:
        """Copies of blocks outside the writers' hosts, by block and by position in its chain."""

    def days(self) -> pyarrow.Table:
        """Days of circuits, ordered by their end."""

    def samples(self) -> pyarrow.Table:
        """Queue lengths, and bytes that have arrived in order, at the sample times."""

    def latencies(self) -> pyarrow.Table:
        """Number of data packets, by time in the switch and by path."""

    def latency(self, path: str, share: float) -> float | None:
        """Time in the switch that a share of a path's packets does not exceed; None without packets."""

    def utilization(self, source: int, destination: int, since_s: float = 0.0) -> float | None:
        """Share of a circuit's days during which the circuit sent data; None if it has no day."""

def run_lab(
    scenario: PacketScenario,
    dilation: int,
    bound_s: float | None,
    parts: str | None = None,
    progress: Callable[[float], object] | None = None,
) -> tuple[PacketRun, dict[str, Any]]:
    """Runs a scenario in a lab of this process; returns the records, and timing, counters and notes.

    `parts` is the folder of the lab's parts in C. See `leeward.lab.run`.
    """

@final
class LabNetwork:
    """The network of a cluster file that this process brought up. See `leeward.lab.up`."""

    def __new__(
        cls,
        cluster: Cluster,
        name: str | None,
        scale: int,
        queue: int | None,
        burst: int | None,
        disk_size: int | None,
        progress: Callable[[float], object] | None,
    ) -> LabNetwork:
        """Brings up the network of a cluster; stops for a signal of Python."""

    def values(self) -> dict[str, Any]:
        """Name of the lab, its machines and its notes, as values of JSON."""

    def limit(self, link: str, rate_bps: int, queue: int | None, burst: int | None) -> None:
        """Changes the rate of one direction of a link; sizes are in bytes."""

    def keep(self) -> None:
        """Leaves the lab up when this process ends."""

    def down(self) -> None:
        """Removes the lab."""

def stand_lab(
    scenario: PacketScenario,
    name: str,
    dilation: int,
    parts: str,
    ready: Callable[[dict[str, Any]], object],
    progress: Callable[[float], object] | None,
) -> None:
    """Keeps a lab of a scenario up in this process until a signal raises. See `leeward.lab.stand`."""

def lab_view(name: str) -> str | None:
    """Latest view of a lab that is up, as JSON; None if it has no circuits. See `leeward.lab.view`."""

def lab_machines(name: str) -> list[dict[str, Any]]:
    """Machines of a lab that is up. See `leeward.lab.machines`."""

def lab_prefix(name: str, machine: str) -> list[str]:
    """Program and arguments that run what follows at a machine. See `leeward.lab.command_prefix`."""

def labs() -> list[dict[str, Any]]:
    """Labs with a state file. See `leeward.lab.labs`."""

def lab_failures() -> list[dict[str, Any]]:
    """Errors that ended labs. See `leeward.lab.failures`."""

def record_lab_failure(name: str, text: str) -> None:
    """Records the error that ended a lab. See `leeward.lab.stand`."""

def remove_lab(name: str) -> None:
    """Removes everything that a lab made, unless a process owns it that runs."""

@final
class Trace:
    """Requests in a file, which each method reads again. See `leeward.traces.open_trace`."""

    def __new__(
        cls,
        file: str,
        *,
        data: str | PathLike[str] | None = None,
        dialect: str | None = None,
        event: str | None = None,
        volume: str | None = None,
        largest: str | None = None,
        sort: bool = False,
        device: str | None = None,
        seek_s: float | None = None,
        overhead: float | None = None,
        payload: float | None = None,
        other: float | None = None,
    ) -> Trace:
        """Checks the settings and reads the device file.

        Raises:
            InputError: A setting or the device file is invalid.
        """

    def statistics(self, window_s: float = 1.0, percentile: float | None = None) -> dict[str, Any]:
        """The trace in numbers, as `leeward slo curve -o json` prints it.

        Args:
            window_s: Window over which peaks are taken.
            percentile: Percentile, in percent, of the largest profiled latency without queueing.

        Raises:
            InputError: The trace is invalid, or the profile does not reach the percentile.
        """

    def curve(
        self,
        stage: str,
        *,
        prune: int | None = None,
        error: float | None = None,
        margin: float = 0.0,
        multiple: float = 1.5,
        deadline_s: float | None = None,
    ) -> dict[str, Any]:
        """The r-b curve at a stage, as `leeward slo curve -o json` prints it.

        Args:
            stage: `network-in`, `storage` (with a device) or `network-out`.
            prune: Largest number of buckets.
            error: Largest excess over the curve, as a share; the result has the fewest buckets within it.
            margin: Share added to the work of each request, such as 0.1.
            multiple: Multiple of the mean rate for which the burst is computed.
            deadline_s: Deadline for which the effective bandwidth is computed.

        Raises:
            InputError: The trace or an argument is invalid.
        """

    def model(
        self,
        stage: str,
        *,
        interval_s: float | None = None,
        step_s: float | None = None,
        batch_s: float | None = None,
        states: int | None = None,
        deviations: float | None = None,
        sizes: str | None = None,
        published: bool = False,
    ) -> dict[str, Any]:
        """A Markov-modulated arrival process fitted to a stage, as `leeward slo model -o json` prints it.

        Raises:
            InputError: The trace or an argument is invalid.
        """

@final
class SloWorkloads:
    """Workloads of a file on a cluster. See `leeward.slo.Workloads`."""

    def __new__(cls, file: str, cluster: Cluster, *, data: str | PathLike[str] | None = None) -> SloWorkloads:
        """Reads the file and the files that it names.

        Raises:
            InputError: A file is invalid.
        """

    def bound(self, method: str) -> dict[str, Any]:
        """Latency bound of every workload."""

    def prioritize(self, by: str, levels: int | None, method: str) -> dict[str, Any]:
        """Latency bounds under priorities from a search (`search`) or from the order of SLOs (`by-slo`)."""

    def admit(self, arriving: str, method: str) -> dict[str, Any]:
        """Decides whether the workloads of another file can be admitted in addition to the existing ones."""

def check_slo(
    file: str,
    cluster: Cluster,
    *,
    data: str | PathLike[str] | None = None,
    method: str = "best",
    over: str | None = None,
    order: str | None = None,
    tails: bool | None = None,
    seed: int | None = None,
    start: str | None = None,
    caps: Mapping[str, int | tuple[int, int] | None] | None = None,
    closed: Mapping[str, int] | None = None,
    rows: bool = False,
) -> tuple[dict[str, Any], Any]:
    """Bounds and a replay of the traces of a file's workloads. See `leeward.slo.check`.

    `caps` has `read_bytes` and `write_bytes` (0 for no cap), `behind` (requests and bytes) and `write_batch`
    (bytes, 0 for none, and gap); None leaves a cap to the device files.
    """

def pack_slo(
    file: str,
    cluster: Cluster,
    *,
    data: str | PathLike[str] | None = None,
    limits: str = "compactor",
    settings: str = "",
    fast: bool = False,
    servers_by: str = "first",
    method: str = "best",
    margin: float | None = None,
    error: float = 0.0,
    threads: int = 1,
    again: bool = False,
    progress: Callable[[int], None] | None = None,
    text: str | None = None,
) -> dict[str, Any]:
    """Servers, priorities and limits for a file's workloads. See `leeward.slo.pack`."""

def file_text(file: str) -> str:
    """Text of a file of workloads. See `leeward.slo.text_of`."""

def check_device(name: str, text: str) -> None:
    """Validates the text of a device file; `name` stands for the file in errors.

    Raises:
        InputError: The text is invalid.
    """

def byte_count(text: str) -> int:
    """Parses a size such as `64KiB` to bytes.

    Raises:
        InputError: The text is invalid.
    """

@final
class VolumeExperiment:
    """Experiments on workloads drawn from traces of one device; see `leeward_reproduce.slo`.

    A draw is (trace, start as a share of its length, SLO in seconds). Requests are JSON.
    """

    def __new__(cls, files: list[str], device: str, threads: int = 1, made: str = "") -> VolumeExperiment:
        """Reads traces and a device file, and computes curves of each trace and its halves.

        Args:
            files: Paths of the traces.
            device: Path of the device file.
            threads: Number of threads that compute curves.
            made: Settings as JSON: `published`, true to fit models as in the released code.

        Raises:
            InputError: A file cannot be read, or a trace or a half of one has fewer than two requests.
        """

    @staticmethod
    def cache(request: str, device: str, threads: int = 1, made: str = "") -> VolumeExperiment:
        """Traces of lookups in a cache, drawn as the thesis describes its own traces.

        Args:
            request: Settings as JSON: `seed`, `count`, `seconds`, `small` and `size`; the first `small`
                traces have requests of this size.
            device: Path of the device file.
            threads: Number of threads that compute curves.
            made: Settings as for files.

        Raises:
            InputError: The settings or the device are invalid.
        """

    def __len__(self) -> int: ...
    def payload(self, trace: int, part: str) -> float:
        """Bytes of a part of a trace: `whole`, `first` or `second`."""

    def fits_alone(self, slo: float, request: str) -> list[bool]:
        """True for each trace that fits on a server when it is alone there."""

    def pack(
        self, draws: list[tuple[int, float, float]], request: str, steps: list[tuple[int, bool]] | None = None
    ) -> dict[str, Any]:
        """Packs draws in order, or adds and removes them by `steps`; on request, replays the packed draws."""

    def first_fit(self, draws: list[tuple[int, float, float]], request: str) -> dict[str, Any]:
        """Puts each draw on the first server where an admission policy accepts it and all SLOs hold."""

    def admit(
        self, draws: list[tuple[int, float, float]], links: list[tuple[int, int]], request: str
    ) -> dict[str, Any]:
        """Requests admission of draws in order, each on its client and server; replays the admitted ones."""

    def tails(self, draws: list[tuple[int, float, float]], request: str) -> dict[str, float | None]:
        """Bounds in seconds by each analysis, for the last of several draws on one path."""

    def bounds(
        self, draws: list[tuple[int, float, float]], links: list[tuple[int, int]], request: str
    ) -> list[float | None]:
        """Bound of every draw, each on its client and server, in seconds."""

    def peaks(self, draws: list[tuple[int, float, float]], part: str, window_s: float) -> dict[str, Any]:
        """Peaks and means of draws over windows: of each draw (`each`), and of all draws together (`all`)."""

    def gaps(self, trace: int, window_s: float) -> dict[str, float]:
        """Statistics of the gaps between the requests of a trace.

        Returns:
            `requests` (their number), `c2` (variance over squared mean), `correlation` (of a gap with the
            next one), `dispersion` (variance over mean of the number of requests in windows) and `median`
            (over the mean).
        """

def draw_workloads(
    seed: int, count: int, from_: list[tuple[int, float]], /
) -> list[tuple[int, float, float]]:
    """Draws `count` workloads, each from `from_` (trace, SLO) with replacement and a random start."""

def draw_links(seed: int, count: int, clients: int, servers: int) -> list[tuple[int, int]]:
    """Draws a client and a server for each workload."""

def draw_visits(seed: int, count: int, stay: float) -> list[tuple[int, bool]]:
    """Draws arrivals and departures in order: each has a workload, and true for an arrival."""

def published_workloads() -> dict[str, dict[str, Any]]:
    """The open-loop workloads of SLO table 3.1, by their letters.

    Each has `storage_load` (share of the disk; None for data in memory), `network_load` (share of the
    network) and `gap_c2` (C^2 of the gaps between requests). For workload E, the table only says that the
    load on the disk exceeds the capacity.
    """

def simulate_contention(seed: int, request: str) -> dict[str, list[dict[str, Any]]]:
    """Results of workloads, drawn by load and burstiness or recorded, under each requested scheduler.

    Raises:
        InputError: The request is invalid.
    """
