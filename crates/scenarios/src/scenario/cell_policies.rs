//! Policies of a cell: a task policy, and the move policy that it names, if any.

use std::collections::BTreeMap;

use leeward_fabric::input::read_yaml;
use leeward_moves::{self as moves, MoveRequest};
use leeward_placement::Policy;
use leeward_placement::tasks::{self, TaskPolicy};
use leeward_registry::RegistryError;

use super::PolicySpec;

/// Policies of a cell.
pub(crate) type CellPolicies = (Box<dyn TaskPolicy>, Option<Box<dyn Policy<MoveRequest>>>);

/// Creates a task policy, and the move policy that it names, if any. Each policy gets the settings that it knows. The
/// task policy rejects a setting that neither of them knows.
pub(crate) fn make(spec: &PolicySpec) -> Result<CellPolicies, RegistryError> {
    let PolicySpec { name, settings, .. } = spec;
    let task_entry = tasks::REGISTRY.get(name)?;
    let default_policy = (task_entry.make)("")?;
    let Some(move_policy) = default_policy.move_policy() else {
        return Ok(((task_entry.make)(settings)?, None));
    };
    let move_entry = moves::REGISTRY.get(move_policy)?;
    if settings.is_empty() {
        return Ok((default_policy, Some((move_entry.make)("")?)));
    }
    let has_setting = |schema: serde_json::Value, key: &str| schema["properties"].get(key).is_some();
    let read: BTreeMap<String, serde_json::Value> = read_yaml(&format!("settings of {name}"), settings)?;
    let (mut of_tasks, mut of_moves) = (BTreeMap::new(), BTreeMap::new());
    for (key, value) in read {
        let for_moves = has_setting((move_entry.schema)(), &key);
        if !for_moves || has_setting((task_entry.schema)(), &key) {
            of_tasks.insert(key.clone(), value.clone());
        }
        if for_moves {
            of_moves.insert(key, value);
        }
    }
    let text = |settings| serde_json::to_string(&settings).unwrap_or_default();
    Ok(((task_entry.make)(&text(of_tasks))?, Some((move_entry.make)(&text(of_moves))?)))
}
