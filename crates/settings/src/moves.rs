//! Settings of tasks and their moves: demand from history, and the test for links from which tasks move.

use leeward_engine::HistorySettings;
use leeward_fabric::Nanos;
use leeward_fabric::input::excerpt;
use leeward_moves::{HotLoad, HotTest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bounds on the window of a history, and on the time limit of a move.
const SHORTEST_WINDOW: Nanos = Nanos(300 * Nanos::SECOND.0);
const LONGEST_WINDOW: Nanos = Nanos(31 * 86_400 * Nanos::SECOND.0);
const LONGEST_TIMEOUT: Nanos = Nanos(86_400 * Nanos::SECOND.0);
/// Largest number of characters of the name of an executor.
const LONGEST_NAME: usize = 200;

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
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let HistoryOptions { window, percentile } = *self;
        if window < SHORTEST_WINDOW || window > LONGEST_WINDOW {
            return Err(("window", format!("{window}: expected {SHORTEST_WINDOW} to {LONGEST_WINDOW}")));
        }
        if !(percentile > 0.0 && percentile <= 1.0) {
            return Err(("percentile", format!("{percentile}: expected a share above 0, at most 1")));
        }
        Ok(())
    }

    /// Settings of the engine's history.
    pub fn settings(&self) -> HistorySettings {
        HistorySettings { window: self.window, percentile: self.percentile }
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
    /// Name of the executor of moves that the hook takes.
    pub name: String,
    /// Address that receives a POST request for each advised move, such as `http://scheduler:8080/moves`.
    pub url: String,
    /// HTTP client configuration: credentials and trusted authorities, in the format of promtool's
    /// `--http.config.file`.
    pub http: Option<String>,
    /// Time limit of a request; below the time limit for the first answer to a move.
    pub timeout: Nanos,
}

impl Default for HookSettings {
    fn default() -> Self {
        let (name, url, timeout) = ("hook".to_owned(), String::new(), Nanos(10 * Nanos::SECOND.0));
        HookSettings { name, url, http: None, timeout }
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
        let Some(HookSettings { name, timeout, .. }) = &self.hook else { return Ok(()) };
        if name.is_empty() || name.chars().count() > LONGEST_NAME {
            return Err((
                "hook.name",
                format!("`{}`: expected 1 to {LONGEST_NAME} characters", excerpt(name)),
            ));
        }
        if *timeout == Nanos(0) || *timeout >= self.timeout {
            let most = self.timeout;
            let message =
                format!("{timeout}: expected a positive time below `moves.timeout`, which is {most}");
            return Err(("hook.timeout", message));
        }
        Ok(())
    }

    /// The options as all clients may see them: the hook's address without its path, which may contain a secret, and
    /// without the file of its credentials.
    pub fn public(&self) -> MoveOptions {
        let hook = self.hook.as_ref().map(|hook| {
            let url = hook.url.trim().splitn(4, '/').take(3).collect::<Vec<&str>>().join("/");
            HookSettings { url, http: None, ..hook.clone() }
        });
        MoveOptions { hook, ..self.clone() }
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

    #[test]
    fn a_request_of_a_hook_is_shorter_than_the_time_limit_of_a_move() {
        let wrong = |timeout: u64, name: &str| {
            let timeout = Nanos(timeout * Nanos::SECOND.0);
            let hook = HookSettings { timeout, name: name.to_owned(), ..HookSettings::default() };
            let moves = MoveOptions { hook: Some(hook), ..MoveOptions::default() };
            moves.check().err().map(|(field, _)| field)
        };
        assert_eq!(wrong(299, "hook"), None);
        assert_eq!(wrong(300, "hook"), Some("hook.timeout"));
        assert_eq!(wrong(0, "hook"), Some("hook.timeout"));
        assert_eq!(wrong(10, ""), Some("hook.name"));
        assert_eq!(wrong(10, &"é".repeat(201)), Some("hook.name"));
    }

    #[test]
    fn clients_see_neither_the_path_of_a_hook_nor_its_credentials() {
        for (url, shown) in [
            ("https://chat.example/services/SECRET/x", "https://chat.example"),
            ("http://scheduler:8080", "http://scheduler:8080"),
            (" http://scheduler:8080/", "http://scheduler:8080"),
        ] {
            let http = Some("credentials.yaml".to_owned());
            let hook = HookSettings { url: url.to_owned(), http, ..HookSettings::default() };
            let moves = MoveOptions { hook: Some(hook), ..MoveOptions::default() };
            let hook = moves.public().hook.expect("a hook");
            assert_eq!((hook.url.as_str(), hook.http), (shown, None));
        }
    }
}
