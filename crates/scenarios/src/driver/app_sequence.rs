//! Apps on the fluid network. Each app is placed on arrival, starts all its transfers at once, and ends with the last
//! of them (Choreo section 6). Running apps are cross traffic for new ones: the engine counts their flows.
//!
//! There is no telemetry. A policy knows the placements and the capacities that the ledger assumes, which may
//! differ from the true ones.

use std::collections::HashMap;

use leeward_engine::{Engine, Input, Policies, Ruling};
use leeward_fabric::input::InputError;
use leeward_fabric::{Capacities, Cluster, Endpoint, HostId, Nanos};
use leeward_fluid::{FlowId, Network};
use leeward_ledger::{Ledger, LedgerSettings, Owner, OwnerKind, Scratch};
use leeward_placement::tasks::{AppRequest, Assignment, TaskPolicy, completion};
use leeward_placement::{Explain, JobId, Refusal};

use crate::driver::error::RunError;

/// An app with its arrival time.
#[derive(Clone, PartialEq, Debug)]
pub struct TimedApp {
    /// Arrival time, in seconds.
    pub start: f64,
    /// App to place. The run replaces its number by its position.
    pub request: AppRequest,
}

/// Result of an app.
#[derive(Clone, PartialEq, Debug)]
pub struct AppRun {
    /// Hosts of its tasks, or the reason for the refusal.
    pub placed: Result<Assignment, Refusal>,
    /// Predicted run time in seconds, by the model of [`completion`] with the apps that run when this app arrives. Zero
    /// if nothing crosses a link.
    pub forecast: f64,
    /// Possible further reduction of the forecast, if the policy knows it.
    pub gap: Option<f64>,
    /// Run time in seconds; `None` if the app was not placed, or a link on its path has no capacity.
    pub seconds: Option<f64>,
}

/// Runs apps, sorted by start, until the last has ended. The policy uses the capacities `believed`, which may differ
/// from those of the network.
///
/// # Errors
/// Returns [`RunError::Input`] for arrivals out of order or with an invalid time, and for apps with phases; otherwise errors of the network.
pub fn run_apps(
    cluster: &Cluster,
    believed: &Capacities,
    arrivals: &[TimedApp],
    policy: Box<dyn TaskPolicy>,
    seed: u64,
) -> Result<Vec<AppRun>, RunError> {
    let sorted = arrivals.windows(2).all(|pair| pair[0].start <= pair[1].start);
    if !sorted || arrivals.iter().any(|arrival| !arrival.start.is_finite() || arrival.start < 0.0) {
        let message = "expected times from 0 on, in order";
        return Err(InputError::new("apps", message).in_field("start").into());
    }
    if arrivals.iter().any(|arrival| arrival.request.phases() > 1) {
        return Err(InputError::new("apps", "apps in a sequence have no phases").into());
    }
    let ledger = Ledger::new(cluster.fabric.clone(), believed, LedgerSettings::default())?;
    let policies = Policies { tasks: Some(policy), ..Policies::default() };
    let capacities: Vec<f64> = cluster.capacities.as_slice().iter().map(|c| c.0 as f64).collect();
    let mut sequence = Sequence {
        cluster,
        engine: Engine::new(ledger, policies, seed, Explain::Off),
        network: Network::new(&capacities)?,
        app_of: HashMap::new(),
        left: vec![0; arrivals.len()],
        runs: Vec::with_capacity(arrivals.len()),
    };
    let mut finished = Vec::new();
    loop {
        let next = arrivals.get(sequence.runs.len()).map_or(f64::INFINITY, |arrival| arrival.start);
        let now = sequence.network.next_completion().unwrap_or(f64::INFINITY).min(next);
        if now == f64::INFINITY {
            return Ok(sequence.runs);
        }
        sequence.network.advance(now, &mut finished)?;
        for done in finished.drain(..) {
            let app = sequence.app_of.remove(&done.flow).expect("every flow belongs to an app");
            sequence.left[app] -= 1;
            if sequence.left[app] == 0 {
                sequence.end(app, done.at, done.at - arrivals[app].start);
            }
        }
        while let Some(arrival) = arrivals.get(sequence.runs.len()).filter(|arrival| arrival.start <= now) {
            sequence.begin(now, &arrival.request)?;
        }
    }
}

/// State of the run.
struct Sequence<'a> {
    cluster: &'a Cluster,
    engine: Engine,
    network: Network,
    app_of: HashMap<FlowId, usize>,
    /// Remaining flows of each app.
    left: Vec<usize>,
    runs: Vec<AppRun>,
}

impl Sequence<'_> {
    fn begin(&mut self, now: f64, request: &AppRequest) -> Result<(), RunError> {
        let app = self.runs.len();
        let request = AppRequest { id: app as u64, job: JobId(app as u64), ..request.clone() };
        let clock = Nanos::from_secs_f64(now);
        let mut outputs = Vec::new();
        let (hosts, basis) =
            match self.engine.place_app(clock, request.clone(), Ruling::default(), &mut outputs) {
                Ok(placed) => (placed.decision.choice, placed.decision.basis),
                Err(refusal) => {
                    self.runs.push(AppRun { placed: Err(refusal), forecast: 0.0, gap: None, seconds: None });
                    return Ok(());
                }
            };
        let mut scratch = Scratch::default();
        let mut view = self.engine.ledger().view(clock, &mut scratch);
        view.without(&Owner { kind: OwnerKind::App, id: request.id });
        let forecast =
            completion(&view, &request.transfers, &hosts, basis.estimate.unwrap_or_default()).seconds;
        for transfer in request.transfers.iter().filter(|transfer| transfer.bytes.0 > 0) {
            let (from, to) = (hosts[transfer.from as usize], hosts[transfer.to as usize]);
            if from != to {
                let flow = self.start(now, from, to, transfer.bytes.0 as f64)?;
                self.app_of.insert(flow, app);
                self.left[app] += 1;
            }
        }
        self.runs.push(AppRun {
            placed: Ok(hosts),
            forecast,
            gap: basis.gaps.map(|gaps| gaps.time),
            seconds: None,
        });
        if self.left[app] == 0 {
            self.end(app, now, 0.0);
        }
        Ok(())
    }

    fn start(&mut self, now: f64, from: HostId, to: HostId, bytes: f64) -> Result<FlowId, RunError> {
        let mut hops = Vec::new();
        self.cluster.fabric.path(&[Endpoint::Host(from), Endpoint::Host(to)], &mut hops);
        let class = u64::from(from.0) << 32 | u64::from(to.0);
        Ok(self.network.start(now, &hops, bytes, 1.0, f64::INFINITY, Some(class))?)
    }

    fn end(&mut self, app: usize, now: f64, seconds: f64) {
        self.runs[app].seconds = Some(seconds);
        self.engine.handle(Nanos::from_secs_f64(now), Input::Ended(app as u64), &mut Vec::new());
    }
}
