//! The model, and the bound on its moment generating function.

use super::bound::Bound;
use super::bound_cache::{BoundCache, coarse_neighbours, cubic, fine_neighbours, is_coarse};
use super::chain::{check_rows, classes, monotone, reachable, reversible, stationary};
use super::error::{MAX_STATES, ModelError};
use super::perron::{Perron, perron};
use super::state::{State, check_states};

/// Relative margin added to an approximate eigenvalue, so that the guess is not too low.
const GUESS_MARGIN: f64 = 2e-5;
/// The same margin for a known eigenvalue.
const KNOWN_MARGIN: f64 = 1e-10;

/// Definition of sigma.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sigma {
    /// A safe value; there are three cases:
    ///
    /// 1. If the chain is stochastically monotone and its states are in order of their work, sigma is zero. The log-MGF
    ///    from a stationary start is then superadditive.
    /// 2. For any other reversible chain, sigma is the excess of one step over rho, `log(pi E 1 / sp(E Q)) / theta`, or
    ///    zero if this is negative.
    /// 3. For any other chain, sigma is `log(pi h / min h) / theta`, which is safe for every chain.
    ///
    /// Here pi is the stationary distribution, and h is the right Perron vector of Q E(theta).
    ///
    /// The second case uses E exp(theta A(n)) = v' M^(n-1) v with M = E^1/2 Q E^1/2 and v = E^1/2 1, in the inner
    /// product weighted by pi. There M is symmetric if Q is reversible. Its norm then equals its spectral radius, which
    /// is the spectral radius of E Q.
    Stationary,
    /// Always zero, as the thesis prints it. It is not a bound for every chain, and serves to compare with published
    /// numbers.
    Zero,
}

/// Arrivals modulated by a Markov chain.
#[derive(Clone, PartialEq, Debug)]
pub struct Mmpp {
    step: f64,
    states: Vec<State>,
    transitions: Vec<f64>,
    sigma: Sigma,
    /// Sets of states that reach one another.
    classes: Vec<Vec<usize>>,
    /// Stationary distribution, if there is a single class.
    stationary: Vec<f64>,
    monotone: bool,
    reversible: bool,
    mean: f64,
    limit: f64,
    cache: BoundCache,
}

/// Perron root of the chain at a theta, with intermediate results.
struct Root {
    /// log sp(E Q).
    logarithm: f64,
    /// sp(E Q) - 1 and its right vector, within its class.
    perron: Perron,
    /// E - 1 and its derivative, for every state.
    growth: [(f64, f64); MAX_STATES],
    class: usize,
}

impl Mmpp {
    /// A model in steps of `step` seconds. `transitions[i][j]` is the probability of a transition from state i to state
    /// j in one step.
    ///
    /// # Errors
    ///
    /// Fails if a number is out of range, and if the matrix does not match the states or is not stochastic. Also fails
    /// if `sigma` needs a unique stationary distribution and the chain has none.
    pub fn new(
        step: f64,
        states: Vec<State>,
        transitions: &[Vec<f64>],
        sigma: Sigma,
    ) -> Result<Mmpp, ModelError> {
        let n = states.len();
        if !(step.is_finite() && step > 0.0) {
            return Err(ModelError::Step(step));
        }
        if n == 0 || n > MAX_STATES {
            return Err(ModelError::States(n));
        }
        let odd = transitions.iter().find(|row| row.len() != n);
        if transitions.len() != n || odd.is_some() {
            let columns = odd.or(transitions.first()).map_or(0, Vec::len);
            return Err(ModelError::Shape { states: n, rows: transitions.len(), columns });
        }
        check_rows(transitions)?;
        check_states(&states)?;
        let transitions: Vec<f64> = transitions.concat();
        let reach = reachable(n, &transitions);
        let classes = classes(n, &reach);
        if sigma == Sigma::Stationary && classes.len() > 1 {
            let missing = (0..n * n).find(|&at| !reach[at]).unwrap_or(0);
            return Err(ModelError::Reducible { from: missing / n, to: missing % n });
        }
        let closed = |class: &[usize]| (0..n).all(|to| class.contains(&to) || !reach[class[0] * n + to]);
        let mean = classes
            .iter()
            .filter(|class| closed(class))
            .map(|class| {
                let law = stationary(n, &transitions, class);
                class.iter().zip(&law).map(|(&state, share)| share * states[state].mean()).sum::<f64>()
            })
            .fold(0.0, f64::max);
        let stationary =
            if classes.len() == 1 { stationary(n, &transitions, &classes[0]) } else { Vec::new() };
        let limit = states
            .iter()
            .filter(|state| state.requests.mean() > 0.0)
            .map(|state| state.sizes.limit())
            .fold(f64::INFINITY, f64::min);
        let monotone = monotone(n, &transitions);
        let reversible = reversible(n, &transitions, &stationary);
        let cache = BoundCache::default();
        Ok(Mmpp {
            step,
            states,
            transitions,
            sigma,
            classes,
            stationary,
            monotone,
            reversible,
            mean,
            limit,
            cache,
        })
    }

