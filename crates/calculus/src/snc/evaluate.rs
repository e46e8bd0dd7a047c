//! Evaluates rho and sigma of an expression at one theta, and the latency bound that follows. Also computes the
//! gradient by theta and by every free parameter.
//!
//! One walk writes a tape, operands before results. A backward pass over the tape computes the derivatives of the
//! result by rho and sigma of every entry. A forward pass adds the derivatives by theta, because the theta of an
//! operand is a multiple of the theta of the result.

use crate::mmpp::Bound;

use super::expressions::{ArrivalId, Expressions, Node, ServiceId};
use super::memo::{Accuracy, last};
use super::operators::{Operator, Union, combine, partials};
use super::tape::{Entry, Evaluator};

/// The latency at one point, with intermediate results.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// Latency, in steps.
    pub(super) latency: f64,
    /// Derivative of the logarithm of the union over the past by theta (rho of arrivals + rho of service).
    pub(super) odds: f64,
    /// Minimum over convolutions of theta times the difference between the rates of the operands.
    pub(super) gap: f64,
}

/// Hoelder's exponents x and y, 1/x + 1/y = 1, for the parameter log(x - 1).
pub(super) fn exponents(parameter: f64) -> (f64, f64) {
    (1.0 + parameter.exp(), 1.0 + (-parameter).exp())
}

/// Lyapunov's l of a node for the parameter log(l - 1).
fn stretch_factor(arena: &Expressions, stretch: Option<u32>) -> f64 {
    stretch.map_or(1.0, |at| 1.0 + arena.parameters[at as usize].exp())
}

impl Evaluator {
    /// Drops the values of other expressions.
    pub(super) fn begin(&mut self, nodes: usize) {
        self.values.clear();
        self.values.resize(nodes, ((0, None), (Accuracy::Exact, 1.0)));
    }

    /// The bound on the latency (theorem 1) at this theta and these parameters; `None` if none exists.
    pub(super) fn latency(
        &mut self,
        arena: &mut Expressions,
        query: &Query,
        theta: f64,
        accuracy: Accuracy,
    ) -> Option<Point> {
        self.gap = f64::INFINITY;
        let (x, y) = if query.dependent { exponents(arena.parameters[0]) } else { (1.0, 1.0) };
        let service = self.value(arena, query.service.0, y * theta, accuracy)?;
        let arrivals = self.value(arena, query.arrivals.0, x * theta, accuracy)?;
        self.point(arena, query, theta, (arrivals, service), accuracy)
    }

    /// The same bound, with a tape that [`Evaluator::gradient`] can continue from.
    pub(super) fn latency_on_tape(
        &mut self,
        arena: &mut Expressions,
        query: &Query,
        theta: f64,
        accuracy: Accuracy,
    ) -> Option<Point> {
        self.tape.clear();
        self.links.clear();
        self.gap = f64::INFINITY;
        let (x, y) = if query.dependent { exponents(arena.parameters[0]) } else { (1.0, 1.0) };
        let service = self.visit(arena, query.service.0, y * theta, accuracy)?;
        let arrivals = self.visit(arena, query.arrivals.0, x * theta, accuracy)?;
        self.top = (arrivals as usize, service as usize);
        let bounds = (self.tape[self.top.0].bound, self.tape[self.top.1].bound);
        self.point(arena, query, theta, bounds, accuracy)
    }

    fn point(
        &self,
        arena: &mut Expressions,
        query: &Query,
        theta: f64,
        (a, s): (Bound, Bound),
        accuracy: Accuracy,
    ) -> Option<Point> {
        let (x, _) = if query.dependent { exponents(arena.parameters[0]) } else { (1.0, 1.0) };
        let own = own_sigma(arena, query, theta, x, accuracy)?;
        let w = theta * (a.rho + s.rho);
        if !(w < 0.0 && s.rho < 0.0) {
            return None;
        }
        let past = Union::new(-w, theta * arena.gross(query.service.0), arena.block);
        let logarithm = query.excess.ln() - past.logarithm;
        let latency = (logarithm / theta - a.sigma - own - s.sigma) / s.rho;
        latency.is_finite().then(|| Point { latency, odds: -past.by_rate, gap: self.gap })
    }

