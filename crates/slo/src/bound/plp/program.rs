//! The linear program of PLP for servers one after another (Bouillard, "Trade-off between accuracy and tractability of
//! Network Calculus in FIFO networks", Performance Evaluation 153, 2022, section 4).
//!
//! The analysis follows one bit of the first crossing that leaves the last server. The bit arrived at each server at
//! some moment, and the server's backlog began at some earlier moment. For each of these moments, the last bit that had
//! arrived by then arrived at the previous server at another moment, and so on. The program for n servers therefore has
//! one moment at the end, two at the last server, and n + 1 at the first. Moment k of a server is the arrival time of
//! the bit that leaves it at moment k of the next server. The last moment of each server is the start of its service.
//!
//! ```text
//! variables   t(j, k)   moment k of server j, k = 0 .. n - j, as seconds before the end; t(n, 0) = 0
//!             A(i, k)   work of crossing i that reached its first server from moment k until moment 0. In order of
//!                       arrival, the work that left a server between two moments of the next server had arrived
//!                       between the same two moments of its own server, so A(i, k) is the same at all servers
//! time        t(j, k) <= t(j, k + 1),  t(j + 1, k) <= t(j, k),  A(i, k) <= A(i, k + 1)
//! arrivals    A(i, v) - A(i, u) <= r (t(j, v) - t(j, u)) + b       for u < v, its first server j and each of its buckets
//! service     sum of A(i, n - j) - A(i, n - j - 1) >= R (t(j, n - j) - t(j + 1, n - j - 1) - T)   over the crossings of
//!                                                                  j, for each piece of its service
//! links       sum of A(i, v) - A(i, u) <= C (t(j, v) - t(j, u)) + L   for u < v, over the crossings that reach j by
//!                                                                     one link
//! delays      t(j, k) - t(j + 1, k) <= delay of server j           by total flow analysis
//!             t(first, k) - t(last + 1, k) <= delay of crossing i  by separated flow analysis
//!
//! maximise    t(0, 0)
//! ```
//!
//! PLP++ adds the last two lines. With them the result is at most the smaller result of the two analyses. The
//! result is the bound that the solver's prices prove, not its objective; the two agree to about a millionth.

use leeward_calculus::{Tandem, TokenBucket};
use leeward_solver::{Limits, Program, SolverError, Variable};

/// Largest number of rows for arrivals. Beyond it, curves are pruned to fewer buckets.
const MOST_ROWS: usize = 50_000;

/// Delays from other analyses, in seconds.
pub struct Delays {
    /// Delay at each server.
    pub servers: Vec<f64>,
    /// Delay of each crossing over all of its servers.
    pub crossings: Vec<Option<f64>>,
}

/// Longest delay of the first crossing, in seconds. The program prunes curves to at most `buckets` buckets. Its times
/// are in units of `unit` seconds, which is above 0.
///
/// # Errors
/// [`SolverError`] if the program has no optimum, or if the solver fails.
pub fn longest_delay(
    tandem: &Tandem,
    delays: Option<&Delays>,
    buckets: usize,
    unit: f64,
) -> Result<f64, SolverError> {
    let solution = Moments::new(tandem, unit).program(delays, buckets).minimise(Limits::default(), None)?;
    Ok((-solution.bound * unit).max(0.0))
}

/// Variables and constraints of the program.
struct Moments<'t> {
    tandem: &'t Tandem,
    program: Program,
    /// For each server, and for the end after the last server: the time of each moment, as time before the end. `None`
    /// is 0.
    times: Vec<Vec<Option<Variable>>>,
    /// For each crossing: work that arrived since each moment. `None` is 0.
    arrived: Vec<Vec<Option<Variable>>>,
    /// Units of the program: work per second, and seconds.
    rate: f64,
    unit: f64,
}

type Terms = Vec<(Variable, f64)>;

/// Term of a variable with a factor; no term for 0.
fn term(variable: Option<Variable>, factor: f64) -> Option<(Variable, f64)> {
    variable.map(|variable| (variable, factor))
}