    /// Length of a step, in seconds.
    pub fn step(&self) -> f64 {
        self.step
    }

    /// The states.
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// Probability of a transition from one state to another in a step.
    pub fn transition(&self, from: usize, to: usize) -> f64 {
        self.transitions[from * self.states.len() + to]
    }

    /// The stationary distribution; empty for a chain of several classes (which only [`Sigma::Zero`] accepts).
    pub fn stationary(&self) -> &[f64] {
        &self.stationary
    }

    /// Long-run mean work per step, which is rho as theta goes to zero. For a chain of several classes, the value of
    /// the heaviest class.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Probability of a step with requests. For a chain of several classes, the smallest probability among the states
    /// with requests.
    pub fn busy(&self) -> f64 {
        let any = |state: &State| state.requests.any();
        if self.stationary.is_empty() {
            let some = self.states.iter().map(any).filter(|&any| any > 0.0);
            return some.fold(1.0, f64::min);
        }
        self.states.iter().zip(&self.stationary).map(|(state, share)| share * any(state)).sum()
    }

    /// Excess of a step with requests over any step. It is the logarithm of the largest factor, over states, by which E
    /// exp(theta A) grows if its last step certainly has requests.
    pub(crate) fn request_excess(&self, theta: f64) -> Option<f64> {
        self.cache.requests(theta, || Some(self.requests_and_slope(theta)?.0))
    }

    /// Approximation of `request_excess`, like [`Mmpp::approximate_bound`].
    pub(crate) fn approximate_request_excess(&self, theta: f64) -> Option<f64> {
        let (low, high) = fine_neighbours(theta);
        let at = |theta| self.cache.requests_with_slope(theta, || self.requests_and_slope(theta));
        match (theta > 0.0 && high < self.limit).then(|| at(low).zip(at(high))).flatten() {
            Some((from, to)) => {
                // As in `approximate_bound`.
                let distance = |theta: f64| 1.0 - theta / self.limit;
                let flat = |theta: f64, (value, slope): (f64, f64)| {
                    (value + distance(theta).ln(), slope - 1.0 / (distance(theta) * self.limit))
                };
                let share = (theta - low) / (high - low);
                Some(cubic(flat(low, from), flat(high, to), share, high - low).0 - distance(theta).ln())
            }
            None => self.request_excess(theta),
        }
    }

