//! Registries, and the plug-ins in them.

use leeward_fabric::input::{InputError, excerpt};

/// A plug-in in a registry. `T` is the trait that the plug-in implements, such as `dyn Scheduler`.
pub struct Registration<T: ?Sized> {
    /// Name that users write.
    pub name: &'static str,
    /// Other names that users may write.
    pub aliases: &'static [&'static str],
    /// Purpose of the plug-in, in one sentence.
    pub summary: &'static str,
    /// Paper and section that the plug-in comes from.
    pub source: &'static str,
    /// JSON schema of the settings.
    pub schema: fn() -> serde_json::Value,
    /// Constructor from settings: a YAML or JSON mapping, empty for the defaults.
    pub make: fn(&str) -> Result<Box<T>, InputError>,
}

/// All plug-ins of one kind.
pub struct Registry<T: ?Sized + 'static> {
    /// Noun for a plug-in of this kind in error messages: `policy`, `scheduler`, `routing`.
    pub noun: &'static str,
    /// Kind of request that the plug-ins answer, if several registries share a noun: `replicas`, `tasks`.
    pub kind: Option<&'static str>,
    /// The plug-ins, in the order of the documentation.
    pub entries: &'static [Registration<T>],
}

impl<T: ?Sized + 'static> Registry<T> {
    /// The plug-ins, in the order of the documentation.
    pub fn iter(&self) -> std::slice::Iter<'static, Registration<T>> {
        self.entries.iter()
    }

    /// The names, in the order of the documentation, without aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<T> {
        self.entries.iter().map(|entry| entry.name)
    }

    /// The plug-in with this name or alias.
    ///
    /// # Errors
    /// [`RegistryError::Unknown`] if no plug-in has the name.
    pub fn get(&self, name: &str) -> Result<&'static Registration<T>, RegistryError> {
        let has_name = |entry: &&Registration<T>| entry.name == name || entry.aliases.contains(&name);
        self.entries.iter().find(has_name).ok_or_else(|| RegistryError::Unknown {
            noun: self.noun,
            kind: self.kind,
            name: excerpt(name),
            known: self.names().collect::<Vec<_>>().join(", "),
        })
    }

    /// Makes the plug-in with this name or alias; `settings` is a YAML or JSON mapping, empty for the defaults.
    ///
    /// # Errors
    /// [`RegistryError::Unknown`] if no plug-in has the name, [`RegistryError::Settings`] if its settings are invalid.
    pub fn make(&self, name: &str, settings: &str) -> Result<Box<T>, RegistryError> {
        Ok((self.get(name)?.make)(settings)?)
    }
}

impl<T: ?Sized + 'static> IntoIterator for Registry<T> {
    type Item = &'static Registration<T>;
    type IntoIter = std::slice::Iter<'static, Registration<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter()
    }
}

/// Reason why a registry cannot make a plug-in.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RegistryError {
    /// No plug-in has the name.
    #[error("unknown {noun} `{name}`{}; there are: {known}", kind.map_or_else(String::new, |kind| format!(" for {kind}")))]
    Unknown {
        /// Noun for a plug-in of the registry.
        noun: &'static str,
        /// Kind of request that the plug-ins answer, where several registries share the noun.
        kind: Option<&'static str>,
        /// Name that the caller gave.
        name: String,
        /// Names in the registry, separated by commas.
        known: String,
    },
    /// The settings are invalid.
    #[error(transparent)]
    Settings(#[from] InputError),
}

impl From<RegistryError> for InputError {
    /// Converts to an input error. For an unknown name, the input is the kind of the registry.
    fn from(error: RegistryError) -> InputError {
        match error {
            RegistryError::Settings(error) => error,
            RegistryError::Unknown { noun, kind, .. } => InputError::new(kind.unwrap_or(noun), error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NoSettings, schema, settings};

    trait Plugin: std::fmt::Debug {}

    #[derive(Debug)]
    struct Rotor;

    impl Plugin for Rotor {}

    const PLUGINS: Registry<dyn Plugin> = Registry {
        noun: "plug-in",
        kind: Some("tests"),
        entries: &[Registration {
            name: "rotor",
            aliases: &["strobe"],
            summary: "a test",
            source: "none",
            schema: schema::<NoSettings>,
            make: |text| settings::<NoSettings>("rotor", text).map(|_| Box::new(Rotor) as Box<dyn Plugin>),
        }],
    };

    #[test]
    fn a_plug_in_is_found_by_name_and_by_alias() {
        for name in ["rotor", "strobe"] {
            assert!(PLUGINS.make(name, "").is_ok(), "{name}");
        }
        assert!(PLUGINS.names().eq(["rotor"]));
        let error = |name, settings| PLUGINS.make(name, settings).unwrap_err().to_string();
        assert_eq!(error("opera", ""), "unknown plug-in `opera` for tests; there are: rotor");
        assert!(
            error("rotor", "{day: 1}").starts_with("settings of rotor"),
            "{}",
            error("rotor", "{day: 1}")
        );
    }
}
