//! Mixed-integer program of an app's placement, in linear form (Choreo appendix).
//!
//! X_im is 1 if task i is on host m, and y_imjn is the product X_im X_jn. The objective minimises z, the time of the
//! slowest link; with phases, the sum of one z for each. The appendix constrains y by y <= X_im, y <= X_jn and one sum
//! over all y. Here, for each i, j and m, the y_imjn over all n add up to X_im. For each i, j and n, the y_imjn over all m
//! add up to X_jn. The integer solutions are the same, but the bound is tighter, so the search needs fewer nodes. The
//! program has y_imjn only for i < j, and uses y_jnim for i > j. The printed objective omits this swap.
//!
//! A bound on the round-trip time between tasks i and j forbids X_im + X_jn = 2 for hosts m and n that are too far from
//! each other. The cost of a host counts if a variable u_m >= X_im is 1 for some task i.

use std::collections::BTreeMap;

use leeward_fabric::{BITS_PER_BYTE, HostId, ResourceId};
use leeward_solver::{Program, Solution, Variable};

use super::capacity_check::CapacityCheck;
use super::rates::{Rates, SLOWEST};
use super::{AppRequest, Assignment};
use crate::estimate::Estimate;
use crate::{Apart, Context, Refusal};

/// Largest number of variables; larger programs would not be solved and would exhaust memory.
pub(super) const MOST_VARIABLES: usize = 500_000;

/// Two tasks, the lower position first, and for each phase with transfers between them, the bytes from one to the other
/// and back.
type Pair = ((u32, u32), BTreeMap<u32, (u64, u64)>);

/// Objective of a program.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Aim {
    /// The shortest time, at a cost of at most this, if hosts have costs.
    Time(Option<u64>),
    /// The least cost, within this time in seconds, if any.
    Cost(Option<f64>),
}

/// Share by which a bound may be exceeded, because the solver's numbers are rounded.
pub(super) const ROUNDING: f64 = 1e-6;

/// Number of variables of the program for a number of tasks, of communicating pairs, and of hosts.
pub(super) fn variables(tasks: usize, pairs: usize, hosts: usize) -> usize {
    tasks.saturating_add(pairs.saturating_mul(hosts)).saturating_mul(hosts).saturating_add(1)
}

/// Program of one app.
pub(super) struct Model {
    pub program: Program,
    /// Hosts that are open to tasks.
    hosts: Vec<HostId>,
    pairs: Vec<Pair>,
    /// Variables z, the times of the phases.
    times: Vec<Variable>,
    /// Variables X, by task and then host.
    on: Vec<Vec<Variable>>,
    /// For each host, the variable that is 1 if it has a task; only for programs with costs.
    used: Vec<Variable>,
    /// Time in seconds that counts as 1 in z.
    unit: f64,
}

impl Model {
    /// Builds the program. `unit` is the time in seconds that counts as 1 in z, so that the numbers are near 1.
    pub fn new(
        request: &AppRequest,
        context: &Context<'_, '_>,
        estimate: Estimate,
        unit: f64,
        aim: Aim,
    ) -> Result<Model, Refusal> {
        let capacity = CapacityCheck::new(context.pool, request);
        let open = |host: &HostId| capacity.refuses_all(*host, &[]).is_none();
        let hosts: Vec<HostId> = context.pool.fabric().all_hosts().filter(open).collect();
        let mut bytes = BTreeMap::<(u32, u32), BTreeMap<u32, (u64, u64)>>::new();
        for transfer in request.transfers.iter().filter(|transfer| transfer.bytes.0 > 0) {
            let (from, to) = (transfer.from, transfer.to);
            let of_pair = bytes.entry((from.min(to), from.max(to))).or_default();
            let both = of_pair.entry(transfer.phase).or_default();
            let direction = if from < to { &mut both.0 } else { &mut both.1 };
            *direction = direction.saturating_add(transfer.bytes.0);
        }
        let variables = variables(request.tasks.len(), bytes.len(), hosts.len());
        if variables > MOST_VARIABLES {
            return Err(Refusal::TooLarge { variables, most: MOST_VARIABLES });
        }
        let mut program = Program::new();
        let weight = if matches!(aim, Aim::Time(_)) { 1.0 } else { 0.0 };
        let times = (0..request.phases()).map(|_| program.add(weight, 0.0..=f64::INFINITY)).collect();
        let place = |_| hosts.iter().map(|_| program.add_integer(0.0, 0.0..=1.0)).collect::<Vec<Variable>>();
        let on: Vec<Vec<Variable>> = request.tasks.iter().map(place).collect();
        let pairs = bytes.into_iter().collect();
        let mut model = Model { program, hosts, pairs, times, on, used: Vec::new(), unit };
        model.constrain_capacity(request, context);
        model.keep_near(request, context);
        if aim != Aim::Time(None) {
            model.count_costs(context, aim);
        }
        if let Aim::Cost(Some(most)) = aim {
            let terms: Vec<_> = model.times.iter().map(|&time| (time, 1.0)).collect();
            model.program.constrain(f64::NEG_INFINITY..=most / unit * (1.0 + ROUNDING), &terms);
        }
        model.bound_links(context, estimate);
        Ok(model)
    }