    /// `request_excess` with its derivative by theta.
    fn requests_and_slope(&self, theta: f64) -> Option<(f64, f64)> {
        if !(theta > 0.0 && theta < self.limit) {
            return None;
        }
        let factor = |state: &State| {
            let ((growth, slope), any) = (state.growth(theta), state.requests.any());
            let factor = if any > 0.0 { (growth + any) / (1.0 + growth) } else { 0.0 };
            (factor, slope * (1.0 - any) / ((growth + any) * (1.0 + growth)))
        };
        let largest = self
            .states
            .iter()
            .map(factor)
            .fold((0.0, 0.0), |most, next| if next.0 > most.0 { next } else { most });
        let logarithm = (largest.0 / self.busy()).ln();
        (logarithm.is_finite() && largest.1.is_finite()).then_some((logarithm, largest.1))
    }

    /// Upper limit of theta: no bound exists from here on. Infinite if no work ever arrives.
    pub fn limit(&self) -> f64 {
        self.limit
    }

    /// rho = log(sp(E(theta) Q)) / theta, and sigma. `None` where the generating function is infinite, or theta is not
    /// positive.
    pub fn bound(&self, theta: f64) -> Option<Bound> {
        self.cache.bound(theta, || Some(self.bound_of(theta, &self.root(theta, None)?)))
    }

    /// Equals `bound` up to rounding; faster after a call of `approximate_bound` for a near theta.
    pub(crate) fn bound_near(&self, theta: f64) -> Option<Bound> {
        // Cached values are always computed in the same way, so no result depends on earlier calls.
        if is_coarse(theta) {
            return self.bound(theta);
        }
        let near =
            self.approximate_bound(theta).map(|near| (theta * near.0.rho).exp_m1() * (1.0 + GUESS_MARGIN));
        Some(self.bound_of(theta, &self.root(theta, near)?))
    }

    /// Approximation of `bound` and its slope, usually to five digits where bound and slope are smooth. For searches
    /// only: the approximation may be below the bound.
    pub(crate) fn approximate_bound(&self, theta: f64) -> Option<(Bound, Bound)> {
        let (low, high) = fine_neighbours(theta);
        if !(theta > 0.0 && high < self.limit) {
            return self.bound_and_slope(theta);
        }
        let at = |theta| self.cache.bound_with_slope(theta, || self.bound_and_slope(theta));
        let (Some((from, from_slope)), Some((to, to_slope))) = (at(low), at(high)) else {
            return self.bound_and_slope(theta);
        };
        let (width, share) = (high - low, (theta - low) / (high - low));
        // Scaled by the distance to the limit. rho grows as the inverse of this distance, so the product is almost
        // linear.
        let distance = |theta: f64| 1.0 - theta / self.limit;
        let flat = |theta: f64, bound: Bound, slope: Bound| {
            (bound.rho * distance(theta), slope.rho * distance(theta) - bound.rho / self.limit)
        };
        let rho = cubic(flat(low, from, from_slope), flat(high, to, to_slope), share, width);
        let sigma = cubic((from.sigma, from_slope.sigma), (to.sigma, to_slope.sigma), share, width);
        let (value, slope) =
            (rho.0 / distance(theta), (rho.1 + rho.0 / (distance(theta) * self.limit)) / distance(theta));
        Some((Bound { rho: value, sigma: sigma.0 }, Bound { rho: slope, sigma: sigma.1 }))
    }

    /// The bound and its derivative by theta.
    pub(crate) fn bound_and_slope(&self, theta: f64) -> Option<(Bound, Bound)> {
        let root = self.root(theta, self.guess_above(theta))?;
        let bound = self.bound_of(theta, &root);
        let Root { perron: right, growth, class, .. } = &root;
        let members = &self.classes[*class];
        let n = members.len();
        let block = self.block(members, growth);
        let mut transposed = [0.0; MAX_STATES * MAX_STATES];
        for at in 0..n * n {
            transposed[at] = block[at % n * n + at / n];
        }
        let guess = right.root + right.root.abs() * KNOWN_MARGIN;
        let left = perron(n, &transposed[..n * n], Some(guess)).vector;
        // d sp / d theta = y' E' Q x / y' x, and Q x = sp x / E.
        let (mut slope, mut weight) = (0.0, 0.0);
        for (at, &state) in members.iter().enumerate() {
            let both = left[at] * right.vector[at];
            slope += both * growth[state].1 / (1.0 + growth[state].0);
            weight += both;
        }
        let rho = (slope / weight - bound.rho) / theta;
        let sigma = if bound.sigma == 0.0 {
            0.0
        } else {
            let near = theta * 1e-5;
            let at = |theta| self.bound(theta).map_or(bound.sigma, |bound| bound.sigma);
            (at(theta + near) - at(theta - near)) / (2.0 * near)
        };
        rho.is_finite().then_some((bound, Bound { rho, sigma }))
    }

