//! Command-line flags of a service, which override its settings file.

use leeward_fabric::input::{InputError, excerpt, read_text};
use leeward_moves::HotLoad;
use leeward_records::{Mode, Modes};
use leeward_store::Durability;

use super::{LimitSettings, Settings};

/// Command-line flags, not parsed yet. `None` leaves a setting to the file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Flags {
    /// `--config`: the settings file.
    pub config: Option<String>,
    /// `--cluster`.
    pub cluster: Option<String>,
    /// `--listen`.
    pub listen: Option<String>,
    /// `--admin-listen`.
    pub admin_listen: Option<String>,
    /// `--policy`.
    pub policy: Option<String>,
    /// `--task-policy`.
    pub task_policy: Option<String>,
    /// `--moves`.
    pub moves: Option<String>,
    /// `--mode`: the mode of all kinds.
    pub mode: Option<String>,
    /// `--off-file`.
    pub off_file: Option<String>,
    /// `--interval`.
    pub interval: Option<String>,
    /// `--seed`.
    pub seed: Option<u64>,
    /// `--store`.
    pub store: Option<String>,
    /// `--durable`.
    pub durable: Option<String>,
    /// `--tokens`.
    pub tokens: Option<String>,
    /// `--prometheus`: the address.
    pub prometheus: Option<String>,
    /// `--map`.
    pub map: Option<String>,
    /// `--http`.
    pub http: Option<String>,
    /// `--demo`: a client may publish a comparison, which the pages show. Jobs of a demo state their peaks as a history
    /// would show them, and tasks move by the estimates, as in the demo's simulation.
    pub demo: bool,
}

impl Flags {
    /// Merges the flags over the file, or over the defaults without a file.
    ///
    /// # Errors
    /// [`InputError`] with the file, the line and the field, or with the flag.
    pub fn settings(&self) -> Result<Settings, InputError> {
        let mut settings = match &self.config {
            Some(file) => Settings::from_text(file, &read_text(file)?)?,
            None => Settings::default(),
        };
        let flag = |flag: &Option<String>, field: &mut String| {
            if let Some(given) = flag {
                given.clone_into(field);
            }
        };
        flag(&self.listen, &mut settings.listen);
        flag(&self.policy, &mut settings.policies.replicas);
        flag(&self.task_policy, &mut settings.policies.tasks);
        settings.policies.moves = self.moves.clone().or(settings.policies.moves);
        if let Some(mode) = &self.mode {
            let mode: Mode = mode.parse().map_err(|message: String| InputError::new("--mode", message))?;
            settings.modes = Modes { moves: mode.by_rack(), ..Modes::all(mode) };
        }
        settings.off_file = self.off_file.clone().or(settings.off_file);
        settings.admin_listen = self.admin_listen.clone().or(settings.admin_listen);
        settings.cluster = self.cluster.clone().or(settings.cluster);
        settings.store = self.store.clone().or(settings.store);
        settings.tokens = self.tokens.clone().or(settings.tokens);
        if [&self.prometheus, &self.map, &self.http].into_iter().any(Option::is_some) {
            let prometheus = settings.telemetry.prometheus.get_or_insert_default();
            prometheus.url = self.prometheus.clone().or(prometheus.url.take());
            prometheus.map = self.map.clone().or(prometheus.map.take());
            prometheus.http = self.http.clone().or(prometheus.http.take());
        }
        settings.seed = self.seed.unwrap_or(settings.seed);
        if let Some(interval) = &self.interval {
            let wrong = |error| InputError::new("--interval", error);
            settings.interval = interval.parse().map_err(|error| wrong(format!("{error}")))?;
        }
        if let Some(durable) = &self.durable {
            settings.durability = match durable.as_str() {
                "process" => Durability::Process,
                "power" => Durability::Power,
                other => {
                    let message = format!("`{}`: expected process or power", excerpt(other));
                    return Err(InputError::new("--durable", message));
                }
            };
        }
        if self.demo {
            (settings.history, settings.moves.load) = (None, HotLoad::Estimate);
        }
        self.check(&settings)?;
        Ok(settings)
    }

    /// Error in a field, under the name that the user gave: a flag, or a field of the file.
    pub fn wrong(&self, field: &str, message: impl Into<String>) -> InputError {
        let (flag, given) = match field {
            "cluster" => ("--cluster", self.cluster.is_some()),
            "listen" => ("--listen", self.listen.is_some()),
            "admin_listen" => ("--admin-listen", self.admin_listen.is_some()),
            "policies.replicas" => ("--policy", self.policy.is_some()),
            "policies.tasks" => ("--task-policy", self.task_policy.is_some()),
            "policies.moves" => ("--moves", self.moves.is_some()),
            field if field.starts_with("modes.") => ("--mode", self.mode.is_some()),
            "off_file" => ("--off-file", self.off_file.is_some()),
            "interval" => ("--interval", self.interval.is_some()),
            "store" => ("--store", self.store.is_some()),
            "tokens" => ("--tokens", self.tokens.is_some()),
            "telemetry.prometheus.url" => ("--prometheus", self.prometheus.is_some()),
            "telemetry.prometheus.map" => ("--map", self.map.is_some()),
            _ => ("--config", false),
        };
        match &self.config {
            Some(file) if !given => InputError::new(file.as_str(), message.into()).in_field(field),
            _ => InputError::new(flag, message.into()),
        }
    }

    fn check(&self, settings: &Settings) -> Result<(), InputError> {
        let LimitSettings { connections, streams, body, patience, requests_per_s } = settings.limits;
        let positive = [
            ("limits.connections", connections.map_or(1, u64::from)),
            ("limits.streams", u64::from(streams)),
            ("limits.body", body.0),
            ("limits.patience", patience.0),
            ("limits.requests_per_s", requests_per_s.map_or(1, u64::from)),
        ];
        match positive.into_iter().find(|&(_, value)| value == 0) {
            Some((field, _)) => Err(self.wrong(field, "0: expected more than nothing")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_override_defaults_and_errors_name_the_flag() {
        let flags = Flags { listen: Some("[::1]:1".to_owned()), ..Flags::default() };
        assert_eq!(flags.settings().expect("valid flags").listen, "[::1]:1");
        let flags = Flags { durable: Some("always".to_owned()), ..Flags::default() };
        assert_eq!(flags.settings().expect_err("an error").file, "--durable");
        let flags = Flags { interval: Some("soon".to_owned()), ..Flags::default() };
        assert_eq!(flags.settings().expect_err("an error").file, "--interval");
    }

    #[test]
    fn a_demo_has_neither_a_history_nor_moves_by_windows() {
        let of = |demo: bool| Flags { demo, ..Flags::default() }.settings().expect("valid flags");
        let (demo, other) = (of(true), of(false));
        assert_eq!((demo.history, demo.moves.load), (None, HotLoad::Estimate));
        assert!(other.history.is_some() && other.moves.load == HotLoad::Window);
    }
}