impl<'t> Moments<'t> {
    fn new(tandem: &'t Tandem, unit: f64) -> Moments<'t> {
        let count = tandem.servers.len();
        let mut program = Program::new();
        let times = (0..=count)
            .map(|server| {
                let moments = 0..=count - server;
                let cost = |moment| if server == 0 && moment == 0 { -1.0 } else { 0.0 };
                moments
                    .map(|moment| (server < count).then(|| program.add(cost(moment), 0.0..=f64::INFINITY)))
                    .collect()
            })
            .collect();
        let arrived = (tandem.crossings.iter())
            .map(|crossing| {
                let moments = 0..=count - crossing.first;
                moments.map(|moment| (moment > 0).then(|| program.add(0.0, 0.0..=f64::INFINITY))).collect()
            })
            .collect();
        let rate = tandem.servers.iter().map(|server| server.ends.rate()).fold(0.0, f64::max);
        Moments { tandem, program, times, arrived, rate, unit }
    }

    /// The program. With delays from other analyses, all variables have bounds that real traffic keeps; the solver's
    /// prices then prove a bound without an assumption on the size of variables.
    fn program(mut self, delays: Option<&Delays>, buckets: usize) -> Program {
        self.order();
        self.arrivals(buckets);
        self.links();
        self.service();
        if let Some(delays) = delays {
            self.delays(delays);
            self.ranges(delays);
        }
        self.program
    }

    /// Bounds every variable: by the sum of delays and of the longest backlog periods, and by the work that arrives in
    /// this time. The bounds are twice as large, so they do not determine the result.
    fn ranges(&mut self, delays: &Delays) {
        let total: f64 = delays.servers.iter().sum();
        let crossings = || self.tandem.crossings.iter().enumerate();
        let last = |curve: &leeward_calculus::ArrivalCurve| curve.buckets()[curve.buckets().len() - 1];
        let mut most = total;
        for (at, server) in self.tandem.servers.iter().enumerate() {
            let buckets = crossings().filter(|(_, crossing)| crossing.is_at(at));
            let buckets: Vec<TokenBucket> = buckets.map(|(_, crossing)| last(&crossing.arrivals)).collect();
            let load: f64 = buckets.iter().map(|bucket| bucket.rate()).sum();
            let work: f64 = buckets.iter().map(|bucket| bucket.burst() + bucket.rate() * total).sum();
            let pieces = server.passes_on.pieces().iter().chain(server.ends.pieces());
            let backlog = |rate: f64, latency: f64| (rate * latency + work) / (rate - load).max(0.0);
            most += total + pieces.map(|piece| backlog(piece.rate(), piece.latency())).fold(0.0, f64::max);
        }
        let most = 2.0 * most;
        for &time in self.times.iter().flatten().flatten() {
            self.program.bound(time, 0.0..=most / self.unit);
        }
        for (crossing, arrived) in self.tandem.crossings.iter().zip(&self.arrived) {
            let bucket = last(&crossing.arrivals);
            let work = 2.0 * (bucket.burst() + bucket.rate() * most) / (self.rate * self.unit);
            for &work_since in arrived.iter().flatten() {
                self.program.bound(work_since, 0.0..=work);
            }
        }
    }

    /// Number of moments of a server, or of the end.
    fn moments(&self, server: usize) -> usize {
        self.times[server].len()
    }

    /// Constrains `more` to be at least `less`.
    fn not_below(&mut self, more: Option<Variable>, less: Option<Variable>) {
        let terms: Terms = term(more, 1.0).into_iter().chain(term(less, -1.0)).collect();
        self.program.constrain(0.0..=f64::INFINITY, &terms);
    }

    fn order(&mut self) {
        for server in 0..self.tandem.servers.len() {
            for moment in 1..self.moments(server) {
                self.not_below(self.times[server][moment], self.times[server][moment - 1]);
                self.not_below(self.times[server][moment - 1], self.times[server + 1][moment - 1]);
            }
        }
        for crossing in 0..self.arrived.len() {
            for moment in 1..self.arrived[crossing].len() {
                self.not_below(self.arrived[crossing][moment], self.arrived[crossing][moment - 1]);
            }
        }
    }

    /// Constrains the work of some crossings, between two moments of a server, by a bucket.
    fn within(
        &mut self,
        crossings: &[usize],
        server: usize,
        (from, to): (usize, usize),
        bucket: TokenBucket,
    ) {
        let rate = bucket.rate() / self.rate;
        let mut terms: Terms = Vec::with_capacity(2 * crossings.len() + 2);
        for &crossing in crossings {
            terms.extend(term(self.arrived[crossing][from], 1.0));
            terms.extend(term(self.arrived[crossing][to], -1.0));
        }
        terms.extend(term(self.times[server][from], -rate));
        terms.extend(term(self.times[server][to], rate));
        let burst = bucket.burst() / (self.rate * self.unit);
        self.program.constrain(f64::NEG_INFINITY..=burst, &terms);
    }

    /// All pairs of moments of a server, the earlier first.
    fn pairs(&self, server: usize) -> Vec<(usize, usize)> {
        (0..self.moments(server)).flat_map(|from| (0..from).map(move |to| (from, to))).collect()
    }

    fn arrivals(&mut self, buckets: usize) {
        let tandem = self.tandem;
        let pairs: usize = tandem.crossings.iter().map(|crossing| self.pairs(crossing.first).len()).sum();
        let most = buckets.min(MOST_ROWS / pairs.max(1)).max(1);
        for (at, crossing) in tandem.crossings.iter().enumerate() {
            let pruned = crossing.arrivals.prune_to(most).map(|pruned| pruned.curve);
            let curve = pruned.as_ref().unwrap_or(&crossing.arrivals);
            for pair in self.pairs(crossing.first) {
                for &bucket in curve.buckets() {
                    self.within(&[at], crossing.first, pair, bucket);
                }
            }
        }
    }

    fn links(&mut self) {
        let tandem = self.tandem;
        let crossings = |keep: &dyn Fn(&leeward_calculus::Crossing) -> bool| -> Vec<usize> {
            (0..tandem.crossings.len()).filter(|&crossing| keep(&tandem.crossings[crossing])).collect()
        };
        for (link, &bucket) in tandem.links.iter().enumerate() {
            let by = crossings(&|crossing| crossing.link == Some(link));
            if let Some(&first) = by.first() {
                let server = tandem.crossings[first].first;
                for pair in self.pairs(server) {
                    self.within(&by, server, pair, bucket);
                }
            }
        }
        for (server, before) in (1..).zip(&tandem.servers[..tandem.servers.len() - 1]) {
            let by = crossings(&|crossing| crossing.is_at(server - 1) && crossing.is_at(server));
            for pair in self.pairs(server) {
                if let Some(link) = before.link {
                    self.within(&by, server, pair, link);
                }
            }
        }
    }

    fn service(&mut self) {
        let tandem = self.tandem;
        for (at, server) in tandem.servers.iter().enumerate() {
            let last = self.moments(at) - 1;
            let service = if at + 1 == tandem.servers.len() { &server.ends } else { &server.passes_on };
            let mut served: Terms = Vec::new();
            for (index, _) in tandem.crossings.iter().enumerate().filter(|(_, crossing)| crossing.is_at(at)) {
                served.extend(term(self.arrived[index][last], 1.0));
                served.extend(term(self.arrived[index][last - 1], -1.0));
            }
            for piece in service.pieces() {
                let rate = piece.rate() / self.rate;
                let mut terms = served.clone();
                terms.extend(term(self.times[at][last], -rate));
                terms.extend(term(self.times[at + 1][last - 1], rate));
                self.program.constrain(-rate * piece.latency() / self.unit..=f64::INFINITY, &terms);
            }
        }
    }

    /// Constrains the time from each moment of a server to the same moment of a later server, or of the end,
    /// to at most `seconds`.
    fn at_most(&mut self, server: usize, after: usize, seconds: f64) {
        for moment in 0..self.moments(after) {
            let terms = term(self.times[server][moment], 1.0).into_iter();
            let terms: Terms = terms.chain(term(self.times[after][moment], -1.0)).collect();
            self.program.constrain(f64::NEG_INFINITY..=seconds / self.unit, &terms);
        }
    }

    fn delays(&mut self, delays: &Delays) {
        for (server, &seconds) in delays.servers.iter().enumerate() {
            self.at_most(server, server + 1, seconds);
        }
        let tandem = self.tandem;
        for (crossing, seconds) in tandem.crossings.iter().zip(&delays.crossings) {
            if let &Some(seconds) = seconds {
                self.at_most(crossing.first, crossing.last + 1, seconds);
            }
        }
    }
}
