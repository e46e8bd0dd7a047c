//! Policies of a service by name: created once for validation, and again for each engine.

use std::sync::Arc;

use leeward_engine::Policies;
use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_hooks::Hook;
use leeward_moves as moves;
use leeward_placement::replicas::SinbadSettings;
use leeward_placement::{replicas, tasks};
use leeward_registry::{PolicySpec, RegistryError, setting_error, settings};
use leeward_service::{AdmissionPolicies, PolicyLabels};
use leeward_slo::{admit, limits};

use super::Configured;
use leeward_settings::{Flags, Settings};

/// Policies that the settings name, validated.
pub struct ChosenPolicies {
    replicas: PolicySpec,
    tasks: PolicySpec,
    moves: Option<PolicySpec>,
    default_replicas: PolicySpec,
    default_tasks: PolicySpec,
    admission: AdmissionPolicies,
}

impl ChosenPolicies {
    /// Reads the policies that the settings name.
    ///
    /// # Errors
    /// [`InputError`] with the field or the flag.
    pub fn new(flags: &Flags, settings: &Settings) -> Result<ChosenPolicies, InputError> {
        let names = &settings.policies;
        let parse_moves = |text: &String| {
            let make = |name: &str, settings: &str| moves::REGISTRY.make(name, settings).map(drop);
            parse_policy(flags, "policies.moves", text, make)
        };
        let of_replicas = |field: &str, text: &str| parse_policy(flags, field, text, check_replicas);
        let of_tasks = |field: &str, text: &str| {
            parse_policy(flags, field, text, |name, settings| tasks::REGISTRY.make(name, settings).map(drop))
        };
        let of_volumes = |field: &str, text: &str| {
            parse_policy(flags, field, text, |name, settings| limits::REGISTRY.make(name, settings).map(drop))
        };
        let of_workload = |field: &str, text: &str| parse_policy(flags, field, text, check_admission);
        let defaults = &names.defaults;
        Ok(ChosenPolicies {
            replicas: of_replicas("policies.replicas", &names.replicas)?,
            tasks: of_tasks("policies.tasks", &names.tasks)?,
            moves: names.moves.as_ref().map(parse_moves).transpose()?,
            default_replicas: of_replicas("policies.defaults.replicas", &defaults.replicas)?,
            default_tasks: of_tasks("policies.defaults.tasks", &defaults.tasks)?,
            admission: AdmissionPolicies {
                admission: of_workload("policies.workload", &names.workload)?,
                volumes: of_volumes("policies.volumes", &names.volumes)?,
                default_admission: of_workload("policies.defaults.workload", &defaults.workload)?,
                default_volumes: of_volumes("policies.defaults.volumes", &defaults.volumes)?,
            },
        })
    }

    /// Policies, estimates of loads and modes of a service with this report interval.
    ///
    /// # Errors
    /// [`InputError`] with the field or the flag.
    pub fn configured(
        self,
        flags: &Flags,
        settings: &Settings,
        interval: Nanos,
    ) -> Result<Configured, InputError> {
        let ledger = settings.ledger.with_interval(interval);
        ledger.check().map_err(|error| {
            let field = if error.field == "interval" {
                "interval".to_owned()
            } else {
                format!("ledger.{}", error.field)
            };
            flags.wrong(&field, format!("{}: expected {}", error.value, error.expected))
        })?;
        settings.modes.check().map_err(|(kind, reason)| flags.wrong(&format!("modes.{kind}"), reason))?;
        let (labels, admission) = (self.labels(), self.admission.clone());
        let wrong =
            |part: &str, (field, message): (&str, String)| flags.wrong(&format!("{part}.{field}"), message);
        if let Some(history) = &settings.history {
            history.check().map_err(|error| wrong("history", error))?;
        }
        settings.moves.check().map_err(|error| wrong("moves", error))?;
        let hook = settings.moves.hook.as_ref().map(|hook| Hook::new(hook, settings.moves.timeout));
        let hook = hook.transpose().map_err(|error| wrong("moves.hook", error))?;
        Ok(Configured {
            policies: Box::new(self.factory()),
            labels,
            admission,
            ledger,
            modes: settings.modes,
            history: settings.history,
            moves: settings.moves.clone(),
            hook: hook.map(Arc::new),
        })
    }

