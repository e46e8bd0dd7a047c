//! Arrivals and services as expressions over theta, in an arena: thesis, appendix A.2 and table 4.1.

use crate::mmpp::Mmpp;

use super::error::SncError;
use super::memo::Memo;
use super::operators::{Moments, Operator};
use super::tail::Unstable;
use super::tape::Evaluator;

/// An arrival process of an arena, valid only in this arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrivalId(pub(super) u32);

/// A service process of an arena, valid only in this arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServiceId(pub(super) u32);

/// An arrival model of an arena, valid only in this arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModelId(pub(super) u32);

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Node {
    /// A model of arrivals.
    Arrivals { model: u32 },
    /// A server with `rate` work per step, after `whole` work that it serves first.
    Server { rate: f64, whole: f64 },
    /// Independent arrivals: a range of `operands`.
    Sum { first: u32, count: u32 },
    /// Two operands and the positions of their parameters. `exponent` belongs to Hoelder's inequality (if the operands
    /// may be dependent), `slack` to a convolution, and `stretch` to Lyapunov's inequality (if the operator adds a term
    /// to sigma).
    Pair {
        operator: Operator,
        left: u32,
        right: u32,
        exponent: Option<u32>,
        slack: Option<u32>,
        stretch: Option<u32>,
    },
}

/// Largest number of steps of a block.
const MOST_STEPS: f64 = 1e9;

/// Properties of a node that hold for every theta.
#[derive(Clone, Copy, Debug)]
struct Fact {
    /// rho as theta goes to zero, in work per step; negative for services.
    mean: f64,
    /// Upper limit of the node's theta: no bound exists from here on.
    limit: f64,
    unstable: Option<Unstable>,
    /// Two flags: the node contains a Hoelder exponent or a convolution slack; the node contains a stretch.
    parameters: (bool, bool),
    /// For services: largest work in a step, which is the work without other traffic. For outputs: the `gross` of the
    /// service that forwards them.
    gross: f64,
    /// Work that a server may have to do first. The leftover service and the output of the server have the same value.
    whole: f64,
    /// The largest `gross` of any service in the node.
    fastest: f64,
}

/// An arena of expressions. Each expression has the set of its workload groups. Workloads that may be dependent share a
/// group. Two expressions are therefore independent if their sets of groups are disjoint.
#[derive(Clone, Debug)]
pub struct Expressions {
    pub(super) step: f64,
    pub(super) models: Vec<Mmpp>,
    pub(super) memo: Memo,
    pub(super) nodes: Vec<Node>,
    pub(super) operands: Vec<u32>,
    /// Free parameters of the nodes; the first one belongs to the latency itself.
    pub(super) parameters: Vec<f64>,
    pub(super) evaluator: Evaluator,
    pub(super) lyapunov: bool,
    pub(super) by_request: bool,
    pub(super) coarse: bool,
    pub(super) blocks: bool,
    /// Number of steps that a union bound over time takes together; 1 as published.
    pub(super) block: f64,
    facts: Vec<Fact>,
    groups: usize,
    /// Number of words of a set of groups.
    words: usize,
    /// Sets of groups, one bit for each group, in order of the nodes.
    sets: Vec<u64>,
}

impl Expressions {
    /// An empty arena in steps of `step` seconds, for workloads in `groups` groups.
    ///
    /// # Errors
    ///
    /// Fails if the step is not positive and finite.
    pub fn new(step: f64, groups: usize) -> Result<Expressions, SncError> {
        if !(step.is_finite() && step > 0.0) {
            return Err(SncError::Step(step));
        }
        Ok(Expressions {
            step,
            models: Vec::new(),
            memo: Memo::default(),
            nodes: Vec::new(),
            operands: Vec::new(),
            parameters: vec![0.0],
            evaluator: Evaluator::default(),
            lyapunov: false,
            by_request: false,
            coarse: false,
            blocks: false,
            block: 1.0,
            facts: Vec::new(),
            groups,
            words: groups.div_ceil(64).max(1),
            sets: Vec::new(),
        })
    }

    /// Restricts the search for the minimum to the grid of thetas. The result is still a bound, 10 to 20 % above the
    /// minimum. All workloads share the thetas of the grid, so the search is faster. Initially off.
    pub fn set_coarse(&mut self, on: bool) {
        self.coarse = on;
    }