    /// The bound of a node, by a walk without a tape.
    fn value(&mut self, arena: &mut Expressions, node: u32, theta: f64, accuracy: Accuracy) -> Option<Bound> {
        match arena.nodes[node as usize] {
            Node::Server { rate, whole } => return Some(Bound { rho: -rate, sigma: whole }),
            Node::Arrivals { model } => {
                let (model, arrivals) = (model as usize, &arena.models[model as usize]);
                return match accuracy {
                    Accuracy::Exact => {
                        last(&mut arena.memo.exact[model], theta, || arrivals.bound_near(theta))
                    }
                    Accuracy::Approximate => {
                        last(&mut arena.memo.approximate[model], theta, || arrivals.approximate_bound(theta))
                            .map(|both| both.0)
                    }
                };
            }
            _ => {}
        }
        if !arena.has_no_parameters(node) {
            return self.compound(arena, node, theta, accuracy);
        }
        let ((bits, value), conditions) = self.values[node as usize];
        if bits == theta.to_bits() && conditions == (accuracy, arena.block) {
            return value;
        }
        let value = self.compound(arena, node, theta, accuracy);
        self.values[node as usize] = ((theta.to_bits(), value), (accuracy, arena.block));
        value
    }

    /// The bound of a sum or a pair.
    fn compound(
        &mut self,
        arena: &mut Expressions,
        node: u32,
        mut theta: f64,
        accuracy: Accuracy,
    ) -> Option<Bound> {
        match arena.nodes[node as usize] {
            Node::Server { .. } | Node::Arrivals { .. } => self.value(arena, node, theta, accuracy),
            Node::Sum { first, count } => {
                let mut sum = Bound { rho: 0.0, sigma: 0.0 };
                for at in first..first + count {
                    let bound = self.value(arena, arena.operands[at as usize], theta, accuracy)?;
                    sum.rho += bound.rho;
                    sum.sigma += bound.sigma;
                }
                Some(sum)
            }
            Node::Pair { operator, left, right, exponent, slack, stretch } => {
                theta *= stretch_factor(arena, stretch);
                let (x, y) = exponent.map_or((1.0, 1.0), |at| exponents(arena.parameters[at as usize]));
                let left = self.value(arena, left, x * theta, accuracy)?;
                let right = self.value(arena, right, y * theta, accuracy)?;
                let tau = slack.map_or(0.0, |at| arena.parameters[at as usize].exp());
                if operator == Operator::Convolution {
                    self.gap = self.gap.min(theta * (left.rho - right.rho).abs());
                }
                combine(operator, theta, (left, right), tau, arena.moments(node))
            }
        }
    }

    fn visit(
        &mut self,
        arena: &mut Expressions,
        node: u32,
        mut theta: f64,
        accuracy: Accuracy,
    ) -> Option<u32> {
        let mut slope = Bound { rho: 0.0, sigma: 0.0 };
        let mut operands = (0, 0);
        let bound = match arena.nodes[node as usize] {
            Node::Server { rate, whole } => Bound { rho: -rate, sigma: whole },
            Node::Arrivals { model } => {
                let (model, arrivals) = (model as usize, &arena.models[model as usize]);
                let both = match accuracy {
                    Accuracy::Exact => last(&mut arena.memo.bound_with_slope[model], theta, || {
                        arrivals.bound_and_slope(theta)
                    })?,
                    Accuracy::Approximate => {
                        last(&mut arena.memo.approximate[model], theta, || arrivals.approximate_bound(theta))?
                    }
                };
                slope = both.1;
                both.0
            }
            Node::Sum { first, count } => {
                let mut sum = Bound { rho: 0.0, sigma: 0.0 };
                let start = self.links.len() as u32;
                // Operands of a sum are not sums themselves, but may contain sums. Links are therefore reserved before
                // they are filled.
                self.links.resize(self.links.len() + count as usize, 0);
                for at in 0..count {
                    let operand = arena.operands[(first + at) as usize];
                    let entry = self.visit(arena, operand, theta, accuracy)?;
                    self.links[(start + at) as usize] = entry;
                    let bound = self.tape[entry as usize].bound;
                    sum.rho += bound.rho;
                    sum.sigma += bound.sigma;
                }
                operands = (start, start + count);
                sum
            }
            Node::Pair { operator, left, right, exponent, slack, stretch } => {
                theta *= stretch_factor(arena, stretch);
                let (x, y) = exponent.map_or((1.0, 1.0), |at| exponents(arena.parameters[at as usize]));
                let left = self.visit(arena, left, x * theta, accuracy)?;
                let right = self.visit(arena, right, y * theta, accuracy)?;
                operands = (left, right);
                let (l, r) = (self.tape[left as usize].bound, self.tape[right as usize].bound);
                let tau = slack.map_or(0.0, |at| arena.parameters[at as usize].exp());
                if operator == Operator::Convolution {
                    self.gap = self.gap.min(theta * (l.rho - r.rho).abs());
                }
                combine(operator, theta, (l, r), tau, arena.moments(node))?
            }
        };
        self.tape.push(Entry { node, theta, bound, slope, operands });
        Some(self.tape.len() as u32 - 1)
    }

