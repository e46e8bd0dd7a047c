//! Places for workloads: a search plans a place, and the packing applies the plan.

use std::sync::Arc;

use leeward_calculus::ArrivalCurve;

use super::super::bound::attainable;
use super::super::workload::Workload;
use super::candidate::Fit;
use super::packing::{Packing, PlacedWorkload};
use super::report::{RejectReason, Rejection};
use super::search::Search;

/// A request for a place.
#[derive(Clone, Debug)]
pub struct Request {
    /// The workload.
    pub workload: Arc<Workload>,
    /// Client to run on, by index. `None` lets the packing choose as the released code does. The choices are, in order:
    /// the client of the server's last workload, a client of any workload on the server, the client with the most free
    /// slots.
    pub client: Option<usize>,
}

/// A place for a workload with the changes it causes. The packing is unchanged until [`Packing::apply`].
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) version: u64,
    pub(super) pruned_by: f64,
    pub(super) new: PlacedWorkload,
    /// New limits of placed workloads.
    pub(super) limits: Vec<(u64, Vec<ArrivalCurve>)>,
    /// New delays of placed workloads.
    pub(super) delays: Vec<(u64, Vec<Vec<f64>>)>,
    /// Queues that the plan depends on.
    pub(super) read: Vec<usize>,
}

impl Packing {
    /// Finds a place. The packing stays unchanged.
    ///
    /// # Errors
    /// [`Rejection`] with the reason for which no place fits.
    pub fn plan(&self, request: &Request) -> Result<Plan, Rejection> {
        let refused = |why| Rejection { workload: request.workload.name.clone(), why };
        if self.names.contains_key(&request.workload.name) {
            return Err(refused(RejectReason::AlreadyPlaced));
        }
        if let Some(client) = request.client.filter(|&client| client >= self.site.clients().len()) {
            let clients = self.site.clients().len();
            let why = format!("client {client}: there are {clients} clients, numbered from 0");
            return Err(refused(RejectReason::Invalid(why)));
        }
        let (workload, pruned_by) = self.prepare(&request.workload).map_err(refused)?;
        let slo = workload.slo.ok_or_else(|| refused(RejectReason::BestEffort))?;
        attainable(&workload).map_err(|below| {
            refused(RejectReason::Unloaded { stage: below.stage, seconds: below.unloaded })
        })?;
        let level = self.settings.level(slo.latency);
        let Fit { new, limits, delays, read } =
            Search { packing: self, workload, level, required_client: request.client }
                .first()
                .map_err(refused)?;
        Ok(Plan { version: self.version, pruned_by, new, limits, delays, read })
    }

    /// Applies a plan. Returns false, without a change, if the packing changed after the plan: plan again.
    pub fn apply(&mut self, plan: Plan) -> bool {
        if plan.version != self.version {
            return false;
        }
        let Plan { new, limits, delays, pruned_by, .. } = plan;
        let mut touched = self.put(new, pruned_by);
        for (id, limits) in limits {
            let placed = self.placed.get_mut(&id).expect("a plan belongs to its packing");
            placed.limits = limits;
            touched.extend(placed.route.iter().flatten());
        }
        for (id, delays) in delays {
            self.placed.get_mut(&id).expect("a plan belongs to its packing").delays = delays;
        }
        self.update_loads(touched);
        true
    }

    /// Finds a place and applies it. Records a refusal for the report. Returns the server and the client, by
    /// index.
    ///
    /// # Errors
    /// [`Rejection`] with the reason for which no place fits.
    pub fn place(&mut self, request: &Request) -> Result<(usize, usize), Rejection> {
        match self.plan(request) {
            Ok(plan) => {
                let place = (plan.new.server, plan.new.client);
                self.apply(plan);
                Ok(place)
            }
            Err(refused) => {
                self.refused.push(refused.clone());
                Err(refused)
            }
        }
    }
}
