//! Policies of a cell: a task policy and the move policy of the same name, if there is one.

use std::collections::BTreeMap;

use leeward_fabric::input::read_yaml;
use leeward_placement::Policy;
use leeward_placement::moves::{self, MoveRequest};
use leeward_placement::tasks::{self, AppRequest};
use leeward_registry::RegistryError;

use super::PolicySpec;

/// Policies of a cell.
pub(crate) type CellPolicies = (Box<dyn Policy<AppRequest>>, Option<Box<dyn Policy<MoveRequest>>>);

/// Creates the task policy of a name, and the move policy if there is one. Each gets the settings that it
/// knows. A setting that neither knows leads to the error of the task policy.
pub(crate) fn make(spec: &PolicySpec) -> Result<CellPolicies, RegistryError> {
    let PolicySpec { name, settings, .. } = spec;
    let Some(moving) = moves::REGISTRY.iter().find(|registration| registration.name == name) else {
        return Ok((tasks::REGISTRY.make(name, settings)?, None));
    };
    if settings.is_empty() {
        return Ok((tasks::REGISTRY.make(name, "")?, Some(moves::REGISTRY.make(name, "")?)));
    }
    let known = |schema: serde_json::Value, key: &str| schema["properties"].get(key).is_some();
    let read: BTreeMap<String, serde_json::Value> = read_yaml(&format!("settings of {name}"), settings)?;
    let (mut of_tasks, mut of_moves) = (BTreeMap::new(), BTreeMap::new());
    for (key, value) in read {
        let for_moves = known((moving.schema)(), &key);
        let placing = tasks::REGISTRY.iter().find(|registration| registration.name == name);
        if !for_moves || placing.is_some_and(|placing| known((placing.schema)(), &key)) {
            of_tasks.insert(key.clone(), value.clone());
        }
        if for_moves {
            of_moves.insert(key, value);
        }
    }
    let text = |settings| serde_json::to_string(&settings).unwrap_or_default();
    Ok((tasks::REGISTRY.make(name, &text(of_tasks))?, Some(moves::REGISTRY.make(name, &text(of_moves))?)))
}
