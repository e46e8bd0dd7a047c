//! `View`: the network as a policy may see it, for the duration of a call, with a private what-if.

use std::array::from_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leeward_fabric::input::InputError;
use leeward_fabric::{Bytes, Endpoint, Fabric, HostId, Nanos};
use leeward_ledger::{Checkpoint, Demand, Entry, Fade, Owner, OwnerKind, Sign};
use leeward_placement::{Context, replicas, tasks};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::errors::PyInputError;
use crate::names;
use crate::policy::answer::{self, Unreadable};
use crate::policy::lent::Lent;
use crate::policy::numbers::{Constant, Number};
use crate::policy::request::Requested;
use crate::policy::values::Values;

/// Most entries in the what-if of a view: their rates add up within 64 bits.
const MOST_ENTRIES: usize = 30_000;
/// Most bytes of a flow in a what-if.
const MOST_BYTES: u64 = 1 << 62;
/// Highest rate in a what-if, in bit/s.
const MOST_RATE: f64 = 1e15;

/// Properties of a cluster as Python objects, each made at its first use.
pub struct Constants {
    fabric: Arc<Fabric>,
    made: [PyOnceLock<Py<PyAny>>; Constant::COUNT],
}

impl Constants {
    pub fn new(fabric: Arc<Fabric>) -> Constants {
        Constants { fabric, made: from_fn(|_| PyOnceLock::new()) }
    }

    pub fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }
}

/// The network as a policy may see it.
#[pyclass(frozen, module = "leeward.policy")]
pub struct View {
    lent: Arc<Lent>,
    constants: Arc<Constants>,
    /// Arrays that this call has read, until the what-if changes.
    read: Mutex<Vec<(Number, Py<PyAny>)>>,
    trial: Mutex<Trial>,
}

/// The what-if: the number of its entries, and its states to return to.
#[derive(Default)]
struct Trial {
    entries: usize,
    checkpoints: Vec<(Checkpoint, usize)>,
}

impl View {
    pub fn new(lent: Arc<Lent>, constants: Arc<Constants>) -> View {
        View { lent, constants, read: Mutex::default(), trial: Mutex::default() }
    }

    /// Calls `read` with the context of the decision.
    fn with<R>(&self, read: impl FnOnce(&mut Context<'_, '_>) -> R) -> PyResult<R> {
        self.lent.with(read).ok_or_else(|| {
            PyRuntimeError::new_err("the view ended with its call; keep arrays, or copy them, for later")
        })
    }

    fn constant(&self, py: Python<'_>, constant: Constant) -> PyResult<Py<PyAny>> {
        self.with(|_| ())?;
        let make = || constant.read(&self.constants.fabric).into_python(py);
        Ok(self.constants.made[constant as usize].get_or_try_init(py, make)?.clone_ref(py))
    }

    fn number(&self, py: Python<'_>, number: Number) -> PyResult<Py<PyAny>> {
        let known =
            lock(&self.read).iter().find(|(read, _)| *read == number).map(|(_, array)| array.clone_ref(py));
        if let Some(array) = known {
            // An array stays valid after the call; the view does not.
            return self.with(|_| array);
        }
        let array = self.with(|context| number.read(context))?.into_python(py)?;
        lock(&self.read).push((number, array.clone_ref(py)));
        Ok(array)
    }

    /// Changes the what-if by entries that `make` returns, or not at all.
    fn change(&self, make: impl FnOnce(&mut Context<'_, '_>) -> Result<Vec<Entry>, String>) -> PyResult<()> {
        let mut trial = lock(&self.trial);
        let changed = self.with(|context| {
            let entries = make(context)?;
            if trial.entries.saturating_add(entries.len()) > MOST_ENTRIES {
                return Err(format!("a what-if has at most {MOST_ENTRIES} transfers and streams"));
            }
            trial.entries += entries.len();
            entries.iter().for_each(|entry| context.view.add(entry));
            Ok(())
        })?;
        drop(trial);
        lock(&self.read).clear();
        changed.map_err(|message| PyInputError(InputError::new("what-if", message)).into())
    }