    /// Adds the variables of used hosts, and minimises or bounds their cost. Costs are shares of the largest one.
    fn count_costs(&mut self, context: &Context<'_, '_>, aim: Aim) {
        let cost = |host: &HostId| context.pool.fabric().cost(*host).0 as f64;
        let largest = self.hosts.iter().map(cost).fold(0.0, f64::max);
        let shares: Vec<f64> =
            self.hosts.iter().map(|host| if largest > 0.0 { cost(host) / largest } else { 0.0 }).collect();
        let weight = if matches!(aim, Aim::Cost(_)) { 1.0 } else { 0.0 };
        self.used = shares.iter().map(|share| self.program.add(weight * share, 0.0..=1.0)).collect();
        for places in &self.on {
            for (&place, &used) in places.iter().zip(&self.used) {
                self.program.constrain(f64::NEG_INFINITY..=0.0, &[(place, 1.0), (used, -1.0)]);
            }
        }
        if let Aim::Time(Some(most)) = aim {
            let most = if largest > 0.0 { most as f64 / largest * (1.0 + ROUNDING) } else { 0.0 };
            let terms: Vec<_> = self.used.iter().copied().zip(shares).collect();
            self.program.constrain(f64::NEG_INFINITY..=most, &terms);
        }
    }

    /// Keeps the tasks of each bound on a round-trip time near each other. Hosts that are far from the same hosts share a
    /// row.
    fn keep_near(&mut self, request: &AppRequest, context: &Context<'_, '_>) {
        let fabric = context.pool.fabric();
        for bound in &request.constraints.latency {
            let mut groups = BTreeMap::<Vec<usize>, Vec<usize>>::new();
            for (at, &host) in self.hosts.iter().enumerate() {
                let is_far = |other: &usize| bound.excludes(fabric, host, self.hosts[*other]);
                let far: Vec<usize> = (0..self.hosts.len()).filter(is_far).collect();
                groups.entry(far).or_default().push(at);
            }
            let [one, other] = [bound.tasks.0, bound.tasks.1].map(|task| &self.on[task as usize]);
            for (far, group) in groups.iter().filter(|(far, _)| !far.is_empty()) {
                let near = group.iter().map(|&at| (one[at], 1.0));
                let terms: Vec<_> = near.chain(far.iter().map(|&at| (other[at], 1.0))).collect();
                self.program.constrain(f64::NEG_INFINITY..=1.0, &terms);
            }
        }
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

    /// Defines y, and constrains the time of every link in a phase by the z of the phase.
    fn bound_links(&mut self, context: &Context<'_, '_>, estimate: Estimate) {
        let mut rates = Rates::new(context.view, estimate);
        let mut rows = BTreeMap::<(u32, ResourceId), Vec<(Variable, f64)>>::new();
        for ((i, j), bytes) in &self.pairs {
            let products: Vec<Vec<Variable>> = (self.hosts.iter())
                .map(|_| self.hosts.iter().map(|_| self.program.add(0.0, 0.0..=1.0)).collect())
                .collect();
            for (at, (&on_i, &on_j)) in self.on[*i as usize].iter().zip(&self.on[*j as usize]).enumerate() {
                let mut of_i: Vec<_> = products[at].iter().map(|&y| (y, 1.0)).collect();
                of_i.push((on_i, -1.0));
                self.program.constrain(0.0..=0.0, &of_i);
                let mut of_j: Vec<_> = products.iter().map(|row| (row[at], 1.0)).collect();
                of_j.push((on_j, -1.0));
                self.program.constrain(0.0..=0.0, &of_j);
            }
            for (m, &host_m) in self.hosts.iter().enumerate() {
                for (n, &host_n) in self.hosts.iter().enumerate() {
                    let both = |(&phase, &(there, back)): (&u32, &(u64, u64))| {
                        [(phase, host_m, host_n, there), (phase, host_n, host_m, back)]
                    };
                    for (phase, from, to, bytes) in bytes.iter().flat_map(both) {
                        for link in rates.path(from, to).to_vec() {
                            let seconds = bytes as f64 * BITS_PER_BYTE / rates.of_link(link).max(SLOWEST);
                            let row = rows.entry((phase, link)).or_default();
                            match row.last_mut() {
                                Some((last, sum)) if *last == products[m][n] => *sum += seconds / self.unit,
                                _ if bytes > 0 => row.push((products[m][n], seconds / self.unit)),
                                _ => {}
                            }
                        }
                    }
                }
            }
        }
        for ((phase, _), mut row) in rows.into_iter().filter(|(_, row)| !row.is_empty()) {
            row.push((self.times[phase as usize], -1.0));
            self.program.constrain(f64::NEG_INFINITY..=0.0, &row);
        }
    }

    /// Values of all variables for a placement, in the order in which the program added them. `phases` has the duration
    /// of each phase in seconds.
    pub fn values_of(&self, hosts: &[HostId], phases: &[f64]) -> Vec<f64> {
        let is = |task: u32, host: HostId| f64::from(u8::from(hosts[task as usize] == host));
        let mut values: Vec<f64> = phases.iter().map(|seconds| seconds / self.unit).collect();
        values.resize(self.times.len(), 0.0);
        for task in 0..hosts.len() as u32 {
            values.extend(self.hosts.iter().map(|&host| is(task, host)));
        }
        let has_task = |host: &HostId| f64::from(u8::from(hosts.contains(host)));
        values.extend(self.used.iter().zip(&self.hosts).map(|(_, host)| has_task(host)));
        for ((i, j), _) in &self.pairs {
            for &m in &self.hosts {
                values.extend(self.hosts.iter().map(|&n| is(*i, m) * is(*j, n)));
            }
        }
        values
    }

    /// Hosts of the tasks by a solution.
    pub fn hosts_of(&self, solution: &Solution) -> Assignment {
        let host = |places: &Vec<Variable>| {
            let most = |a: &usize, b: &usize| {
                solution.value(places[*a]).total_cmp(&solution.value(places[*b])).then(b.cmp(a))
            };
            self.hosts[(0..places.len()).max_by(most).expect("a solution has a host for each task")]
        };
        self.on.iter().map(host).collect()
    }
}
