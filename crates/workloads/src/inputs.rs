//! Inputs of sources: text files, and tables in columns if the caller provides them.
//!
//! A list may be Parquet instead of CSV; its first bytes show the format. This crate does not read Parquet: a reader is
//! a large library, and users of scenarios already have one (pyarrow, from Python). The user's reader returns the
//! rows of the wanted columns, so all rules and errors of a list are the same for both formats. Line N of an error
//! is row N - 1 of the table. A list may also be a table in memory, by a name that begins with `table:`.

use std::fmt::Debug;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use leeward_fabric::input::{Files, InputError, Rows, Text};

const PARQUET_MAGIC: &[u8; 4] = b"PAR1";

/// Beginning of the names of tables in memory.
const TABLE: &str = "table:";

/// Tables in columns. Both methods return the available ones of the wanted columns, or all columns without rows if none of
/// them is available.
pub trait Tables: Debug + Send + Sync {
    /// Opens a Parquet file.
    ///
    /// # Errors
    /// Returns a message of one line.
    fn open(&self, path: &Path, columns: &[&str]) -> Result<Box<dyn Rows>, String>;

    /// Opens a table in memory by its name after `table:`.
    ///
    /// # Errors
    /// Returns a message of one line.
    fn given(&self, name: &str, columns: &[&str]) -> Result<Box<dyn Rows>, String>;
}

/// Location of the sources' files, and the reader of their tables.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Folders of files.
    pub files: Files,
    /// Tables in columns, if any.
    pub tables: Option<Arc<dyn Tables>>,
}

impl Inputs {
    /// Opens a list with the wanted `columns`.
    pub(crate) fn list(&self, name: &str, columns: &[&str]) -> Result<Text, InputError> {
        let error = |message: String| InputError::new(name, message);
        if let (Some(given), Some(tables)) = (name.strip_prefix(TABLE), &self.tables) {
            return Ok(Text::from_rows(name, tables.given(given, columns).map_err(error)?));
        }
        // This call reports errors in the name or the file.
        let text = self.files.open(name)?;
        let path = self.path(name);
        let mut start = [0; PARQUET_MAGIC.len()];
        let parquet = File::open(&path).and_then(|mut file| file.read_exact(&mut start));
        if parquet.is_err() || start != *PARQUET_MAGIC {
            return Ok(text);
        }
        let Some(tables) = &self.tables else {
            return Err(error("a Parquet file, which only the Python package reads; write it as CSV".into()));
        };
        Ok(Text::from_rows(name, tables.open(&path, columns).map_err(error)?))
    }

    /// Returns the path of a file opened by this name.
    fn path(&self, name: &str) -> PathBuf {
        match (name.strip_prefix("data:"), &self.files.data) {
            (Some(below), Some(data)) => data.join(below),
            _ => self.files.base.join(name),
        }
    }
}