    /// Tightens latencies by Lyapunov's inequality: E X <= (E X^l)^(1/l) for every l > 1. So an output or a convolution
    /// at theta may use its bound from l theta, where its own sigma is smaller. The search takes about seven to ten
    /// times longer, and the bound is never looser. Initially off, as published.
    pub fn set_lyapunov(&mut self, on: bool) {
        self.lyapunov = on;
    }

    /// Takes union bounds over time in blocks of steps. In one block, a server does about 1 / theta of work. Published
    /// bounds sum over all steps: over all steps in which a busy period may have begun, for example, or in which
    /// traffic may have left. Such sums are large if steps are short: each is about log(1 / (theta times the work of a
    /// step)) / theta of work. Over blocks it is about 1 / theta. The bound holds for every length of a block. Within a
    /// block, arrivals are at most the arrivals of the whole block, and a service lacks at most one block of service.
    /// Initially off, as published.
    pub fn set_blocks(&mut self, on: bool) {
        self.blocks = on;
    }

    /// Takes percentiles over the steps with requests instead of over all steps. Over all steps, requests that are
    /// rarer than the excess probability have no effect, not even by their own work. The setting affects arrivals
    /// directly from a model. For an aggregate or an output, the percentile is still over all steps. Initially off, as
    /// published.
    pub fn set_by_request(&mut self, on: bool) {
        self.by_request = on;
    }

    /// Adds a model. Identical models are stored and evaluated once.
    ///
    /// # Errors
    ///
    /// Fails if the model has another step than the arena.
    pub fn model(&mut self, model: &Mmpp) -> Result<ModelId, SncError> {
        if model.step() != self.step {
            return Err(SncError::StepMismatch { found: model.step(), expected: self.step });
        }
        let at = self.models.iter().position(|known| known == model).unwrap_or_else(|| {
            self.models.push(model.clone());
            self.memo.grow();
            self.models.len() - 1
        });
        Ok(ModelId(at as u32))
    }

    /// Arrivals of a workload in `group`.
    ///
    /// # Errors
    ///
    /// Fails if the arena has no group with this number.
    pub fn arrivals(&mut self, model: ModelId, group: usize) -> Result<ArrivalId, SncError> {
        if group >= self.groups {
            return Err(SncError::Group { group, groups: self.groups });
        }
        let arrivals = &self.models[model.0 as usize];
        let (mean, limit) = (arrivals.mean(), arrivals.limit());
        let fact = Fact {
            mean,
            limit,
            unstable: None,
            parameters: (false, false),
            gross: 0.0,
            whole: 0.0,
            fastest: 0.0,
        };
        let id = self.push(Node::Arrivals { model: model.0 }, fact);
        self.sets[id as usize * self.words + group / 64] |= 1 << (group % 64);
        Ok(ArrivalId(id))
    }

    /// A server of `rate` work per second, independent of everything else.
    ///
    /// # Errors
    ///
    /// Fails if the rate is not positive and finite.
    pub fn server(&mut self, rate: f64) -> Result<ServiceId, SncError> {
        self.server_after(rate, 0.0)
    }

    /// A server with `rate` work per second, delayed by up to `whole` work. This is work that the server does first,
    /// because a request in service is not interrupted. It may also be the rest of a request, which leaves as a whole.
    ///
    /// # Errors
    ///
    /// Fails if the rate is not positive and finite, or if `whole` is negative or not finite.
    pub fn server_after(&mut self, rate: f64, whole: f64) -> Result<ServiceId, SncError> {
        if !(rate.is_finite() && rate > 0.0) {
            return Err(SncError::Rate(rate));
        }
        if !(whole.is_finite() && whole >= 0.0) {
            return Err(SncError::Whole(whole));
        }
        Ok(self.server_in_steps(rate * self.step, whole))
    }

    fn server_in_steps(&mut self, rate: f64, whole: f64) -> ServiceId {
        let (limit, parameters) = (f64::INFINITY, (false, false));
        let fact = Fact { mean: -rate, limit, unstable: None, parameters, gross: rate, whole, fastest: rate };
        ServiceId(self.push(Node::Server { rate, whole }, fact))
    }

    /// Service left by `service` after `arrivals` of higher or equal priority (theorem 2).
    pub fn leftover(&mut self, service: ServiceId, arrivals: ArrivalId) -> ServiceId {
        ServiceId(self.pair(Operator::Leftover, arrivals.0, service.0))
    }

