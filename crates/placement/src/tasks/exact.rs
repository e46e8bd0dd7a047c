//! Policy `choreo-exact`: the placement with the shortest completion time (Choreo appendix).
//!
//! The module solves the appendix's program in linear form. X_im is 1 if task i is on host m, and y_imjn is the product
//! X_im X_jn. The objective minimises z, the time of the slowest link. The appendix constrains y by y <= X_im,
//! y <= X_jn and one sum over all y. Here, for each i, j and m, the y_imjn over all n add up to X_im. For each i, j
//! and n, the y_imjn over all m add up to X_jn. The integer solutions are the same, but the bound is tighter, so the
//! search needs fewer nodes. The program has y_imjn only for i < j, and uses y_jnim for i > j. The printed objective
//! omits this swap.
//!
//! The search starts from the placement of `leeward`, or without a placement if `leeward` finds none. It visits at
//! most `nodes` nodes and has no time limit. If it stops early, the decision states the remaining gap.

use std::collections::BTreeMap;

use leeward_fabric::{BITS_PER_BYTE, Fabric, HostId, ResourceId};
use leeward_registry::{Registration, schema, settings};
use leeward_solver::{Limits, Program, Solution, SolverError, Variable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capacity_check::CapacityCheck;
use super::completion::completion;
use super::rates::{Rates, SLOWEST};
use super::transaction::{self, Notes};
use super::{AppRequest, Assignment, Leeward, LeewardSettings, TaskPolicy};
use crate::estimate::Estimate;
use crate::{Apart, Context, Decision, Policy, Refusal};

/// Largest number of variables; larger programs would not be solved and would exhaust memory.
const MOST_VARIABLES: usize = 500_000;

/// Estimated cost of a search node per variable, in link lookups. Callers of the estimate move expensive requests out of
/// their loop, or refuse them.
const LOOKUPS_PER_VARIABLE: u64 = 20;

/// Settings of `choreo-exact`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExactSettings {
    /// Largest number of search nodes. Default 2000.
    pub nodes: u32,
    /// On a hose mesh, counts the links into hosts too. Default false, as in the paper.
    pub into_hosts: bool,
    /// Computes rates from the number of flows only, as C / (N + 1) with N flows on a link of capacity C, and ignores
    /// telemetry. Default false.
    pub flows_only: bool,
}

impl Default for ExactSettings {
    fn default() -> Self {
        ExactSettings { nodes: 2000, into_hosts: false, flows_only: false }
    }
}

/// Exact placement by mixed-integer programming.
#[derive(Clone, Debug)]
pub struct Exact {
    settings: ExactSettings,
    /// Policy that finds the starting placement.
    greedy: Leeward,
}

pub(super) const REGISTRATION: Registration<dyn TaskPolicy> = Registration {
    name: "choreo-exact",
    aliases: &[],
    summary: "apps: the placement with the shortest completion time, by mixed-integer programming",
    source: "LaCurts et al., Choreo (IMC 2013), appendix",
    schema: schema::<ExactSettings>,
    make: |text| {
        let settings: ExactSettings = settings("choreo-exact", text)?;
        let ExactSettings { into_hosts, flows_only, .. } = settings;
        let greedy = Leeward::new(LeewardSettings { into_hosts, flows_only, ..LeewardSettings::default() });
        Ok(Box::new(Exact { settings, greedy }))
    },
};