    /// The derivatives of the last latency that was evaluated on a tape. Returns the derivative by theta; adds the
    /// derivatives by the parameters to `gradient`, one entry per parameter of the arena.
    pub(super) fn gradient(
        &mut self,
        arena: &mut Expressions,
        query: &Query,
        theta: f64,
        (latency, accuracy): (f64, Accuracy),
        gradient: &mut [f64],
    ) -> f64 {
        let entries = self.tape.len();
        let (arrivals, service) = self.top;
        let (a, s) = (self.tape[arrivals].bound, self.tape[service].bound);
        let gross = arena.gross(query.service.0);
        let past = Union::new(-theta * (a.rho + s.rho), theta * gross, arena.block);
        let (odds, logarithm) = (-past.by_rate, query.excess.ln() - past.logarithm);
        self.adjoints.clear();
        self.adjoints.resize(entries, (0.0, 0.0));
        self.adjoints[arrivals] = (-odds / s.rho, -1.0 / s.rho);
        self.adjoints[service] = ((-odds - latency) / s.rho, -1.0 / s.rho);
        for at in (0..entries).rev() {
            self.pass_down(arena, at);
        }
        for at in 0..entries {
            self.pass_up(arena, at, gradient);
        }
        let (by_arrivals, by_service) = (self.adjoints[arrivals].0, self.adjoints[service].0);
        let mut own = (-logarithm / theta - odds * (a.rho + s.rho) - past.by_gross * gross) / (theta * s.rho);
        let (x, _) = if query.dependent { exponents(arena.parameters[0]) } else { (1.0, 1.0) };
        let mut sigma = |theta, x| own_sigma(arena, query, theta, x, accuracy).unwrap_or(0.0);
        let by = |a: f64, b: f64| (b - a) / (2.0 * NEARBY * s.rho);
        if query.requests_of.is_some() {
            own += by(sigma(theta * (1.0 + NEARBY), x), sigma(theta * (1.0 - NEARBY), x)) / theta;
        }
        if query.dependent {
            if query.requests_of.is_some() {
                let more = (x - 1.0) * NEARBY;
                gradient[0] += by(sigma(theta, x + more), sigma(theta, x - more));
            }
            let (x, y) = exponents(arena.parameters[0]);
            own += x * by_arrivals + y * by_service;
            gradient[0] += theta * ((x - 1.0) * by_arrivals - (y - 1.0) * by_service);
        } else {
            own += by_arrivals + by_service;
        }
        own
    }

