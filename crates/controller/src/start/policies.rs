//! Policies of a service by name: created once for validation, and again for each engine.

use leeward_engine::Policies;
use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_placement::{moves, replicas, tasks};
use leeward_registry::{PolicySpec, RegistryError};
use leeward_service::{AdmissionPolicies, PolicyLabels};
use leeward_slo::{admit, limits};

use crate::settings::{Flags, Settings};

/// Validated policies.
pub struct Chosen {
    replicas: PolicySpec,
    tasks: PolicySpec,
    moves: Option<PolicySpec>,
    /// Policies for workloads with guaranteed SLOs.
    pub promising: AdmissionPolicies,
}

impl Chosen {
    /// Reads the policies that the settings name.
    ///
    /// # Errors
    /// [`InputError`] with the field or the flag.
    pub fn new(flags: &Flags, settings: &Settings) -> Result<Chosen, InputError> {
        let given = &settings.policies;
        let moved = |given: &String| {
            let make = |name: &str, settings: &str| moves::REGISTRY.make(name, settings).map(drop);
            policy(flags, "policies.moves", given, make)
        };
        Ok(Chosen {
            replicas: policy(flags, "policies.replicas", &given.replicas, |name, settings| {
                replicas::REGISTRY.make(name, settings).map(drop)
            })?,
            tasks: policy(flags, "policies.tasks", &given.tasks, |name, settings| {
                tasks::REGISTRY.make(name, settings).map(drop)
            })?,
            moves: given.moves.as_ref().map(moved).transpose()?,
            promising: AdmissionPolicies {
                admission: policy(flags, "policies.workload", &given.workload, admitting)?,
                volumes: policy(flags, "policies.volumes", &given.volumes, |name, settings| {
                    limits::REGISTRY.make(name, settings).map(drop)
                })?,
            },
        })
    }

    /// Labels of the policies.
    pub fn labels(&self) -> PolicyLabels {
        PolicyLabels {
            replicas: self.replicas.label.as_str().into(),
            tasks: self.tasks.label.as_str().into(),
            moves: self.moves.as_ref().map(|moves| moves.label.as_str().into()),
        }
    }

    /// Factory of the policies, for an engine with this report interval.
    pub fn maker(self, interval: Nanos) -> impl Fn() -> Policies + Send + 'static {
        // A moved task stays for ten intervals (Hotspots section 5.2).
        let cooldown = Nanos(interval.0.saturating_mul(10));
        let Chosen { replicas: blocks, tasks: apps, moves, .. } = self;
        move || Policies {
            replicas: replicas::REGISTRY.make(&blocks.name, &blocks.settings).ok(),
            tasks: tasks::REGISTRY.make(&apps.name, &apps.settings).ok(),
            moves: moves.as_ref().and_then(|moves| moves::REGISTRY.make(&moves.name, &moves.settings).ok()),
            cooldown,
            ..Policies::default()
        }
    }
}

fn policy(
    flags: &Flags,
    field: &str,
    text: &str,
    make: impl Fn(&str, &str) -> Result<(), RegistryError>,
) -> Result<PolicySpec, InputError> {
    let spec: PolicySpec = text.parse().map_err(|message: String| flags.wrong(field, message))?;
    make(&spec.name, &spec.settings).map_err(|error| flags.wrong(field, told(&spec.name, error)))?;
    Ok(spec)
}

/// Message for an invalid policy, with the name of the setting. The setting's text has a single line, so a position is
/// useless.
fn told(name: &str, error: RegistryError) -> String {
    match error {
        RegistryError::Settings(InputError { field: Some(field), message, .. }) => {
            format!("{name}.{field}: {message}")
        }
        error => error.to_string(),
    }
}

/// Checks an admission policy: it must exist, and decide by bounds.
fn admitting(name: &str, settings: &str) -> Result<(), RegistryError> {
    admit::REGISTRY.make(name, settings)?;
    if admit::paces(name) {
        let message = format!(
            "`{name}` gives networks rates of its own, which nothing here enforces; expected snc, dnc, best or none"
        );
        return Err(InputError::new("policy", message).into());
    }
    Ok(())
}