impl Exact {
    fn assign(
        &self,
        request: &AppRequest,
        context: &Context<'_, '_>,
        notes: &mut Notes,
    ) -> Result<Assignment, Refusal> {
        let (nodes, estimate) = (self.settings.nodes, self.greedy.estimate());
        notes.estimate = Some(estimate);
        let first = match self.greedy.assign(request, context) {
            Ok(first) => first,
            Err(refusal @ Refusal::NoHost { alone: false, .. }) => {
                return self.assign_without_start(request, context, refusal, notes);
            }
            Err(refusal) => return Err(refusal),
        };
        let seconds =
            |hosts: &[HostId]| completion(context.view, &request.transfers, hosts, estimate).seconds;
        let unit = seconds(&first);
        // No placement improves on a time of zero. If a link has no capacity, the first placement never completes. The
        // search is skipped then, although another placement may avoid such links.
        if unit == 0.0 || !unit.is_finite() {
            notes.gap = Some(unit);
            return Ok(first);
        }
        let model = Model::new(request, context, estimate, unit)?;
        let start = model.values_of(&first);
        let solution = match model.program.minimise(Limits { nodes }, Some(&start)) {
            Ok(solution) => solution,
            Err(SolverError::Limit { .. } | SolverError::Unproven(_)) => {
                notes.gap = Some(f64::INFINITY);
                return Ok(first);
            }
            Err(error) => return Err(Refusal::SolverFailed { message: error.to_string() }),
        };
        notes.gap = Some(solution.gap);
        let hosts = model.hosts_of(&solution);
        // The solver's times are rounded, so the times of both placements are computed again and compared.
        Ok(if seconds(&hosts) <= unit { hosts } else { first })
    }

    /// Search without a greedy placement to start from; `refusal` is the refusal of the greedy policy.
    ///
    /// # Errors
    /// `refusal` if the solver finds no placement within the node limit; [`Refusal::NotTogether`] if none exists.
    fn assign_without_start(
        &self,
        request: &AppRequest,
        context: &Context<'_, '_>,
        refusal: Refusal,
        notes: &mut Notes,
    ) -> Result<Assignment, Refusal> {
        let estimate = self.greedy.estimate();
        let unit = least_seconds(request, context, estimate);
        let Ok(model) = Model::new(request, context, estimate, unit) else { return Err(refusal) };
        let solution = match model.program.minimise(Limits { nodes: self.settings.nodes }, None) {
            Ok(solution) => solution,
            // Times are not negative, so the program is never unbounded; the solver may confuse the two cases.
            Err(SolverError::Infeasible | SolverError::Unbounded) => return Err(Refusal::NotTogether),
            Err(SolverError::Limit { .. }) => return Err(refusal),
            Err(error) => return Err(Refusal::SolverFailed { message: error.to_string() }),
        };
        notes.gap = Some(solution.gap);
        let (hosts, mut capacity) = (model.hosts_of(&solution), CapacityCheck::new(context.pool, request));
        for (task, &host) in (0..).zip(&hosts) {
            // The solver's numbers are rounded, so its placement may exceed a capacity.
            if capacity.refuses(host, task).is_some() {
                return Err(refusal);
            }
            capacity.take(task, host);
        }
        Ok(hosts)
    }
}

impl Policy<AppRequest> for Exact {
    fn name(&self) -> &'static str {
        "choreo-exact"
    }

    fn place_one(
        &self,
        request: &AppRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Assignment>, Refusal> {
        let mut notes = transaction::Notes::default();
        let hosts = self.assign(request, context, &mut notes)?;
        Ok(transaction::decision(self.name(), request, hosts, notes, context))
    }
}

impl TaskPolicy for Exact {
    fn cost_estimate(&self, request: &AppRequest, fabric: &Fabric) -> u64 {
        let first = self.greedy.lookups_for_app(request, fabric);
        let variables = variables(request.tasks.len(), request.transfers.len(), fabric.host_count());
        // Some hosts may be closed, and several transfers may connect one pair of tasks, so the program may be smaller.
        // Programs above the limit are not solved.
        let variables = variables.min(MOST_VARIABLES);
        let node = (variables as u64).saturating_mul(LOOKUPS_PER_VARIABLE);
        first.saturating_add(node.saturating_mul(u64::from(self.settings.nodes)))
    }
}

/// Number of variables of the program for a number of tasks, of communicating pairs, and of hosts.
fn variables(tasks: usize, pairs: usize, hosts: usize) -> usize {
    tasks.saturating_add(pairs.saturating_mul(hosts)).saturating_mul(hosts).saturating_add(1)
}

/// Time of the largest transfer on the fastest path, in seconds; the unit for other times.
fn least_seconds(request: &AppRequest, context: &Context<'_, '_>, estimate: Estimate) -> f64 {
    let bytes = request.transfers.iter().map(|transfer| transfer.bytes.0).max().unwrap_or(0);
    let mut rates = Rates::new(context.view, estimate);
    let hosts = || context.pool.fabric().all_hosts();
    let pairs = hosts().flat_map(|from| hosts().map(move |to| (from, to)));
    let fastest = pairs.map(|(from, to)| rates.between(from, to)).filter(|rate| rate.is_finite());
    let seconds = bytes as f64 * BITS_PER_BYTE / fastest.fold(0.0, f64::max);
    if seconds > 0.0 && seconds.is_finite() { seconds } else { 1.0 }
}

