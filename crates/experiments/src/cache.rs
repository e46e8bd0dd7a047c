//! Synthetic traces of lookups in a cache. They follow the description of private traces in the thesis (SLO
//! section 4.3.2). A trace has 100 to 600 thousand requests in half an hour, and a peak rate of 2 to 6 times the mean
//! (SLO figure 4.9). Objects have at most 256 KB, and 28 KB on average.
//!
//! The rate alternates between calm periods and bursts, which last seconds (SLO section 4.1). Each burst has its own
//! height. Within a period, requests arrive as a Poisson process. The thesis gives neither the lengths and gaps of bursts
//! nor the distribution of sizes, so [`CacheShape::of`] has our own values for them.

use leeward_fabric::Nanos;
use leeward_registry::random::{Kind, stream};
use leeward_traces::Request;
use leeward_traces::synthetic::{Shape, Sizes, Synthetic};
use rand::RngExt;
use rand_distr::Exp1;

use super::ExperimentError;

const CACHE: Kind = Kind::named("study-cache");

/// Largest expected number of requests of a trace.
const MOST_REQUESTS: f64 = 1e8;

/// Properties of synthetic traces. Values are drawn uniformly from ranges, once for each trace.
#[derive(Clone, PartialEq, Debug)]
pub struct CacheShape {
    /// Length in seconds.
    pub seconds: f64,
    /// Range of the mean number of requests per second.
    pub rate: (f64, f64),
    /// Range of the highest possible rate of a burst, as a multiple of the calm rate. The ratio of the peak rate to the
    /// mean rate is slightly lower.
    pub height: (f64, f64),
    /// Mean length of a burst, in seconds.
    pub burst: f64,
    /// Mean time between bursts, in seconds.
    pub calm: f64,
    /// Sizes of objects.
    pub sizes: Sizes,
}

impl CacheShape {
    /// Returns the properties of a trace of `seconds`: those in the thesis, and our own values for the others.
    pub fn of(seconds: f64) -> CacheShape {
        CacheShape {
            seconds,
            rate: (55.0, 300.0),
            height: (2.0, 7.0),
            burst: 2.0,
            calm: 20.0,
            sizes: Sizes::LogNormal { mean: 28e3, c2: 2.0, largest: 256 << 10 },
        }
    }

    /// Generates the requests of trace number `index` of a seed. All requests are reads.
    ///
    /// # Errors
    /// Returns an error for a property out of its range.
    pub fn draw(&self, seed: u64, index: u64) -> Result<Vec<Request>, ExperimentError> {
        let positive = |name: &str, value: f64| {
            let problem = format!("{value}: expected a number from 1e-3 to 1e6");
            if (1e-3..=1e6).contains(&value) { Ok(()) } else { Err(ExperimentError::draw(name, problem)) }
        };
        let fields = [("seconds", self.seconds), ("burst", self.burst), ("calm", self.calm)];
        let ranges = [("rate", self.rate), ("height", self.height)];
        fields.into_iter().try_for_each(|(name, value)| positive(name, value))?;
        ranges.into_iter().try_for_each(|(name, (least, most))| {
            positive(name, least).and_then(|()| positive(name, most))?;
            let problem = format!("{least} to {most}: expected the lower value first");
            if least <= most { Ok(()) } else { Err(ExperimentError::draw(name, problem)) }
        })?;
        let most = self.rate.1 * self.seconds;
        if most > MOST_REQUESTS {
            let problem = format!("up to {most} requests: expected at most {MOST_REQUESTS}");
            return Err(ExperimentError::draw("seconds", problem));
        }
        let mut random = stream(seed, CACHE, index);
        let mut between = |(least, most): (f64, f64)| least + (most - least) * random.random::<f64>();
        let (rate, highest) = (between(self.rate), between(self.height));
        // Times at which the rate changes, each with the integral of the rate so far; the calm rate is 1.
        let (mut at, mut area, mut changes) = (0.0, 0.0, vec![(0.0, 0.0)]);
        let mut calm = true;
        while at < self.seconds {
            let mean = if calm { self.calm } else { self.burst };
            let height = if calm { 1.0 } else { 1.0 + (highest - 1.0) * random.random::<f64>() };
            let length = (mean * random.sample::<f64, _>(Exp1)).min(self.seconds - at);
            (at, area, calm) = (at + length, area + length * height, !calm);
            changes.push((at, area));
        }
        let shape = Shape {
            rate,
            gap_c2: 1.0,
            bursts: None,
            sizes: self.sizes.clone(),
            read_share: 1.0,
            sequential_share: 0.0,
            volume: 1 << 40,
        };
        let steady = Synthetic::new(shape, random.random()).map_err(|error| {
            let problem = error.to_string();
            ExperimentError::draw("sizes", problem)
        })?;
        // Map a steady Poisson process to the varying rate. For example, a request at 30 % of the trace's length moves
        // to the time at which the integral of the rate reaches 30 % of its total.
        let (mut period, end) = (0, Nanos::from_secs_f64(self.seconds));
        let requests = steady.take_while(|request| request.at < end).map(|request| {
            let target = request.at.as_secs_f64() / self.seconds * area;
            while period + 2 < changes.len() && changes[period + 1].1 <= target {
                period += 1;
            }
            let ((from, before), (to, after)) = (changes[period], changes[period + 1]);
            let along = if after > before { (target - before) / (after - before) } else { 0.0 };
            Request { at: Nanos::from_secs_f64(from + (to - from) * along.clamp(0.0, 1.0)), ..request }
        });
        Ok(requests.collect())
    }
}
