//! `simulate_flows`: a table of flows in the fluid simulator, and the completion time of each.

use std::sync::Arc;

use arrow_array::{Float64Array, RecordBatch};
use arrow_pyarrow::{PyArrowType, Table};
use leeward_fabric::Hop;
use leeward_fabric::input::InputError;
use leeward_fluid::{Finished, FluidError, Network};
use pyo3::prelude::*;

use crate::arrow_table::{batches, table};
use crate::cluster::Cluster;
use crate::errors::PyInputError;
use crate::flows::Flows;

/// Number of steps between two checks for a user's interrupt.
const STEPS: usize = 8192;

/// Completion time of each flow, in the order of the table's rows. Other Python threads can run during the simulation.
#[pyfunction]
pub fn simulate_flows(
    py: Python<'_>,
    cluster: &Bound<'_, Cluster>,
    flows: &Bound<'_, PyAny>,
) -> PyResult<PyArrowType<Table>> {
    let cluster = &cluster.get().inner;
    let table_of_flows = batches(flows)?;
    let mut simulation = py.detach(|| Simulation::new(cluster, &table_of_flows)).map_err(PyInputError)?;
    while py.detach(|| simulation.run(STEPS)).map_err(PyInputError)? {
        py.check_signals()?;
    }
    table([
        ("t_finish_s", Arc::new(Float64Array::from(simulation.finish))),
        ("fct_s", Arc::new(Float64Array::from(simulation.duration))),
    ])
}

/// A simulation of a table of flows.
struct Simulation<'a> {
    cluster: &'a leeward_fabric::Cluster,
    /// Batches, each with the table row of its first row.
    batches: Vec<(usize, Flows)>,
    /// Rows by arrival, simultaneous arrivals in table order; `None` if the table is already in this order.
    order: Option<Vec<usize>>,
    /// Number of flows that have arrived.
    arrived: usize,
    /// Arrival of the first flow, which is time 0 of the network. Without this origin, times in seconds since 1970
    /// would cost the network's clock seven digits of precision.
    origin: f64,
    network: Network,
    /// Row and arrival of each flow in the network.
    active: Vec<(usize, f64)>,
    finished: Vec<Finished>,
    hops: Vec<Hop>,
    finish: Vec<f64>,
    duration: Vec<f64>,
}

impl<'a> Simulation<'a> {
    fn new(cluster: &'a leeward_fabric::Cluster, table: &[RecordBatch]) -> Result<Self, InputError> {
        let mut batches = Vec::with_capacity(table.len());
        let mut rows = 0;
        for batch in table {
            batches.push((rows, Flows::read(&cluster.fabric, batch, rows)?));
            rows += batch.num_rows();
        }
        let capacities: Vec<f64> = cluster.capacities.as_slice().iter().map(|load| load.0 as f64).collect();
        let arrivals = || batches.iter().flat_map(|(_, flows)| flows.arrivals()).copied();
        let order = (!arrivals().is_sorted()).then(|| {
            let times: Vec<f64> = arrivals().collect();
            let mut order: Vec<usize> = (0..rows).collect();
            order.sort_by(|&a, &b| times[a].total_cmp(&times[b]));
            order
        });
        Ok(Simulation {
            cluster,
            order,
            arrived: 0,
            origin: arrivals().reduce(f64::min).unwrap_or(0.0),
            network: Network::new(&capacities).map_err(flows_error)?,
            active: Vec::new(),
            finished: Vec::new(),
            hops: Vec::new(),
            finish: vec![f64::INFINITY; rows],
            duration: vec![f64::INFINITY; rows],
            batches,
        })
    }

    /// Processes up to `steps` arrivals or, after the last arrival, up to `steps` completions. Returns false when all
    /// flows are complete.
    fn run(&mut self, steps: usize) -> Result<bool, InputError> {
        for _ in 0..steps {
            if self.arrived < self.finish.len() {
                self.arrive()?;
            } else {
                let Some(next) = self.network.next_completion() else { return Ok(false) };
                self.advance(next)?;
            }
        }
        Ok(true)
    }

    fn arrive(&mut self) -> Result<(), InputError> {
        let row = self.order.as_ref().map_or(self.arrived, |order| order[self.arrived]);
        self.arrived += 1;
        let batch = self.batches.partition_point(|&(first, _)| first <= row) - 1;
        let (first, flows) = &self.batches[batch];
        let flow = flows.get(&self.cluster.fabric, row - first, &mut self.hops);
        let arrival = flow.arrival - self.origin;
        self.advance(arrival)?;
        let id = self
            .network
            .start(arrival, &self.hops, flow.bytes, flow.weight, flow.cap, flow.class)
            .map_err(|error| InputError::new("flows", format!("row {row}: {error}")))?;
        let slot = id.slot() as usize;
        if slot >= self.active.len() {
            self.active.resize(slot + 1, (0, 0.0));
        }
        self.active[slot] = (row, arrival);
        Ok(())
    }

    fn advance(&mut self, to: f64) -> Result<(), InputError> {
        self.network.advance(to, &mut self.finished).map_err(flows_error)?;
        for finished in self.finished.drain(..) {
            let (row, arrival) = self.active[finished.flow.slot() as usize];
            self.finish[row] = self.origin + finished.at;
            self.duration[row] = finished.at - arrival;
        }
        Ok(())
    }
}

fn flows_error(error: FluidError) -> InputError {
    InputError::new("flows", error)
}
