//! The tightest latency bound of an expression at a percentile.
//!
//! Every theta > 0 and every value of the other free parameters give a valid bound (theorem 1), so the search only
//! affects time and tightness. The search first varies theta: down a coarse grid from the limit of the generating
//! functions, then by Brent's method in the logarithm. At each theta, convolutions give up the rate that gives the
//! lowest bound. If operands may be dependent, a descent along the gradient follows. It varies theta, the gaps of
//! convolutions, and the logarithms of Hoelder's x - 1 together, and also Lyapunov's stretches if enabled.

use super::error::SncError;
use super::evaluate::{Point, Query};
use super::expressions::{ArrivalId, Expressions, Node, ServiceId};
use super::memo::Accuracy;
use super::minimise::{bfgs, brent};
use super::tail::{Latency, Tail, Unstable};
use super::tape::Evaluator;

/// Number of half octaves that the search goes down before it gives up.
const LONGEST_SCAN: i32 = 200;
/// The scan ends when the bound exceeds the best one by this factor: below the best theta, the bound grows as 1 /
/// theta.
const FAR: f64 = 4.0;
/// Other minima of the scan within this factor of the best are also refined.
const NEAR: f64 = 1.3;
/// Tolerance of log theta; the error of the bound is about its square.
const TOLERANCE: f64 = 1e-6;
/// A search ends when its relative gain falls below this.
const GAIN: f64 = 1e-11;
/// The same limit for a search with approximate models, whose accuracy allows no smaller gain.
const NEAR_GAIN: f64 = 1e-9;
/// Largest relative difference, at a theta found with approximate models, between the bound and its approximation.
/// Theta is then accurate to some ten thousandths, and the minimum to the square of this.
const AGREEMENT: f64 = 1e-5;
/// Initial gap of a convolution, times theta.
const FIRST_SLACK: f64 = 1e-3;
/// Initial gap if `FIRST_SLACK` leaves no service. With few units of work per step and large requests, this happens at
/// every theta.
const LEAST_SLACK: f64 = 1e-9;
/// Maximum number of iterations for the gap of a convolution.
const MOST_GAP_ITERATIONS: usize = 8;
/// A descent with stretches is long, and ends when its relative gain falls below this.
const STRETCH_GAIN: f64 = 1e-5;
/// Initial value of Lyapunov's l - 1.
const FIRST_STRETCH: f64 = 0.3;
/// Largest number of restarts of a descent; it restarts as long as it gains more than `RESTART_GAIN`.
const MOST_DESCENTS: usize = 6;
const RESTART_GAIN: f64 = 1e-9;
/// Blocks with fewer steps are compared with single steps.
const FEW_STEPS: f64 = 8.0;
/// Maximum number of Hoelder exponents in a search. The other exponents stay 2, which also gives a bound.
const MOST_EXPONENTS: usize = 256;
/// Limit on logarithms of parameters: Hoelder's x is at least 1 + 1e-13.
const LARGEST_PARAMETER: f64 = 30.0;

fn check(percentile: f64) -> Result<(), SncError> {
    if percentile > 0.0 && percentile < 100.0 { Ok(()) } else { Err(SncError::Percentile(percentile)) }
}

impl Expressions {
    /// The tightest bound on the `percentile` of the latency of `arrivals` at `service`.
    ///
    /// # Errors
    ///
    /// Fails if the percentile is not above 0 and below 100.
    pub fn latency(
        &mut self,
        arrivals: ArrivalId,
        service: ServiceId,
        percentile: f64,
    ) -> Result<Latency, SncError> {
        check(percentile)?;
        Ok(self.latency_beyond(arrivals, service, 1.0 - percentile / 100.0))
    }

    /// The same bound, for an excess probability in (0, 1).
    pub(super) fn latency_beyond(&mut self, arrivals: ArrivalId, service: ServiceId, excess: f64) -> Latency {
        if let Some(unstable) = self.unstable(arrivals, service) {
            return Latency::Unstable(unstable);
        }
        let dependent = self.dependent(arrivals.0, service.0);
        let requests_of = match self.nodes[arrivals.0 as usize] {
            Node::Arrivals { model } if self.by_request && self.models[model as usize].busy() > 0.0 => {
                Some(model as usize)
            }
            _ => None,
        };
        let mut search = Search {
            query: Query { arrivals, service, excess, dependent, requests_of },
            evaluator: std::mem::take(&mut self.evaluator),
            accuracy: Accuracy::Exact,
            arena: self,
            exponents: Vec::new(),
            slacks: Vec::new(),
            convolution_exponents: Vec::new(),
            stretches: Vec::new(),
            gradient: Vec::new(),
        };
        let mut tail = search.run();
        // If blocks are short, a convolution may lose more by blocks than it gains.
        if tail
            .is_some_and(|tail| (2.0..FEW_STEPS).contains(&search.arena.block(arrivals, service, tail.theta)))
        {
            search.arena.blocks = false;
            let steps = search.restart();
            tail = tail.into_iter().chain(steps).min_by(|a, b| a.seconds.total_cmp(&b.seconds));
            search.arena.blocks = true;
        }
        let evaluator = search.evaluator;
        self.evaluator = evaluator;
        match tail {
            Some(Tail { seconds: steps, theta }) => {
                Latency::Bounded(Tail { seconds: steps * self.step, theta })
            }
            // Stable on average, but so close to capacity that no representable theta has a bound.
            None => {
                let service = self.mean_service(service) / self.step;
                Latency::Unstable(Unstable { load: service, service })
            }
        }
    }
}