    /// A guess slightly above sp(E Q) - 1, from cached values at the two neighbours on the coarse grid. The logarithm
    /// of sp(E Q) is convex in theta, so interpolation gives a value above it.
    fn guess_above(&self, theta: f64) -> Option<f64> {
        let (low, high) = coarse_neighbours(theta);
        if !(low < theta && high < self.limit) {
            return None;
        }
        let at = |theta: f64| self.bound(theta).map(|bound| theta * bound.rho);
        let share = (theta - low) / (high - low);
        Some((at(low)? * (1.0 - share) + at(high)? * share).exp_m1())
    }

    fn bound_of(&self, theta: f64, root: &Root) -> Bound {
        Bound { rho: root.logarithm / theta, sigma: self.sigma(theta, root) }
    }

    /// The Perron root at a theta. `guess` should be a little above sp(E Q) - 1.
    fn root(&self, theta: f64, guess: Option<f64>) -> Option<Root> {
        if !(theta > 0.0 && theta < self.limit) {
            return None;
        }
        let mut growth = [(0.0, 0.0); MAX_STATES];
        for (state, entry) in self.states.iter().zip(&mut growth) {
            if state.requests.mean() > 0.0 {
                *entry = state.growth(theta);
            }
            if !entry.0.is_finite() {
                return None;
            }
        }
        let mut best: Option<(Perron, usize)> = None;
        for (at, class) in self.classes.iter().enumerate() {
            let block = &self.block(class, &growth)[..class.len() * class.len()];
            let perron = perron(class.len(), block, guess);
            if best.as_ref().is_none_or(|(best, _)| perron.root > best.root) {
                best = Some((perron, at));
            }
        }
        let (perron, class) = best?;
        let logarithm = perron.root.ln_1p();
        logarithm.is_finite().then_some(Root { logarithm, perron, growth, class })
    }

    /// E Q - 1 within a class. The diagonal uses the probability of leaving. Therefore no precision is lost if this
    /// probability and the growth are tiny.
    fn block(&self, class: &[usize], growth: &[(f64, f64); MAX_STATES]) -> [f64; MAX_STATES * MAX_STATES] {
        let (all, n) = (self.states.len(), class.len());
        let mut block = [0.0; MAX_STATES * MAX_STATES];
        for (row, &from) in class.iter().enumerate() {
            let probabilities = &self.transitions[from * all..(from + 1) * all];
            let leave: f64 =
                probabilities.iter().enumerate().filter(|&(to, _)| to != from).map(|(_, p)| p).sum();
            for (column, &to) in class.iter().enumerate() {
                block[row * n + column] = if from == to {
                    growth[from].0 * (1.0 - leave) - leave
                } else {
                    (1.0 + growth[from].0) * probabilities[to]
                };
            }
        }
        block
    }