/// Two tasks, the lower position first, and the bytes from one to the other and back.
type Pair = ((u32, u32), (u64, u64));

/// Program of one app.
struct Model {
    program: Program,
    /// Hosts that are open to tasks.
    hosts: Vec<HostId>,
    pairs: Vec<Pair>,
    /// Variables X, by task and then host.
    on: Vec<Vec<Variable>>,
}

impl Model {
    /// Builds the program. `unit` is the time in seconds that counts as 1 in z, so that the numbers are near 1.
    fn new(
        request: &AppRequest,
        context: &Context<'_, '_>,
        estimate: Estimate,
        unit: f64,
    ) -> Result<Model, Refusal> {
        let capacity = CapacityCheck::new(context.pool, request);
        let open = |host: &HostId| capacity.refuses_all(*host, &[]).is_none();
        let hosts: Vec<HostId> = context.pool.fabric().all_hosts().filter(open).collect();
        let mut bytes = BTreeMap::<(u32, u32), (u64, u64)>::new();
        for transfer in request.transfers.iter().filter(|transfer| transfer.bytes.0 > 0) {
            let (from, to) = (transfer.from, transfer.to);
            let both = bytes.entry((from.min(to), from.max(to))).or_default();
            let direction = if from < to { &mut both.0 } else { &mut both.1 };
            *direction = direction.saturating_add(transfer.bytes.0);
        }
        let variables = variables(request.tasks.len(), bytes.len(), hosts.len());
        if variables > MOST_VARIABLES {
            return Err(Refusal::TooLarge { variables, most: MOST_VARIABLES });
        }
        let mut program = Program::new();
        let slowest = program.add(1.0, 0.0..=f64::INFINITY);
        let place = |_| hosts.iter().map(|_| program.add_integer(0.0, 0.0..=1.0)).collect::<Vec<Variable>>();
        let on: Vec<Vec<Variable>> = request.tasks.iter().map(place).collect();
        let mut model = Model { program, hosts, pairs: bytes.into_iter().collect(), on };
        model.constrain_capacity(request, context);
        model.bound_links(context, estimate, slowest, unit);
        Ok(model)
    }

    /// Constrains every task to one host, and every host to its free capacity.
    fn constrain_capacity(&mut self, request: &AppRequest, context: &Context<'_, '_>) {
        for places in &self.on {
            let once: Vec<_> = places.iter().map(|&place| (place, 1.0)).collect();
            self.program.constrain(1.0..=1.0, &once);
        }
        self.keep_apart(request, context);
        for (index, &host) in self.hosts.iter().enumerate() {
            let cpus = context.pool.cpus_left(host).map(|left| left.0 as f64);
            let memory = context.pool.memory_left(host).map(|left| left.0 as f64);
            let needs_cpus: Vec<f64> = request.tasks.iter().map(|task| task.cpus.0 as f64).collect();
            let needs_memory: Vec<f64> = request.tasks.iter().map(|task| task.memory.0 as f64).collect();
            for (left, needs) in [(cpus, needs_cpus), (memory, needs_memory)] {
                let total: f64 = needs.iter().sum();
                let Some(left) = left.filter(|&left| left < total) else { continue };
                // Coefficients are shares of the free capacity. One above 1 keeps the task off the host.
                let share = |need: f64| if left > 0.0 { need / left } else { f64::from(need > 0.0) * 2.0 };
                let terms = self.on.iter().zip(&needs);
                let terms: Vec<_> =
                    terms.map(|(places, &need)| (places[index], share(need).min(2.0))).collect();
                self.program.constrain(f64::NEG_INFINITY..=1.0, &terms);
            }
        }
    }

