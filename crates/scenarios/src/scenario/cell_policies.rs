//! Policies of a cell: a task policy, and the move policy that it names, if any.

use std::collections::BTreeMap;

use leeward_fabric::input::read_yaml;
use leeward_placement::Policy;
use leeward_placement::moves::{self, MoveRequest};
use leeward_placement::tasks::{self, TaskPolicy};
use leeward_registry::RegistryError;

use super::PolicySpec;

/// Policies of a cell.
pub(crate) type CellPolicies = (Box<dyn TaskPolicy>, Option<Box<dyn Policy<MoveRequest>>>);

/// Creates the task policy of a name, and the move policy that it names, if any. Each gets the settings that it has. A
/// setting that neither has leads to the error of the task policy.
pub(crate) fn make(spec: &PolicySpec) -> Result<CellPolicies, RegistryError> {
    let PolicySpec { name, settings, .. } = spec;
    let placing = tasks::REGISTRY.get(name)?;
    let by_default = (placing.make)("")?;
    let Some(move_policy) = by_default.move_policy() else {
        return Ok(((placing.make)(settings)?, None));
    };
    let moving = moves::REGISTRY.get(move_policy)?;
    if settings.is_empty() {
        return Ok((by_default, Some((moving.make)("")?)));
    }
    let known = |schema: serde_json::Value, key: &str| schema["properties"].get(key).is_some();
    let read: BTreeMap<String, serde_json::Value> = read_yaml(&format!("settings of {name}"), settings)?;
    let (mut of_tasks, mut of_moves) = (BTreeMap::new(), BTreeMap::new());
    for (key, value) in read {
        let for_moves = known((moving.schema)(), &key);
        if !for_moves || known((placing.schema)(), &key) {
            of_tasks.insert(key.clone(), value.clone());
        }
        if for_moves {
            of_moves.insert(key, value);
        }
    }
    let text = |settings| serde_json::to_string(&settings).unwrap_or_default();
    Ok(((placing.make)(&text(of_tasks))?, Some((moving.make)(&text(of_moves))?)))
}
