//! Cross traffic on a path, in equivalent connections (Choreo, section 3.2).
//!
//! If a path has the rate `c1` and a connection gets only `c2` of it, the connection shares the path with the
//! equivalent of `c = c1/c2 - 1` other backlogged connections. The value measures load; it does not count connections.
//!
//! The formula assumes that TCP divides a link evenly. It does not at first: for some seconds, a new connection may get
//! a multiple of the rate of one that runs for longer (BBR), or a part of it. The own connection is the newest of all, so
//! its share misleads. Two own connections therefore run, of which one begins later. The earlier one is like those of
//! others, so there are n = (c1 - y - z)/y of them, if the earlier one gets y and the later one z. The ratio z/y is the
//! *advantage* of a new connection. With even shares, n is c.

use serde::{Deserialize, Serialize};

/// Share that a second connection must take from the first for a valid estimate. Below it, either more than fifty
/// equivalent connections compete or the limit of the path is elsewhere. The value is a choice of this project.
const LEAST_EFFECT: f64 = 0.02;

/// Competing traffic on a path.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cross {
    /// c, the equivalent number of backlogged connections; never below 0.
    pub connections: f64,
    /// c1, the rate of the path in bits per second.
    pub path_bps: f64,
}

impl Cross {
    /// Computes the equivalent number of connections from the path's rate and the rate of one connection; both must be
    /// positive.
    pub fn from_path_rate(path_bps: f64, seen_bps: f64) -> Cross {
        Cross { connections: (path_bps / seen_bps - 1.0).max(0.0), path_bps }
    }

    /// Computes the number of connections for an unknown path rate. One connection alone gets `one_bps`. While a second
    /// one runs that began later, the first gets `earlier_bps` and the second `later_bps`. With x and y for the first
    /// two rates and the advantage a, `x = c1 a/(a + n)` and `y = c1/(1 + a + n)`, so `n = a ((1 + a) y - x)/(x - a y)`.
    /// Without an advantage these are `c = (2y - x)/(x - y)` and `c1 = x (c + 1)`. Returns `None` if the second connection
    /// took no rate from others by more than noise; then no shared link limits the two.
    pub fn from_two_connections(one_bps: f64, earlier_bps: f64, later_bps: f64) -> Option<Cross> {
        let (x, y) = (one_bps, earlier_bps);
        let a = advantage(earlier_bps, later_bps)?;
        let valid = x > 0.0 && x - a * y > LEAST_EFFECT * x;
        valid.then(|| {
            let connections = (a * ((1.0 + a) * y - x) / (x - a * y)).max(0.0);
            Cross { connections, path_bps: x * (a + connections) / a }
        })
    }

    /// Computes the number of connections that share a path of this rate with two own ones, each with the rate of the
    /// earlier own one. `None` if the earlier one gets nothing.
    pub fn beside_two(path_bps: f64, earlier_bps: f64, later_bps: f64) -> Option<Cross> {
        let connections = ((path_bps - earlier_bps - later_bps) / earlier_bps).max(0.0);
        (earlier_bps > 0.0 && connections.is_finite()).then_some(Cross { connections, path_bps })
    }

    /// Rate of each of `own` connections beside the competing traffic.
    pub fn each_bps(&self, own: u32) -> f64 {
        self.path_bps / (self.connections + f64::from(own.max(1)))
    }

    /// Smallest and largest equivalent number of connections if one connection gets from `low_bps` to `high_bps`; both
    /// must be positive. A connection that gets 450 of 1,000 Mb/s has one competitor; at 90 Mb/s there may be ten or
    /// eleven.
    pub fn plausible(&self, low_bps: f64, high_bps: f64) -> (f64, f64) {
        let at = |seen: f64| Cross::from_path_rate(self.path_bps, seen).connections;
        (at(high_bps), at(low_bps))
    }
}

/// Rate of a connection relative to another one that began earlier; `None` without data.
pub fn advantage(earlier_bps: f64, later_bps: f64) -> Option<f64> {
    (earlier_bps > 0.0 && later_bps > 0.0).then(|| later_bps / earlier_bps)
}

