//! Settings of plug-ins: YAML or JSON mappings, read into a type that also gives their schema.

use leeward_fabric::input::{InputError, read_yaml};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Settings of a plug-in without settings.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}

/// The JSON schema of settings.
pub fn schema<T: JsonSchema>() -> serde_json::Value {
    schemars::schema_for!(T).to_value()
}

/// Reads the settings of the plug-in called `name`; an empty text gives the defaults.
///
/// # Errors
/// Text that is not YAML, an unknown setting, or a value of the wrong type. The error's file is `settings of NAME`.
pub fn settings<T: DeserializeOwned + Default>(name: &str, text: &str) -> Result<T, InputError> {
    if text.trim().is_empty() { Ok(T::default()) } else { read_yaml(&format!("settings of {name}"), text) }
}

/// The error for an invalid value of one setting of the plug-in called `name`.
pub fn setting_error(name: &str, field: &str, message: impl Into<String>) -> InputError {
    InputError::new(format!("settings of {name}"), message.into()).in_field(field)
}