    /// Constrains every host, or every rack, to one of the tasks that are apart.
    fn keep_apart(&mut self, request: &AppRequest, context: &Context<'_, '_>) {
        if let Some(apart) = request.constraints.apart {
            let all: Vec<u32> = (0..request.tasks.len() as u32).collect();
            self.keep_group_apart(&all, apart, context);
        }
        for group in &request.constraints.apart_groups {
            self.keep_group_apart(&group.tasks, group.level, context);
        }
    }

    fn keep_group_apart(&mut self, tasks: &[u32], apart: Apart, context: &Context<'_, '_>) {
        let fabric = context.pool.fabric();
        let mut places = BTreeMap::<u32, Vec<usize>>::new();
        for (index, &host) in self.hosts.iter().enumerate() {
            let place = match apart {
                Apart::Host => host.0,
                Apart::Rack => fabric.rack_of(host).0,
            };
            places.entry(place).or_default().push(index);
        }
        for indices in places.into_values() {
            let on = tasks.iter().map(|&task| &self.on[task as usize]);
            let on = on.flat_map(|places| indices.iter().map(move |&index| (places[index], 1.0)));
            let terms: Vec<_> = on.collect();
            self.program.constrain(f64::NEG_INFINITY..=1.0, &terms);
        }
    }

    /// Defines y, and constrains every link's time by z.
    fn bound_links(&mut self, context: &Context<'_, '_>, estimate: Estimate, slowest: Variable, unit: f64) {
        let mut rates = Rates::new(context.view, estimate);
        let mut rows = BTreeMap::<ResourceId, Vec<(Variable, f64)>>::new();
        for &((i, j), (there, back)) in &self.pairs {
            let products: Vec<Vec<Variable>> = (self.hosts.iter())
                .map(|_| self.hosts.iter().map(|_| self.program.add(0.0, 0.0..=1.0)).collect())
                .collect();
            for (at, (&on_i, &on_j)) in self.on[i as usize].iter().zip(&self.on[j as usize]).enumerate() {
                let mut of_i: Vec<_> = products[at].iter().map(|&y| (y, 1.0)).collect();
                of_i.push((on_i, -1.0));
                self.program.constrain(0.0..=0.0, &of_i);
                let mut of_j: Vec<_> = products.iter().map(|row| (row[at], 1.0)).collect();
                of_j.push((on_j, -1.0));
                self.program.constrain(0.0..=0.0, &of_j);
            }
            for (m, &host_m) in self.hosts.iter().enumerate() {
                for (n, &host_n) in self.hosts.iter().enumerate() {
                    for (from, to, bytes) in [(host_m, host_n, there), (host_n, host_m, back)] {
                        for link in rates.path(from, to).to_vec() {
                            let seconds = bytes as f64 * BITS_PER_BYTE / rates.of_link(link).max(SLOWEST);
                            let row = rows.entry(link).or_default();
                            match row.last_mut() {
                                Some((last, sum)) if *last == products[m][n] => *sum += seconds / unit,
                                _ if bytes > 0 => row.push((products[m][n], seconds / unit)),
                                _ => {}
                            }
                        }
                    }
                }
            }
        }
        for (_, mut row) in rows.into_iter().filter(|(_, row)| !row.is_empty()) {
            row.push((slowest, -1.0));
            self.program.constrain(f64::NEG_INFINITY..=0.0, &row);
        }
    }

    /// Values of all variables for a placement, in the order in which the program added them; z is 1, the unit.
    fn values_of(&self, hosts: &[HostId]) -> Vec<f64> {
        let is = |task: u32, host: HostId| f64::from(u8::from(hosts[task as usize] == host));
        let mut values = vec![1.0];
        for task in 0..hosts.len() as u32 {
            values.extend(self.hosts.iter().map(|&host| is(task, host)));
        }
        for &((i, j), _) in &self.pairs {
            for &m in &self.hosts {
                values.extend(self.hosts.iter().map(|&n| is(i, m) * is(j, n)));
            }
        }
        values
    }

    fn hosts_of(&self, solution: &Solution) -> Assignment {
        let host = |places: &Vec<Variable>| {
            let most = |a: &usize, b: &usize| {
                solution.value(places[*a]).total_cmp(&solution.value(places[*b])).then(b.cmp(a))
            };
            self.hosts[(0..places.len()).max_by(most).expect("a solution has a host for each task")]
        };
        self.on.iter().map(host).collect()
    }
}
