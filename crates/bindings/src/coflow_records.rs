//! Records of coflows as an Arrow table.

use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use leeward_scenarios::record::{Coflow, Record};
use pyo3::prelude::*;

use crate::arrow_table::table;
use crate::records::{ArrowTable, counts, ids, maybe_times, texts, times};

pub fn coflows(record: &Record) -> PyResult<ArrowTable> {
    let coflows = &record.coflows;
    let finite = |bound: f64| bound.is_finite().then_some(bound);
    let class = |coflow: &Coflow| coflow.class().map(|class| class.name());
    table([
        ("coflow", texts(coflows.iter().map(|c| &c.arrival.id))),
        ("arrived_s", times(coflows.iter().map(|c| c.arrival.arrive))),
        ("finished_s", maybe_times(coflows.iter().map(|c| c.finished))),
        ("completion_s", maybe_times(coflows.iter().map(Coflow::completion_time))),
        ("bound_s", maybe_times(coflows.iter().map(|c| finite(c.bound)))),
        ("slowdown", maybe_times(coflows.iter().map(Coflow::slowdown))),
        ("class", Arc::new(StringArray::from_iter(coflows.iter().map(class))) as ArrayRef),
        ("flows", ids(coflows.iter().map(|c| Some(c.arrival.flows)))),
        ("senders", ids(coflows.iter().map(|c| Some(c.arrival.senders)))),
        ("receivers", ids(coflows.iter().map(|c| Some(c.arrival.receivers)))),
        ("bytes", counts(coflows.iter().map(|c| c.arrival.bytes))),
        ("longest_flow_bytes", counts(coflows.iter().map(|c| c.arrival.longest))),
        ("local_pairs", ids(coflows.iter().map(|c| Some(c.arrival.local_pairs)))),
        ("local_bytes", counts(coflows.iter().map(|c| c.arrival.local_bytes))),
    ])
}