    /// Converts an entry's derivatives by rho and sigma to the derivatives of its operands.
    fn pass_down(&mut self, arena: &Expressions, at: usize) {
        let Entry { node, theta, operands: (left, right), .. } = self.tape[at];
        let (rho, sigma) = self.adjoints[at];
        match arena.nodes[node as usize] {
            Node::Arrivals { .. } | Node::Server { .. } => {}
            Node::Sum { .. } => {
                for link in left..right {
                    let operand = &mut self.adjoints[self.links[link as usize] as usize];
                    operand.0 += rho;
                    operand.1 += sigma;
                }
            }
            Node::Pair { operator, slack, .. } => {
                let (l, r) = (self.tape[left as usize].bound, self.tape[right as usize].bound);
                let tau = slack.map_or(0.0, |at| arena.parameters[at as usize].exp());
                let by = partials(operator, theta, (l, r), tau, arena.moments(node));
                for (operand, by) in [(left, by.left), (right, by.right)] {
                    let operand = &mut self.adjoints[operand as usize];
                    operand.0 += rho * by.0 + sigma * by.1;
                    operand.1 += sigma;
                }
            }
        }
    }

    /// Converts an entry's derivatives by rho and sigma into the derivative by its theta, when the derivatives of its
    /// operands are known.
    fn pass_up(&mut self, arena: &Expressions, at: usize, gradient: &mut [f64]) {
        let Entry { node, theta, slope, operands: (left, right), .. } = self.tape[at];
        let (rho, sigma) = self.adjoints[at];
        let by_theta = match arena.nodes[node as usize] {
            Node::Server { .. } => 0.0,
            Node::Arrivals { .. } => rho * slope.rho + sigma * slope.sigma,
            Node::Sum { .. } => {
                (left..right).map(|link| self.adjoints[self.links[link as usize] as usize].0).sum()
            }
            Node::Pair { operator, exponent, slack, stretch, .. } => {
                let (l, r) = (self.tape[left as usize].bound, self.tape[right as usize].bound);
                let tau = slack.map_or(0.0, |at| arena.parameters[at as usize].exp());
                let by = partials(operator, theta, (l, r), tau, arena.moments(node));
                if let Some(slack) = slack {
                    gradient[slack as usize] += tau * (rho * by.slack.0 + sigma * by.slack.1);
                }
                let (x, y) = exponent.map_or((1.0, 1.0), |at| exponents(arena.parameters[at as usize]));
                let (l, r) = (self.adjoints[left as usize].0, self.adjoints[right as usize].0);
                if let Some(exponent) = exponent {
                    gradient[exponent as usize] += theta * ((x - 1.0) * l - (y - 1.0) * r);
                }
                let own = rho * by.theta.0 + sigma * by.theta.1 + x * l + y * r;
                let times = stretch_factor(arena, stretch);
                if let Some(stretch) = stretch {
                    gradient[stretch as usize] += theta / times * (times - 1.0) * own;
                }
                times * own
            }
        };
        self.adjoints[at].0 = by_theta;
    }
}

/// A latency query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query {
    pub(super) arrivals: ArrivalId,
    pub(super) service: ServiceId,
    /// 1 - percentile / 100.
    pub(super) excess: f64,
    pub(super) dependent: bool,
    /// The model of the arrivals, if the percentile counts only steps with requests.
    pub(super) requests_of: Option<usize>,
}

/// Relative step of numerical derivatives, for functions without a closed form.
const NEARBY: f64 = 1e-5;