    /// Host, rack or pod of a number or a name.
    fn place(&self, place: &Bound<'_, PyAny>) -> PyResult<Endpoint> {
        let fabric = &self.constants.fabric;
        let invalid = |message: String| PyErr::from(PyInputError(InputError::new("what-if", message)));
        if let Ok(name) = place.extract::<String>() {
            return names::endpoint(fabric, &name).ok_or_else(|| invalid(fabric.no_place(&name)));
        }
        let number: i64 = place.extract()?;
        let host = u32::try_from(number).ok().map(HostId).filter(|host| host.index() < fabric.host_count());
        let last = fabric.host_count().saturating_sub(1);
        host.map(Endpoint::Host).ok_or_else(|| invalid(format!("{number}: expected a host from 0 to {last}")))
    }

    /// Entry of a transfer or a stream between two places.
    fn entry(fabric: &Fabric, ends: [Endpoint; 2], demand: Demand, now: Nanos) -> Entry {
        let mut hops = Vec::new();
        fabric.path(&ends, &mut hops);
        let owner = Owner { kind: OwnerKind::Job, id: u64::MAX };
        Entry { owner, hops, demand, sign: Sign::Adds, fade: Fade::WithEstimator, starts: Some(now) }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl View {
    /// Time of the decision, in seconds since the start of the run.
    #[getter]
    fn now_s(&self) -> PyResult<f64> {
        self.with(|context| context.view.now().as_secs_f64())
    }

    /// Time between reports of telemetry, in seconds.
    #[getter]
    fn interval_s(&self) -> PyResult<f64> {
        self.with(|context| context.view.interval().as_secs_f64())
    }

    /// Utilization above which a link is hot.
    #[getter]
    fn hot_above(&self) -> PyResult<f64> {
        self.with(|context| context.view.hot_above())
    }

    /// Numbers of all hosts, from 0 (int32).
    #[getter]
    fn hosts(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.constant(py, Constant::Hosts)
    }

    /// Numbers of all racks, from 0 (int32).
    #[getter]
    fn racks(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.constant(py, Constant::Racks)
    }

    /// Numbers of all links, from 0 (int32).
    #[getter]
    fn links(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.constant(py, Constant::Links)
    }

    /// Rack of each host (int32).
    #[getter]
    fn rack_of(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.constant(py, Constant::RackOf)
    }

    /// Pod of each rack, from 0; -1 in a cluster without pods (int32).
    #[getter]
    fn pod_of(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.constant(py, Constant::PodOf)
    }

    /// Fault domain of each host (int32).
    #[getter]
    fn fault_domain_of(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.constant(py, Constant::FaultDomainOf)
    }

    /// Name of each host.
    #[getter]
    fn host_names(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.constant(py, Constant::HostNames)
    }

    /// Name of each rack.
    #[getter]
    fn rack_names(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.constant(py, Constant::RackNames)
    }

    /// Name of each link.
    #[getter]
    fn link_names(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.constant(py, Constant::LinkNames)
    }

    /// Kind of each link, as in `Cluster.resources`.
    #[getter]
    fn link_kinds(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.constant(py, Constant::LinkKinds)
    }

    /// Link into each host; -1 on a pipe mesh (int32).
    #[getter]
    fn ingress(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.constant(py, Constant::Ingress)
    }

    /// Link out of each host; -1 on a pipe mesh (int32).
    #[getter]
    fn egress(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.constant(py, Constant::Egress)
    }

    /// Link into each rack; -1 on a mesh (int32).
    #[getter]
    fn downlink(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.constant(py, Constant::Downlink)
    }

    /// Link out of each rack; -1 on a mesh (int32).
    #[getter]
    fn uplink(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.constant(py, Constant::Uplink)
    }

    /// True for each host that is up, not draining and not full (bool).
    #[getter]
    fn is_open(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::IsOpen)
    }

    /// Free storage of each host, in bytes; infinite without a limit (float64).
    #[getter]
    fn free_bytes(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::FreeBytes)
    }

