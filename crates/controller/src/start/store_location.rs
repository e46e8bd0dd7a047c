//! Location of the store of decisions, according to the settings.

use std::env;
use std::path::{Path, PathBuf};

use leeward_store::{Database, Postgres, Sqlite, Store};

use leeward_settings::Settings;

/// Location of the store of decisions.
pub enum StoreLocation {
    /// Memory; decisions end with the process.
    Memory,
    /// SQLite file.
    File(PathBuf),
    /// Database that several services may share.
    Database(Box<Database>),
}

impl StoreLocation {
    /// Parses the setting. The default is a file `name`.db in systemd's state folder, or in the user's state folder.
    ///
    /// # Errors
    /// A message for an invalid URL, or a missing home folder.
    pub fn new(store: Option<&str>, name: &str) -> Result<StoreLocation, String> {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        match store {
            Some("memory") => Ok(StoreLocation::Memory),
            Some(url) if Database::is_url(url) => {
                let password = env::var("PGPASSWORD").ok().filter(|password| !password.is_empty());
                Ok(StoreLocation::Database(Box::new(Database::read(url, password.as_deref())?)))
            }
            Some(file) => Ok(StoreLocation::File(PathBuf::from(file))),
            None => {
                let user = || variable("HOME").map(|home| home.join(".local").join("state"));
                let folder = variable("STATE_DIRECTORY")
                    .or_else(|| variable("XDG_STATE_HOME").or_else(user).map(|state| state.join("leeward")))
                    .ok_or("no home folder for the default file; give a file, or `memory`")?;
                Ok(StoreLocation::File(folder.join(format!("{name}.db"))))
            }
        }
    }

    /// Path, or URL without a password; `None` for memory.
    pub fn path(&self) -> Option<&Path> {
        match self {
            StoreLocation::Memory => None,
            StoreLocation::File(file) => Some(file),
            StoreLocation::Database(database) => Some(Path::new(database.shown())),
        }
    }

    /// File that keeps telemetry over a restart, from its setting; `None` for no such file.
    pub fn telemetry_file(&self, setting: Option<&str>) -> Option<PathBuf> {
        match (setting, self) {
            (Some("none"), _) => None,
            (Some(file), _) => Some(PathBuf::from(file)),
            (None, StoreLocation::File(file)) => {
                let mut name = file.clone().into_os_string();
                name.push(".telemetry");
                Some(PathBuf::from(name))
            }
            (None, StoreLocation::Memory | StoreLocation::Database(_)) => None,
        }
    }

    /// Opens the store.
    ///
    /// # Errors
    /// A message with the store's name and the reason.
    pub fn open(&self, settings: &Settings) -> Result<Box<dyn Store>, String> {
        let with_path = |error| {
            let shown = self.path().unwrap_or(Path::new("memory"));
            format!("{}: {error}", shown.display())
        };
        let (durability, keep) = (settings.durability, settings.keep);
        Ok(match self {
            StoreLocation::Memory => Box::new(Sqlite::in_memory().map_err(with_path)?),
            StoreLocation::File(file) => {
                if settings.store.is_none()
                    && let Some(folder) = file.parent()
                {
                    std::fs::create_dir_all(folder)
                        .map_err(|error| format!("{}: {error}", folder.display()))?;
                }
                Box::new(Sqlite::open(file, durability, keep).map_err(with_path)?)
            }
            StoreLocation::Database(database) => {
                Box::new(Postgres::open((**database).clone(), durability, keep).map_err(with_path)?)
            }
        })
    }
}