/// Equivalent number of connections over time, from the throughput of one connection in time windows. A window without
/// data gives `None`.
pub fn over_time(path_bps: f64, windows_bps: &[f64]) -> Vec<Option<f64>> {
    let one = |&seen: &f64| (seen > 0.0).then(|| Cross::from_path_rate(path_bps, seen).connections);
    windows_bps.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_the_paper() {
        assert_eq!(Cross::from_path_rate(1e9, 250e6).connections, 3.0);
        // The measured rates have a relative error of 10 %.
        let (least, most) = Cross::from_path_rate(1e9, 450e6).plausible(405e6, 495e6);
        assert_eq!((least.round(), most.round()), (1.0, 1.0));
        let (least, most) = Cross::from_path_rate(1e9, 90e6).plausible(81e6, 99e6);
        assert!(least < 10.0 && most > 11.0);
        // 100 Mb/s of other traffic on a path of 1000 Mb/s: no competitor is counted, and two connections get 450 each.
        let light = Cross::from_path_rate(900e6, 900e6);
        assert_eq!((light.connections, light.each_bps(2)), (0.0, 450e6));
    }

    #[test]
    fn a_new_connection_that_takes_most_of_a_path_does_not_hide_a_competitor() {
        // Measured with BBR on a path of 38.26 Mb/s: a new connection gets 26.8 Mb/s beside one or two others.
        assert!((Cross::from_path_rate(38.26e6, 26.8e6).connections - 0.43).abs() < 0.01);
        assert!((Cross::beside_two(38.26e6, 6.0e6, 26.8e6).unwrap().connections - 0.91).abs() < 0.01);
        assert_eq!(Cross::from_two_connections(26.8e6, 6.0e6, 26.8e6), None, "the path's rate is unknown");
        assert_eq!(Cross::beside_two(1e9, 0.0, 5e8), None);
        assert_eq!(Cross::beside_two(1e9, 6e8, 6e8).unwrap().connections, 0.0);
    }

    #[test]
    fn a_second_connection_without_effect_gives_no_estimate() {
        assert_eq!(Cross::from_two_connections(1e9, 1e9, 1e9), None);
        assert_eq!(Cross::from_two_connections(1e9, 1.2e9, 1.2e9), None);
        assert_eq!(Cross::from_two_connections(1e9, 0.5e9, 1e9), None, "the path may not be full");
        assert_eq!(Cross::from_two_connections(0.0, 0.0, 0.0), None);
        assert_eq!(over_time(1e9, &[5e8, 0.0]), [Some(1.0), None]);
    }

    proptest! {
        #[test]
        fn competing_connections_on_an_evenly_shared_link_are_counted(
            path in 1e6..1e11, others in 0..40_u32, own in 1..20_u32,
        ) {
            let shared = |own: u32| path / f64::from(others + own);
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.max(1.0);
            let known = Cross::from_path_rate(path, shared(1));
            prop_assert!(close(known.connections, f64::from(others)), "{known:?}");
            prop_assert!(close(known.each_bps(own), shared(own)));
            let found = Cross::from_two_connections(shared(1), shared(2), shared(2)).unwrap();
            prop_assert!(close(found.connections, f64::from(others)), "{found:?}");
            prop_assert!(close(found.path_bps, path), "{found:?}");
            let (least, most) = found.plausible(0.95 * shared(1), 1.05 * shared(1));
            prop_assert!(least <= found.connections && found.connections <= most);
        }

        #[test]
        fn an_advantage_of_later_connections_is_corrected(
            path in 1e6..1e11, others in 0..20_u32, by in 0.3..4.0_f64,
        ) {
            // The others and the first own connection weigh 1, the newest one `by`; alone, the first is the newest.
            let others = f64::from(others);
            let (one, earlier) = (path * by / (by + others), path / (1.0 + by + others));
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.max(1.0);
            let known = Cross::beside_two(path, earlier, by * earlier).unwrap();
            prop_assert!(close(known.connections, others), "{known:?}");
            prop_assert!(close(advantage(earlier, by * earlier).unwrap(), by));
            let found = Cross::from_two_connections(one, earlier, by * earlier).unwrap();
            prop_assert!(close(found.connections, others) && close(found.path_bps, path), "{found:?}");
        }

        #[test]
        fn any_rates_give_numbers(one: f64, earlier: f64, later: f64) {
            if let Some(found) = Cross::from_two_connections(one, earlier, later).filter(|_| one.is_finite()) {
                prop_assert!(found.connections >= 0.0, "{found:?}");
            }
        }
    }
}