    /// Bytes stored on each host (float64).
    #[getter]
    fn stored_bytes(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::StoredBytes)
    }

    /// Free processors of each host; infinite without a limit (float64).
    #[getter]
    fn free_cpus(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::FreeCpus)
    }

    /// Free memory of each host, in bytes; infinite without a limit (float64).
    #[getter]
    fn free_memory_bytes(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::FreeMemory)
    }

    /// Rate that the least busy disk of each host can still write, in bit/s (float64). Infinite without disks, NaN if no
    /// disk has a known load.
    #[getter]
    fn disk_residual(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::DiskResidual)
    }

    /// Rate left on the way from the core into each host, in bit/s: the least of its links (float64). Zero where a load
    /// is unknown, NaN on a pipe mesh.
    #[getter]
    fn residual_in(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::ResidualIn)
    }

    /// Rate left on the way from each host to the core, in bit/s, as `residual_in` (float64).
    #[getter]
    fn residual_out(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::ResidualOut)
    }

    /// Greatest utilization on the way from the core into each host (float64). NaN where a load is unknown.
    #[getter]
    fn utilization_in(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::UtilizationIn)
    }

    /// Greatest utilization on the way from each host to the core, as `utilization_in` (float64).
    #[getter]
    fn utilization_out(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::UtilizationOut)
    }

    /// Rate left on the link into each rack, in bit/s (float64). Zero where the load is unknown, NaN on a mesh.
    #[getter]
    fn rack_residual_in(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::RackResidualIn)
    }

    /// Rate left on the link out of each rack, in bit/s, as `rack_residual_in` (float64).
    #[getter]
    fn rack_residual_out(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::RackResidualOut)
    }

    /// Utilization of the link into each rack (float64). NaN where the load is unknown, and on a mesh.
    #[getter]
    fn rack_utilization_in(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::RackUtilizationIn)
    }

    /// Utilization of the link out of each rack, as `rack_utilization_in` (float64).
    #[getter]
    fn rack_utilization_out(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::RackUtilizationOut)
    }

    /// Capacity of each link that the ledger assumes, in bit/s (float64).
    #[getter]
    fn link_capacity(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::LinkCapacity)
    }

    /// Measured load of each link, in bit/s; NaN where it is unknown (float64).
    #[getter]
    fn link_measured(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::LinkMeasured)
    }

    /// Load of each link, measured and placed, in bit/s (float64). Placed load counts until telemetry shows it. NaN where
    /// the load is unknown.
    #[getter]
    fn link_load(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::LinkLoad)
    }

    /// Rate left on each link for best-effort work, in bit/s; zero where the load is unknown (float64).
    #[getter]
    fn link_residual(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::LinkResidual)
    }

    /// Load of each link over its capacity; NaN where the load is unknown (float64).
    #[getter]
    fn link_utilization(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::LinkUtilization)
    }

    /// Capacity that Sinbad's estimator expects on each link, in bit/s (float64). NaN where the load is unknown.
    #[getter]
    fn link_expected(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::LinkExpected)
    }

    /// Rate that one more flow would get on each link, in bit/s (float64; Choreo section 3.2).
    #[getter]
    fn link_share(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::LinkShare)
    }

    /// True for each link that was hot in its last windows (bool).
    #[getter]
    fn link_hot(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.number(py, Number::LinkHot)
    }

    /// True for each host that the constraints of a request allow (bool). For an app, the constraints on one of its tasks
    /// count.
    #[pyo3(signature = (request, task = 0))]
    fn eligible(&self, py: Python<'_>, request: &Bound<'_, PyAny>, task: u32) -> PyResult<Py<PyAny>> {
        let hosts = match Requested::of(request)? {
            Requested::Block(block) => {
                self.with(|context| replicas::eligible(context.pool, &block.request))?
            }
            Requested::App(app) if task as usize >= app.request.tasks.len() => {
                let message = format!("{task}: the request has {} tasks", app.request.tasks.len());
                return Err(PyInputError(InputError::new("task", message)).into());
            }
            Requested::App(app) => self.with(|context| tasks::eligible(context.pool, &app.request, task))?,
        };
        Values::Flags(hosts).into_python(py)
    }

    /// Numbers of the links on the way between two hosts, racks or pods.
    fn path(&self, source: &Bound<'_, PyAny>, destination: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
        let ends = [self.place(source)?, self.place(destination)?];
        let mut hops = Vec::new();
        self.constants.fabric.path(&ends, &mut hops);
        self.with(|_| hops.iter().map(|hop| hop.resource.0).collect())
    }

    /// Adds the traffic of a request, placed on these hosts, to the what-if.
    fn add(&self, request: &Bound<'_, PyAny>, hosts: &Bound<'_, PyAny>) -> PyResult<()> {
        let hosts =
            answer::read_hosts(hosts, &self.constants.fabric).map_err(|unreadable| match unreadable {
                Unreadable::Raised(error) => error,
                Unreadable::Form(message) => PyInputError(InputError::new("hosts", message)).into(),
            })?;
        let request = Requested::of(request)?;
        self.change(|context| {
            let (fabric, now) = (context.view.fabric(), context.view.now());
            let needed = match request {
                Requested::Block(_) => hosts.len().max(1),
                Requested::App(app) => app.request.tasks.len(),
            };
            if hosts.len() != needed {
                return Err(format!("{} hosts: expected {needed}", hosts.len()));
            }
            Ok(match request {
                Requested::Block(block) => replicas::traffic(fabric, &block.request, &hosts, now),
                Requested::App(app) => tasks::traffic(fabric, &app.request, &hosts, now),
            })
        })
    }

    /// Adds flows between two hosts, racks or pods to the what-if, of this number of bytes together.
    #[pyo3(signature = (source, destination, size_bytes, flows = 1))]
    fn add_flow(
        &self,
        source: &Bound<'_, PyAny>,
        destination: &Bound<'_, PyAny>,
        size_bytes: u64,
        flows: u16,
    ) -> PyResult<()> {
        let ends = [self.place(source)?, self.place(destination)?];
        self.change(|context| {
            if size_bytes > MOST_BYTES {
                return Err(format!("{size_bytes} bytes: expected at most 2^62"));
            }
            let demand = Demand::Elastic { bytes: Bytes(size_bytes), flows: u32::from(flows), cap_bps: None };
            Ok(vec![View::entry(context.view.fabric(), ends, demand, context.view.now())])
        })
    }

    /// Adds a stream between two hosts, racks or pods to the what-if, at a rate in bit/s.
    fn add_rate(
        &self,
        source: &Bound<'_, PyAny>,
        destination: &Bound<'_, PyAny>,
        rate_bps: f64,
    ) -> PyResult<()> {
        let ends = [self.place(source)?, self.place(destination)?];
        self.change(|context| {
            if !(0.0..=MOST_RATE).contains(&rate_bps) {
                return Err(format!("{rate_bps} bit/s: expected a rate from 0 to {MOST_RATE:e}"));
            }
            let rate = rate_bps.round() as u64;
            let demand = Demand::Stream { mean_bps: rate, peak_bps: rate };
            Ok(vec![View::entry(context.view.fabric(), ends, demand, context.view.now())])
        })
    }

    /// Takes the committed load of a request out of the what-if.
    fn without(&self, request: &Bound<'_, PyAny>) -> PyResult<()> {
        let owner = Requested::of(request)?.owner();
        self.with(|context| context.view.without(&owner))?;
        lock(&self.read).clear();
        Ok(())
    }

    /// A number for the current state of the what-if, for `rollback`.
    fn checkpoint(&self) -> PyResult<usize> {
        let mut trial = lock(&self.trial);
        let checkpoint = self.with(|context| context.view.checkpoint())?;
        let entries = trial.entries;
        trial.checkpoints.push((checkpoint, entries));
        Ok(trial.checkpoints.len() - 1)
    }

    /// Returns the what-if to a state; later states no longer exist.
    fn rollback(&self, checkpoint: usize) -> PyResult<()> {
        let mut trial = lock(&self.trial);
        let Some(&(state, entries)) = trial.checkpoints.get(checkpoint) else {
            let message = format!("{checkpoint}: no such state of the what-if");
            return Err(PyInputError(InputError::new("checkpoint", message)).into());
        };
        self.with(|context| context.view.rollback(state))?;
        trial.checkpoints.truncate(checkpoint + 1);
        trial.entries = entries;
        lock(&self.read).clear();
        Ok(())
    }

    fn __repr__(&self) -> String {
        let state = match self.lent.with(|context| context.view.now()) {
            Some(now) => format!("at {now}"),
            None => "ended".to_owned(),
        };
        let (hosts, links) = (self.constants.fabric.host_count(), self.constants.fabric.link_count());
        format!("<View of {hosts} hosts and {links} links, {state}>")
    }
}