    /// Output of `arrivals` behind `service` (theorem 3).
    pub fn output(&mut self, arrivals: ArrivalId, service: ServiceId) -> ArrivalId {
        ArrivalId(self.pair(Operator::Output, arrivals.0, service.0))
    }

    /// Both arrivals together (theorem 4).
    pub fn aggregate(&mut self, one: ArrivalId, two: ArrivalId) -> ArrivalId {
        if self.dependent(one.0, two.0) {
            ArrivalId(self.pair(Operator::Aggregate, one.0, two.0))
        } else {
            self.sum(&[one.0, two.0])
        }
    }

    /// Two services in sequence as one (theorem 5). Two servers equal one server with the lower rate, after the time
    /// that both take for their initial work.
    pub fn convolution(&mut self, one: ServiceId, two: ServiceId) -> ServiceId {
        let node = |id: ServiceId| self.nodes[id.0 as usize];
        if let (Node::Server { rate: first, whole: here }, Node::Server { rate: second, whole: there }) =
            (node(one), node(two))
        {
            let rate = first.min(second);
            return self.server_in_steps(rate, rate * (here / first + there / second));
        }
        ServiceId(self.pair(Operator::Convolution, one.0, two.0))
    }

    /// All of `arrivals` together, with few dependent operators (appendix A.4). Each process joins the first batch that
    /// is independent of it. Each batch is summed as independent arrivals. The dependent form then combines the
    /// batches. `None` without arrivals.
    pub fn aggregate_all(&mut self, arrivals: &[ArrivalId]) -> Option<ArrivalId> {
        let mut batches: Vec<(Vec<u64>, Vec<u32>)> = Vec::new();
        for &ArrivalId(id) in arrivals {
            let set = self.set(id).to_vec();
            let free = |(taken, _): &&mut (Vec<u64>, _)| taken.iter().zip(&set).all(|(a, b)| a & b == 0);
            match batches.iter_mut().find(free) {
                Some((taken, members)) => {
                    taken.iter_mut().zip(&set).for_each(|(word, more)| *word |= more);
                    members.push(id);
                }
                None => batches.push((set, vec![id])),
            }
        }
        let sums: Vec<ArrivalId> = batches.iter().map(|(_, members)| self.sum(members)).collect();
        sums.into_iter().reduce(|all, sum| self.aggregate(all, sum))
    }

    /// True if two expressions share a group of workloads.
    pub(super) fn dependent(&self, one: u32, two: u32) -> bool {
        self.set(one).iter().zip(self.set(two)).any(|(a, b)| a & b != 0)
    }