    /// Labels of the policies.
    fn labels(&self) -> PolicyLabels {
        PolicyLabels {
            replicas: self.replicas.label.as_str().into(),
            tasks: self.tasks.label.as_str().into(),
            moves: self.moves.as_ref().map(|moves| moves.label.as_str().into()),
            default_replicas: Some(self.default_replicas.label.as_str().into()),
            default_tasks: Some(self.default_tasks.label.as_str().into()),
        }
    }

    /// Factory of the policies.
    fn factory(self) -> impl Fn() -> Policies + Send + Sync + 'static {
        let ChosenPolicies { replicas: blocks, tasks: apps, moves, default_replicas, default_tasks, .. } =
            self;
        let of_replicas = |policy: &PolicySpec| replicas::REGISTRY.make(&policy.name, &policy.settings).ok();
        let of_tasks = |policy: &PolicySpec| tasks::REGISTRY.make(&policy.name, &policy.settings).ok();
        move || Policies {
            replicas: of_replicas(&blocks),
            tasks: of_tasks(&apps),
            default_replicas: of_replicas(&default_replicas),
            default_tasks: of_tasks(&default_tasks),
            moves: moves.as_ref().and_then(|moves| moves::REGISTRY.make(&moves.name, &moves.settings).ok()),
            ..Policies::default()
        }
    }
}

fn parse_policy(
    flags: &Flags,
    field: &str,
    text: &str,
    make: impl Fn(&str, &str) -> Result<(), RegistryError>,
) -> Result<PolicySpec, InputError> {
    let spec: PolicySpec = text.parse().map_err(|message: String| flags.wrong(field, message))?;
    make(&spec.name, &spec.settings).map_err(|error| flags.wrong(field, message(&spec.name, error)))?;
    Ok(spec)
}

/// Message for an invalid policy, with the name of the setting. The policy's text has a single line, so the message
/// has no position.
fn message(name: &str, error: RegistryError) -> String {
    match error {
        RegistryError::Settings(InputError { field: Some(field), message, .. }) => {
            format!("{name}.{field}: {message}")
        }
        error => error.to_string(),
    }
}

/// Checks a policy for replicas: it must exist, and order blocks by what requests to the service say.
fn check_replicas(name: &str, text: &str) -> Result<(), RegistryError> {
    let policy = replicas::REGISTRY.make(name, text)?;
    if policy.name() == "sinbad-file" && settings::<SinbadSettings>(name, text)?.makespan {
        let message = "requests to the service do not say how much a job has left to write; leave it out";
        return Err(setting_error(name, "makespan", message).into());
    }
    Ok(())
}

/// Checks an admission policy: it must exist, and decide by bounds.
fn check_admission(name: &str, settings: &str) -> Result<(), RegistryError> {
    if !admit::REGISTRY.make(name, settings)?.sets_rates() {
        return Ok(());
    }
    let mut others: Vec<&str> = admit::without_own_rates().map(|other| other.name).collect();
    let last = others.pop().unwrap_or_default();
    let message = format!(
        "`{name}` sets its own network rates, which the service cannot enforce; expected {} or {last}",
        others.join(", ")
    );
    Err(InputError::new("policy", message).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_no_request_serves_is_rejected() {
        assert!(check_replicas("sinbad-file", "interval: 2s").is_ok());
        assert!(check_replicas("leeward", "").is_ok());
        let error = check_replicas("sinbad-file", "makespan: true").expect_err("no request has a job");
        assert!(message("sinbad-file", error).starts_with("sinbad-file.makespan: requests to the service"));
    }

    #[test]
    fn a_refused_admission_policy_lists_the_others() {
        assert!(check_admission("dnc", "").is_ok());
        let error = check_admission("silo++", "").expect_err("a policy with its own rates");
        let expected =
            "sets its own network rates, which the service cannot enforce; expected snc, dnc, best or none";
        assert!(error.to_string().ends_with(expected), "{error}");
    }
}
