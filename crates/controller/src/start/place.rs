//! Store of decisions, according to the settings.

use std::env;
use std::path::{Path, PathBuf};

use leeward_store::{Database, Postgres, Sqlite, Store};

use crate::settings::Settings;

/// Store of decisions.
pub enum Place {
    /// Memory; decisions end with the process.
    Memory,
    /// SQLite file.
    File(PathBuf),
    /// Database that several services may share.
    Database(Box<Database>),
}

impl Place {
    /// Parses the setting. The default is a file `name`.db in systemd's state folder, or in the user's.
    ///
    /// # Errors
    /// A message for an invalid URL, or a missing home folder.
    pub fn new(store: Option<&str>, name: &str) -> Result<Place, String> {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        match store {
            Some("memory") => Ok(Place::Memory),
            Some(url) if Database::is_url(url) => {
                let password = env::var("PGPASSWORD").ok().filter(|password| !password.is_empty());
                Ok(Place::Database(Box::new(Database::read(url, password.as_deref())?)))
            }
            Some(file) => Ok(Place::File(PathBuf::from(file))),
            None => {
                let user = || set("HOME").map(|home| home.join(".local").join("state"));
                let folder = set("STATE_DIRECTORY")
                    .or_else(|| set("XDG_STATE_HOME").or_else(user).map(|state| state.join("leeward")))
                    .ok_or("there is no home folder; give a file, or `memory`")?;
                Ok(Place::File(folder.join(format!("{name}.db"))))
            }
        }
    }

    /// Path, or URL without a password; `None` for memory.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Place::Memory => None,
            Place::File(file) => Some(file),
            Place::Database(database) => Some(Path::new(database.shown())),
        }
    }

    /// Opens the store.
    ///
    /// # Errors
    /// A message with the store's name and the reason.
    pub fn opened(&self, settings: &Settings) -> Result<Box<dyn Store>, String> {
        let told = |error| {
            let shown = self.path().unwrap_or(Path::new("memory"));
            format!("{}: {error}", shown.display())
        };
        let (durability, keep) = (settings.durability, settings.keep);
        Ok(match self {
            Place::Memory => Box::new(Sqlite::in_memory().map_err(told)?),
            Place::File(file) => {
                if settings.store.is_none()
                    && let Some(folder) = file.parent()
                {
                    std::fs::create_dir_all(folder)
                        .map_err(|error| format!("{}: {error}", folder.display()))?;
                }
                Box::new(Sqlite::open(file, durability, keep).map_err(told)?)
            }
            Place::Database(database) => {
                Box::new(Postgres::open((**database).clone(), durability, keep).map_err(told)?)
            }
        })
    }
}