/// One search; latencies are in steps.
struct Search<'a> {
    arena: &'a mut Expressions,
    evaluator: Evaluator,
    query: Query,
    /// Current accuracy of the models.
    accuracy: Accuracy,
    /// Positions of the parameters of Hoelder's inequality.
    exponents: Vec<usize>,
    /// Positions of the parameters of convolutions.
    slacks: Vec<usize>,
    /// The exponents that belong to convolutions.
    convolution_exponents: Vec<usize>,
    /// Positions of the parameters of Lyapunov's inequality, if enabled.
    stretches: Vec<usize>,
    gradient: Vec<f64>,
}

impl Search<'_> {
    fn point(&mut self, theta: f64) -> Option<Point> {
        self.evaluator.latency(self.arena, &self.query, theta, self.accuracy)
    }

    /// The bound at a theta with the best slack of convolutions at this theta; infinity without a bound.
    ///
    /// The convolution whose latency is queried gives up rate until block / (exp(tau block) - 1) = latency + odds. Here
    /// tau is the gap of the convolution times theta. At this gap, the derivative by the gap is zero. The computation
    /// is iterated, because the latency depends on the gap.
    fn bound_at(&mut self, theta: f64) -> f64 {
        self.arena.block = self.arena.block(self.query.arrivals, self.query.service, theta);
        let block = self.arena.block;
        let mut kept = FIRST_SLACK;
        self.set_slack(kept);
        let mut first = self.point(theta);
        if first.is_none() && !self.slacks.is_empty() {
            kept = LEAST_SLACK;
            self.set_slack(kept);
            first = self.point(theta);
        }
        let Some(mut best) = first else { return f64::INFINITY };
        for _ in 0..MOST_GAP_ITERATIONS {
            let tau = (block / (best.latency + best.odds)).ln_1p() / block;
            // The previous slack has no effect, and this one has none either.
            if best.gap >= tau.max(kept) {
                break;
            }
            self.set_slack(tau);
            match self.point(theta) {
                Some(point) if point.latency < best.latency => {
                    let gain = best.latency - point.latency;
                    (best, kept) = (point, tau);
                    if gain <= GAIN * best.latency {
                        break;
                    }
                }
                _ => break,
            }
        }
        self.set_slack(kept);
        best.latency
    }

    /// Sets the gap, times theta, of every convolution.
    fn set_slack(&mut self, tau: f64) {
        self.slacks.iter().for_each(|&at| self.arena.parameters[at] = tau.ln());
    }

    /// Runs the search. At the point where the operands of a dependent convolution cross, the bound has an edge with a
    /// valley on either side. The search starts on the edge and on both sides. Stretches come last, from the best
    /// result without them.
    fn run(&mut self) -> Option<Tail> {
        self.evaluator.begin(self.arena.nodes.len());
        self.collect_parameters();
        if self.exponents.is_empty() {
            let best = self.over_theta(Accuracy::Exact)?;
            return Some(self.with_stretches(best));
        }
        let sides: &[f64] = if self.convolution_exponents.is_empty() { &[0.0] } else { &[0.0, -1.0, 1.0] };
        let mut best: Option<(Tail, Vec<f64>)> = None;
        for &side in sides {
            self.exponents.iter().for_each(|&at| self.arena.parameters[at] = 0.0);
            self.convolution_exponents.iter().for_each(|&at| self.arena.parameters[at] = side);
            let Some(tail) = self.over_theta(Accuracy::Approximate) else { continue };
            let tail = if self.arena.coarse || self.exponents.len() > MOST_EXPONENTS {
                tail
            } else {
                let near = self.descend(tail, &[], Accuracy::Approximate);
                self.descend(near, &[], Accuracy::Exact)
            };
            if best.as_ref().is_none_or(|(best, _)| tail.seconds < best.seconds) {
                best = Some((tail, self.arena.parameters.clone()));
            }
        }
        let (best, parameters) = best?;
        self.arena.parameters.copy_from_slice(&parameters);
        Some(self.with_stretches(best))
    }

    /// The better of a bound and its improvement by Lyapunov's stretches, if enabled.
    fn with_stretches(&mut self, best: Tail) -> Tail {
        if self.stretches.is_empty() || self.arena.coarse {
            return best;
        }
        let stretches = std::mem::take(&mut self.stretches);
        stretches.iter().for_each(|&at| self.arena.parameters[at] = FIRST_STRETCH.ln());
        let Some(start) = self.over_theta(Accuracy::Approximate) else { return best };
        let near = self.descend(start, &stretches, Accuracy::Approximate);
        let tail = self.descend(near, &stretches, Accuracy::Exact);
        if tail.seconds < best.seconds { tail } else { best }
    }

    /// Repeats the search from the beginning.
    fn restart(&mut self) -> Option<Tail> {
        for list in
            [&mut self.exponents, &mut self.slacks, &mut self.convolution_exponents, &mut self.stretches]
        {
            list.clear();
        }
        self.run()
    }

    /// Collects the free parameters of the expression.
    fn collect_parameters(&mut self) {
        if self.query.dependent {
            self.exponents.push(0);
        }
        let mut seen = vec![false; self.arena.nodes.len()];
        let mut open = vec![self.query.arrivals.0, self.query.service.0];
        while let Some(node) = open.pop() {
            if std::mem::replace(&mut seen[node as usize], true) {
                continue;
            }
            match self.arena.nodes[node as usize] {
                Node::Arrivals { .. } | Node::Server { .. } => {}
                Node::Sum { first, count } => {
                    open.extend(&self.arena.operands[first as usize..(first + count) as usize]);
                }
                Node::Pair { left, right, exponent, slack, stretch, .. } => {
                    if let Some(stretch) = stretch {
                        self.arena.parameters[stretch as usize] = f64::NEG_INFINITY;
                        self.stretches.extend(self.arena.lyapunov.then_some(stretch as usize));
                    }
                    if slack.is_some() {
                        self.convolution_exponents.extend(exponent.map(|at| at as usize));
                    }
                    self.exponents.extend(exponent.map(|at| at as usize));
                    self.slacks.extend(slack.map(|at| at as usize));
                    open.extend([left, right]);
                }
            }
        }
    }

    /// The minimum over theta with all other parameters fixed; only on the grid for a coarse search. `first` is
    /// [`Accuracy::Approximate`] if exponents or stretches lead to thetas outside the grid of cached thetas.
    fn over_theta(&mut self, first: Accuracy) -> Option<Tail> {
        match self.over_grid(first) {
            None if first == Accuracy::Approximate => self.over_grid(Accuracy::Exact),
            tail => tail,
        }
    }

    fn over_grid(&mut self, accuracy: Accuracy) -> Option<Tail> {
        let limit = self.arena.limit(self.query.arrivals, self.query.service);
        // Without any work there is no limit. The search then starts where the bound is a millionth of a step.
        let limit =
            limit.min(1e6 * (1.0 - self.query.excess.ln()) / self.arena.mean_service(self.query.service));
        self.accuracy = accuracy;
        let top = grid_below(limit);
        let mut scan: Vec<(i32, f64)> = Vec::new();
        let mut best = f64::INFINITY;
        for at in (top - LONGEST_SCAN..=top).rev() {
            let value = self.bound_at(grid(at));
            scan.push((at, value));
            best = best.min(value);
            if value.is_finite() && value > FAR * best {
                break;
            }
        }
        self.accuracy = Accuracy::Exact;
        if self.arena.coarse {
            let least = scan.iter().min_by(|a, b| a.1.total_cmp(&b.1)).filter(|point| point.1.is_finite());
            let theta = grid(least?.0);
            let steps = if accuracy == Accuracy::Approximate { self.bound_at(theta) } else { least?.1 };
            return steps.is_finite().then_some(Tail { seconds: steps, theta });
        }
        let value = |at: usize| scan.get(at).map_or(f64::INFINITY, |point| point.1);
        let minima: Vec<usize> = (0..scan.len())
            .filter(|&at| {
                let before = if at == 0 { f64::INFINITY } else { value(at - 1) };
                value(at) <= NEAR * best && value(at) <= before && value(at) <= value(at + 1)
            })
            .collect();
        let mut least: Option<Tail> = None;
        for at in minima.into_iter().filter(|&at| scan[at].1.is_finite()) {
            let index = scan[at].0;
            let higher = if at == 0 { f64::INFINITY } else { value(at - 1) };
            let low = (grid(index - 1), value(at + 1));
            let tail = self.between([low, (grid(index), value(at)), (grid(index + 1).min(limit), higher)]);
            if least.is_none_or(|least| tail.seconds < least.seconds) {
                least = Some(tail);
            }
        }
        least.filter(|least| least.seconds.is_finite())
    }

    /// The minimum in a bracket of thetas with their bounds, by approximate models if they suffice.
    fn between(&mut self, bracket: [(f64, f64); 3]) -> Tail {
        self.accuracy = Accuracy::Approximate;
        let near = self.brent(bracket);
        self.accuracy = Accuracy::Exact;
        let tail = Tail { seconds: self.bound_at(near.theta), ..near };
        // If exponents are searched next, this result is only a starting point.
        let difference = (tail.seconds - near.seconds).abs();
        let suffices = !self.exponents.is_empty() || difference <= AGREEMENT * tail.seconds;
        if tail.seconds.is_finite() && suffices { tail } else { self.brent(bracket) }
    }

    fn brent(&mut self, bracket: [(f64, f64); 3]) -> Tail {
        let logarithms = bracket.map(|(theta, steps)| (theta.ln(), steps));
        let (position, steps) = brent(logarithms, TOLERANCE, |logarithm| self.bound_at(logarithm.exp()));
        // The first point is used unrounded, not as the exponential of its logarithm.
        let theta = if position == logarithms[1].0 { bracket[1].0 } else { position.exp() };
        Tail { seconds: steps, theta }
    }

    /// Minimises over theta, every parameter, and the parameters `more` together, from their current values. A descent
    /// may stop at an edge, so it restarts as long as this helps.
    fn descend(&mut self, start: Tail, more: &[usize], accuracy: Accuracy) -> Tail {
        self.accuracy = accuracy;
        self.bound_at(start.theta);
        let free: Vec<usize> = self.exponents.iter().chain(&self.slacks).chain(more).copied().collect();
        let mut x: Vec<f64> = std::iter::once(start.theta.ln())
            .chain(free.iter().map(|&at| self.arena.parameters[at]))
            .collect();
        let initial = x.clone();
        let mut value = f64::INFINITY;
        let (descents, gain) = match accuracy {
            _ if !more.is_empty() => (1, STRETCH_GAIN),
            Accuracy::Approximate => (MOST_DESCENTS, NEAR_GAIN),
            Accuracy::Exact => (MOST_DESCENTS, GAIN),
        };
        for _ in 0..descents {
            let lower = bfgs(&mut x, gain, |x, gradient| self.logarithm(&free, x, gradient));
            let enough = value - lower <= RESTART_GAIN;
            value = lower;
            if enough {
                break;
            }
        }
        self.accuracy = Accuracy::Exact;
        self.set(&free, &x);
        let theta = x[0].exp();
        match self.point(theta) {
            Some(point) if point.latency < start.seconds => Tail { seconds: point.latency, theta },
            _ => {
                self.set(&free, &initial);
                start
            }
        }
    }

    /// Sets the free parameters.
    fn set(&mut self, free: &[usize], x: &[f64]) {
        free.iter().zip(&x[1..]).for_each(|(&at, &by)| self.arena.parameters[at] = by);
    }

    /// The logarithm of the bound at log theta and the free parameters, and its gradient.
    fn logarithm(&mut self, free: &[usize], x: &[f64], gradient: &mut [f64]) -> f64 {
        if x[1..].iter().any(|by| by.abs() > LARGEST_PARAMETER) {
            return f64::INFINITY;
        }
        self.set(free, x);
        let theta = x[0].exp();
        let Some(point) = self.evaluator.latency_on_tape(self.arena, &self.query, theta, self.accuracy)
        else {
            return f64::INFINITY;
        };
        let mut all = std::mem::take(&mut self.gradient);
        all.clear();
        all.resize(self.arena.parameters.len(), 0.0);
        let by = (point.latency, self.accuracy);
        let by_theta = self.evaluator.gradient(self.arena, &self.query, theta, by, &mut all);
        gradient[0] = by_theta * theta / point.latency;
        free.iter().zip(&mut gradient[1..]).for_each(|(&at, by)| *by = all[at] / point.latency);
        self.gradient = all;
        point.latency.ln()
    }
}

/// Thetas of the grid: 1 and 1.5 times powers of two, so that every search visits the same thetas.
fn grid(at: i32) -> f64 {
    let power = 2f64.powi(at.div_euclid(2));
    if at.rem_euclid(2) == 0 { power } else { 1.5 * power }
}

/// The largest grid index below `limit`.
fn grid_below(limit: f64) -> i32 {
    let mut at = 2 * limit.log2().floor() as i32 + 2;
    while grid(at) >= limit {
        at -= 1;
    }
    at
}
