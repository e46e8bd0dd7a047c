//! A search for a place, and a place that it may try.

use std::sync::Arc;

use super::super::workload::Workload;
use super::packing::Packing;

/// Search for a place.
pub(super) struct Search<'a> {
    pub packing: &'a Packing,
    pub workload: Arc<Workload>,
    pub level: u64,
    /// Required client, by index; `None` if the search chooses one.
    pub required_client: Option<usize>,
}

/// A place that passed the quick checks.
#[derive(Clone)]
pub(super) struct Place {
    pub server: usize,
    pub device: usize,
    pub client: usize,
    pub route: Vec<Vec<usize>>,
}
