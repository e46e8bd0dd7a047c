//! Settings of tasks and their moves: demand from history, and the test for links from which tasks move.

use leeward_engine::HistorySettings;
use leeward_fabric::Nanos;
use leeward_placement::moves::{HotLoad, HotTest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bounds on the window of a history, and on the time limit of a move.
const SHORTEST_WINDOW: Nanos = Nanos(300 * Nanos::SECOND.0);
const LONGEST_WINDOW: Nanos = Nanos(31 * 86_400 * Nanos::SECOND.0);
const LONGEST_TIMEOUT: Nanos = Nanos(86_400 * Nanos::SECOND.0);

/// Demand from history: a percentile of the traffic that the tasks of a job had, if it exceeds the stated demand (Hotspots
/// section 5.1). The paper gives neither default.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HistoryOptions {
    /// Time for which reported rates of tasks count, from 5min to 31d.
    pub window: Nanos,
    /// Percentile that estimates the peak, as a share above 0.
    pub percentile: f64,
}

impl Default for HistoryOptions {
    fn default() -> Self {
        HistoryOptions { window: Nanos(86_400 * Nanos::SECOND.0), percentile: 0.98 }
    }
}

impl HistoryOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// Returns the field and a message.
    pub fn check(&self) -> Result<HistorySettings, (&'static str, String)> {
        let HistoryOptions { window, percentile } = *self;
        if window < SHORTEST_WINDOW || window > LONGEST_WINDOW {
            return Err(("window", format!("{window}: expected {SHORTEST_WINDOW} to {LONGEST_WINDOW}")));
        }
        if !(percentile > 0.0 && percentile <= 1.0) {
            return Err(("percentile", format!("{percentile}: expected a share above 0, at most 1")));
        }
        Ok(HistorySettings { window, percentile })
    }
}

/// Moves of tasks from hot links.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MoveOptions {
    /// Load that must exceed `ledger.hot`: the mean of the last `window` alone (Hotspots section 3.1), or the `estimate`,
    /// which follows windows more slowly.
    pub load: HotLoad,
    /// Number of consecutive hot windows before tasks move.
    pub windows: u32,
    /// Number of intervals for which a moved task stays.
    pub cooldown: u32,
    /// Time limit for the first answer to an advised move, and again for the move after an executor took it.
    pub timeout: Nanos,
    /// Address that receives each advised move, for a system without an executor of its own.
    pub hook: Option<HookSettings>,
}

/// A hook for advised moves.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HookSettings {
    /// Address that receives a POST request for each advised move, such as `http://scheduler:8080/moves`.
    pub url: String,
    /// HTTP client configuration: credentials and trusted authorities, in the format of promtool's
    /// `--http.config.file`.
    pub http: Option<String>,
    /// Time limit of a request.
    pub timeout: Nanos,
}

impl Default for HookSettings {
    fn default() -> Self {
        HookSettings { url: String::new(), http: None, timeout: Nanos(10 * Nanos::SECOND.0) }
    }
}

impl Default for MoveOptions {
    fn default() -> Self {
        let timeout = Nanos(300 * Nanos::SECOND.0);
        MoveOptions { load: HotLoad::Window, windows: 1, cooldown: 10, timeout, hook: None }
    }
}

impl MoveOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// Returns the field and a message.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if self.windows == 0 {
            return Err(("windows", "0: expected at least 1".to_owned()));
        }
        if self.timeout == Nanos(0) || self.timeout > LONGEST_TIMEOUT {
            let message = format!("{}: expected a positive time, at most {LONGEST_TIMEOUT}", self.timeout);
            return Err(("timeout", message));
        }
        match &self.hook {
            Some(HookSettings { timeout: Nanos(0), .. }) => {
                Err(("hook.timeout", "0s: expected a positive time".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Test for the links from which tasks move.
    pub fn test(&self) -> HotTest {
        HotTest { load: self.load, windows: self.windows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_out_of_range_are_named() {
        let wrong = |window: u64, percentile: f64| {
            let window = Nanos(window * Nanos::SECOND.0);
            HistoryOptions { window, percentile }.check().err().map(|(field, _)| field)
        };
        assert_eq!(wrong(86_400, 0.98), None);
        assert_eq!(wrong(299, 0.98), Some("window"));
        assert_eq!(wrong(86_400, 0.0), Some("percentile"));
        assert_eq!(wrong(86_400, f64::NAN), Some("percentile"));
        let moves = |windows: u32, timeout: u64| {
            let moves = MoveOptions { windows, timeout: Nanos(timeout), ..MoveOptions::default() };
            moves.check().err().map(|(field, _)| field)
        };
        assert_eq!(moves(1, 1), None);
        assert_eq!(moves(0, 1), Some("windows"));
        assert_eq!(moves(1, 0), Some("timeout"));
    }
}