    /// Removes every expression; models stay.
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.operands.clear();
        self.parameters.truncate(1);
        self.facts.clear();
        self.sets.clear();
    }

    /// The reason why a latency of `arrivals` at `service` has no bound, if their means show it.
    pub(super) fn unstable(&self, arrivals: ArrivalId, service: ServiceId) -> Option<Unstable> {
        let (a, s) = (&self.facts[arrivals.0 as usize], &self.facts[service.0 as usize]);
        a.unstable.or(s.unstable).or_else(|| self.overload(a.mean, s.mean))
    }

    /// Upper limit of theta: no evaluation has a bound from here on.
    pub(super) fn limit(&self, arrivals: ArrivalId, service: ServiceId) -> f64 {
        self.facts[arrivals.0 as usize].limit.min(self.facts[service.0 as usize].limit)
    }

    /// Mean service, in work per step.
    pub(super) fn mean_service(&self, service: ServiceId) -> f64 {
        -self.facts[service.0 as usize].mean
    }

    /// True if the node and everything below it depend on theta alone, without free parameters.
    pub(super) fn has_no_parameters(&self, node: u32) -> bool {
        let (any, stretches) = self.facts[node as usize].parameters;
        !(any || stretches && self.lyapunov)
    }

    /// Largest work of a service in a step.
    pub(super) fn gross(&self, node: u32) -> f64 {
        self.facts[node as usize].gross
    }

    /// Inputs of the union bound over time at a node.
    pub(super) fn moments(&self, node: u32) -> Moments {
        Moments { block: self.block, gross: self.gross(node), whole: self.facts[node as usize].whole }
    }

    /// Number of steps of a block for a latency at a theta: a server does about 1 / theta of work in them.
    pub(super) fn block(&self, arrivals: ArrivalId, service: ServiceId, theta: f64) -> f64 {
        let fastest = |node: u32| self.facts[node as usize].fastest;
        let work = theta * fastest(arrivals.0).max(fastest(service.0));
        if self.blocks { work.recip().round().clamp(1.0, MOST_STEPS) } else { 1.0 }
    }

    fn set(&self, id: u32) -> &[u64] {
        &self.sets[id as usize * self.words..][..self.words]
    }

    fn overload(&self, arrivals: f64, service: f64) -> Option<Unstable> {
        let no_service = service >= 0.0 || arrivals + service >= 0.0;
        no_service.then(|| Unstable { load: arrivals / self.step, service: (-service / self.step).max(0.0) })
    }

    fn sum(&mut self, ids: &[u32]) -> ArrivalId {
        if let &[only] = ids {
            return ArrivalId(only);
        }
        let first = self.operands.len() as u32;
        for &id in ids {
            // Sums of sums are flattened.
            match self.nodes[id as usize] {
                Node::Sum { first, count } => {
                    self.operands.extend_from_within(first as usize..(first + count) as usize);
                }
                _ => self.operands.push(id),
            }
        }
        let count = self.operands.len() as u32 - first;
        let facts = || ids.iter().map(|&id| self.facts[id as usize]);
        let fact = Fact {
            mean: facts().map(|fact| fact.mean).sum(),
            limit: facts().map(|fact| fact.limit).fold(f64::INFINITY, f64::min),
            unstable: facts().find_map(|fact| fact.unstable),
            parameters: (facts().any(|fact| fact.parameters.0), facts().any(|fact| fact.parameters.1)),
            gross: 0.0,
            whole: 0.0,
            fastest: facts().map(|fact| fact.fastest).fold(0.0, f64::max),
        };
        let id = self.push(Node::Sum { first, count }, fact);
        ids.iter().for_each(|&operand| self.unite(id, operand));
        ArrivalId(id)
    }

    fn pair(&mut self, operator: Operator, left: u32, right: u32) -> u32 {
        let exponent = self.dependent(left, right).then(|| self.parameter(0.0));
        let slack = (operator == Operator::Convolution).then(|| self.parameter(0.0));
        let own_sigma = matches!(operator, Operator::Output | Operator::Convolution);
        let stretch = own_sigma.then(|| self.parameter(f64::NEG_INFINITY));
        let (l, r) = (self.facts[left as usize], self.facts[right as usize]);
        let own = match operator {
            Operator::Output => self.overload(l.mean, r.mean),
            _ => None,
        };
        let fact = Fact {
            mean: match operator {
                Operator::Aggregate | Operator::Leftover => l.mean + r.mean,
                Operator::Output => l.mean,
                Operator::Convolution => l.mean.max(r.mean),
            },
            limit: l.limit.min(r.limit),
            unstable: l.unstable.or(r.unstable).or(own),
            parameters: (
                l.parameters.0 || r.parameters.0 || exponent.is_some() || slack.is_some(),
                l.parameters.1 || r.parameters.1 || own_sigma,
            ),
            gross: match operator {
                Operator::Aggregate => 0.0,
                Operator::Leftover | Operator::Output => r.gross,
                Operator::Convolution => l.gross.max(r.gross),
            },
            whole: match operator {
                Operator::Leftover | Operator::Output => r.whole,
                Operator::Aggregate | Operator::Convolution => 0.0,
            },
            fastest: l.fastest.max(r.fastest),
        };
        let id = self.push(Node::Pair { operator, left, right, exponent, slack, stretch }, fact);
        self.unite(id, left);
        self.unite(id, right);
        id
    }

    fn parameter(&mut self, value: f64) -> u32 {
        self.parameters.push(value);
        self.parameters.len() as u32 - 1
    }

    fn push(&mut self, node: Node, fact: Fact) -> u32 {
        self.nodes.push(node);
        self.facts.push(fact);
        self.sets.extend(std::iter::repeat_n(0, self.words));
        self.nodes.len() as u32 - 1
    }

    fn unite(&mut self, id: u32, operand: u32) {
        for word in 0..self.words {
            self.sets[id as usize * self.words + word] |= self.sets[operand as usize * self.words + word];
        }
    }
}