    fn sigma(&self, theta: f64, Root { perron: right, growth, logarithm, .. }: &Root) -> f64 {
        let n = self.states.len();
        let ordered = growth[..n].windows(2).all(|pair| pair[0].0 <= pair[1].0);
        if self.sigma == Sigma::Zero || n == 1 || (self.monotone && ordered) {
            return 0.0;
        }
        if self.reversible {
            let step: f64 = (0..n).map(|state| self.stationary[state] * growth[state].0).sum();
            return (step.ln_1p() - logarithm).max(0.0) / theta;
        }
        // Converts the vector of E Q to the vector of Q E.
        let h = |state: usize| right.vector[state] / (1.0 + growth[state].0);
        let least = (0..n).map(h).fold(f64::INFINITY, f64::min);
        let mean: f64 = (0..n).map(|state| self.stationary[state] * h(state)).sum();
        (mean / least).ln().max(0.0) / theta
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mmpp::{Requests, Sizes};

    #[test]
    fn the_slope_is_the_derivative_of_the_bound() {
        let state = |requests, mean| State { requests, sizes: Sizes::Exponential { mean } };
        // States that are not in order of their work, so that sigma is not zero.
        let states = vec![
            state(Requests::Poisson(0.3), 2.0),
            state(Requests::Bernoulli(0.1), 1.0),
            state(Requests::Poisson(0.2), 3.0),
        ];
        let rows = [vec![0.9, 0.1, 0.0], vec![0.0, 0.8, 0.2], vec![0.3, 0.0, 0.7]];
        let model = Mmpp::new(1.0, states, &rows, Sigma::Stationary).unwrap();
        for theta in [0.01, 0.1, 0.2, 0.3] {
            let (bound, slope) = model.bound_and_slope(theta).unwrap();
            let near = theta * 1e-5;
            let at = |theta| model.bound(theta).unwrap();
            let rho = (at(theta + near).rho - at(theta - near).rho) / (2.0 * near);
            let sigma = (at(theta + near).sigma - at(theta - near).sigma) / (2.0 * near);
            assert!((bound.rho - at(theta).rho).abs() <= 1e-9 * bound.rho, "{theta}");
            assert!((bound.sigma - at(theta).sigma).abs() <= 1e-9 * bound.sigma, "{theta}");
            assert!(bound.sigma > 0.0);
            assert!((slope.rho - rho).abs() <= 1e-6 * rho.abs(), "{theta}: {} {rho}", slope.rho);
            assert!((slope.sigma - sigma).abs() <= 1e-6 * sigma.abs(), "{theta}");
        }
    }

    #[test]
    fn the_approximate_bound_is_close_and_exact_on_its_grid() {
        let state = |requests, mean| State { requests, sizes: Sizes::Exponential { mean } };
        // In order of requests but not of sizes, so that sigma is zero for some theta and not for others.
        let states = vec![state(Requests::Poisson(0.1), 1.0), state(Requests::Poisson(0.3), 2.0)];
        let rows = [vec![0.9, 0.1], vec![0.2, 0.8]];
        let model = Mmpp::new(1.0, states, &rows, Sigma::Stationary).unwrap();
        for at in 1..400 {
            let theta = f64::from(at) * 1e-3;
            let (approximate, slope) = model.approximate_bound(theta).unwrap();
            let (exact, exact_slope) = model.bound_and_slope(theta).unwrap();
            assert!(
                (approximate.rho - exact.rho).abs() <= 1e-5 * exact.rho,
                "{theta}: {approximate:?} {exact:?}"
            );
            assert!((slope.rho - exact_slope.rho).abs() <= 1e-3 * exact_slope.rho, "{theta}");
            let requests = model.request_excess(theta).unwrap();
            let near = model.approximate_request_excess(theta).unwrap();
            assert!((near - requests).abs() <= 1e-4 * requests, "{theta}: {near} {requests}");
        }
        for theta in [0.25, 0.25 * 1.125, 0.25 * 1.375] {
            let (approximate, exact) =
                (model.approximate_bound(theta).unwrap(), model.bound_and_slope(theta).unwrap());
            assert!((approximate.0.rho - exact.0.rho).abs() <= 1e-9 * exact.0.rho, "{theta}");
            assert!((approximate.1.rho - exact.1.rho).abs() <= 1e-9 * exact.1.rho, "{theta}");
        }
    }
}
