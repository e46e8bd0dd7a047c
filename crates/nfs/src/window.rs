//! Latencies of the last time: of 30 to 60 seconds, so that a percentile of many requests is one, and an old one goes.

use leeward_fabric::Nanos;
use leeward_promises::Latency;
use leeward_requests::LatencyHistogram;

/// Time after which a histogram is no longer added to. The one before it still counts.
const HALF: Nanos = Nanos(30 * Nanos::SECOND.0);

/// Latencies of the last time.
#[derive(Clone, Debug, Default)]
pub struct Window {
    latest: LatencyHistogram,
    before: LatencyHistogram,
    /// Start of the latest one.
    began: Nanos,
}

impl Window {
    /// Counts a latency in nanoseconds.
    pub fn add(&mut self, now: Nanos, latency: u64) {
        self.turn(now);
        self.latest.add(latency);
    }

    /// Latencies at percentiles, in percent; none without requests.
    pub fn latencies(&mut self, now: Nanos, percentiles: &[f64]) -> Vec<Latency> {
        self.turn(now);
        let mut both = self.before.clone();
        both.add_all(&self.latest);
        let latency = |&percentile: &f64| {
            let seconds = Nanos(both.percentile(percentile)?).as_secs_f64();
            Some(Latency { percentile, seconds })
        };
        percentiles.iter().filter_map(latency).collect()
    }

    /// Begins another histogram if it is time.
    fn turn(&mut self, now: Nanos) {
        let age = now.since(self.began);
        if age < HALF {
            return;
        }
        std::mem::swap(&mut self.latest, &mut self.before);
        self.latest.clear();
        if age.0 >= 2 * HALF.0 {
            self.before.clear();
        }
        self.began = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_count_for_half_a_minute_to_a_minute() {
        let second = |seconds: u64| Nanos(seconds * Nanos::SECOND.0);
        let mut window = Window::default();
        assert_eq!(window.latencies(second(0), &[50.0]), []);
        (1..=10).for_each(|millis| window.add(second(1), millis * 1_000_000));
        let shown = |window: &mut Window, at| {
            let latencies = window.latencies(second(at), &[50.0, 99.9]);
            latencies.iter().map(|one| (one.percentile, (one.seconds * 1e3).floor())).collect::<Vec<_>>()
        };
        assert_eq!(shown(&mut window, 29), [(50.0, 5.0), (99.9, 10.0)]);
        window.add(second(31), 100_000_000);
        assert_eq!(shown(&mut window, 60), [(50.0, 6.0), (99.9, 100.0)]);
        assert_eq!(shown(&mut window, 62), [(50.0, 100.0), (99.9, 100.0)]);
        assert_eq!(shown(&mut window, 130), []);
        // After a pause, nothing is left of the time before it.
        window.add(second(131), 1_000_000);
        assert_eq!(shown(&mut window, 300), []);
    }
}