/// Increase of sigma of the arrivals if the last step certainly has requests. With Hoelder's x, the indicator of that
/// event, divided by its probability, is also raised to the power x.
fn own_sigma(arena: &mut Expressions, query: &Query, theta: f64, x: f64, accuracy: Accuracy) -> Option<f64> {
    let Some(at) = query.requests_of else { return Some(0.0) };
    let model = &arena.models[at];
    let excess = last(&mut arena.memo.requests[accuracy as usize][at], x * theta, || match accuracy {
        Accuracy::Exact => model.request_excess(x * theta),
        Accuracy::Approximate => model.approximate_request_excess(x * theta),
    });
    Some((excess? - (x - 1.0) * model.busy().ln()) / (x * theta))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mmpp::{Mmpp, Requests, Sigma, Sizes, State};

    /// One expression with every operator, all dependent.
    fn expression() -> (Expressions, Query) {
        let state = |requests| State {
            requests: Requests::Poisson(requests),
            sizes: Sizes::Exponential { mean: 1.0 },
        };
        let rows = [vec![0.9, 0.1], vec![0.2, 0.8]];
        let model = Mmpp::new(1.0, vec![state(0.1), state(0.4)], &rows, Sigma::Stationary).unwrap();
        let mut arena = Expressions::new(1.0, 3).unwrap();
        let id = arena.model(&model).unwrap();
        let leaves = [0, 0, 1, 2].map(|group| arena.arrivals(id, group).unwrap());
        let server = arena.server_after(2.0, 3.0).unwrap();
        let cross = arena.aggregate_all(&leaves[1..]).unwrap();
        let first = arena.leftover(server, cross);
        let departures = arena.output(cross, first);
        let second = arena.leftover(server, departures);
        let service = arena.convolution(first, second);
        (arena, Query { arrivals: leaves[0], service, excess: 0.01, dependent: true, requests_of: Some(0) })
    }

    #[test]
    fn the_gradient_matches_differences_of_the_latency() {
        let (mut arena, query) = expression();
        assert!(arena.dependent(query.arrivals.0, query.service.0));
        let mut evaluator = Evaluator::default();
        for (slack, block) in [(1e-6f64, 1.0), (5e-3, 1.0), (1e-6, 40.0), (5e-3, 40.0)] {
            arena.block = block;
            for (at, parameter) in arena.parameters.iter_mut().enumerate() {
                *parameter = 0.05 * at as f64 - 0.3;
            }
            let slacks: Vec<u32> = arena
                .nodes
                .iter()
                .filter_map(|node| if let Node::Pair { slack, .. } = node { *slack } else { None })
                .collect();
            slacks.iter().for_each(|&at| arena.parameters[at as usize] = slack.ln());
            let theta = 0.004;
            evaluator.begin(arena.nodes.len());
            let point = evaluator.latency_on_tape(&mut arena, &query, theta, Accuracy::Exact).unwrap();
            let again = evaluator.latency(&mut arena, &query, theta, Accuracy::Exact).unwrap();
            assert!((again.latency - point.latency).abs() <= 1e-9 * point.latency);
            // The gap is above the smaller slack of the convolution, and below the larger one.
            assert!(1e-6 < point.gap && point.gap < 5e-3);
            let mut gradient = vec![0.0; arena.parameters.len()];
            let by = (point.latency, Accuracy::Exact);
            let by_theta = evaluator.gradient(&mut arena, &query, theta, by, &mut gradient);
            let mut at = |arena: &mut Expressions, theta| {
                evaluator.latency(arena, &query, theta, Accuracy::Exact).unwrap().latency
            };
            let near = 1e-6;
            let differences = (at(&mut arena, theta * (1.0 + near)) - at(&mut arena, theta * (1.0 - near)))
                / (2.0 * near * theta);
            assert!((by_theta - differences).abs() <= 1e-4 * by_theta.abs(), "{by_theta} {differences}");
            for (parameter, by) in gradient.into_iter().enumerate() {
                let before = arena.parameters[parameter];
                arena.parameters[parameter] = before + near;
                let above = at(&mut arena, theta);
                arena.parameters[parameter] = before - near;
                let below = at(&mut arena, theta);
                arena.parameters[parameter] = before;
                let differences = (above - below) / (2.0 * near);
                let room = 1e-4 * by.abs() + 1e-6 * point.latency;
                assert!((by - differences).abs() <= room, "{parameter} of {slack}: {by} {differences}");
            }
        }
    }

    #[test]
    fn dependent_operators_are_one_less_than_the_largest_group() {
        let (mut arena, _) = expression();
        arena.clear();
        let groups = [0, 1, 0, 2, 0, 1, 2, 1, 0];
        let leaves = groups.map(|group| arena.arrivals(crate::snc::ModelId(0), group).unwrap());
        arena.aggregate_all(&leaves).unwrap();
        let dependent = |node: &&Node| matches!(node, Node::Pair { exponent: Some(_), .. });
        assert_eq!(arena.nodes.iter().filter(dependent).count(), 3);
    }
}
