//! Inputs of sources: text files, and Parquet tables if the caller provides a reader.
//!
//! A list may be Parquet instead of CSV; its first bytes show the format. This crate does not read Parquet: a reader is
//! a large library, and users of scenarios already have one (pyarrow, from Python). The user's reader returns the
//! wanted columns as lines of text, so all rules and errors of a list are the same for both formats. Line N of an error
//! is row N - 1 of the table.

use std::fs::File;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use leeward_fabric::input::{Files, InputError, Text};

/// Opens the available columns of a table as CSV with a header, or returns an error message of one line.
pub type ReadTable = fn(&Path, &[&str]) -> Result<Box<dyn BufRead>, String>;

const PARQUET_MAGIC: &[u8; 4] = b"PAR1";

/// Location of the sources' files, and the reader of their tables.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Folders of files.
    pub files: Files,
    /// Reader of Parquet, if any.
    pub tables: Option<ReadTable>,
}

impl Inputs {
    /// Opens a list with the wanted `columns`.
    pub(crate) fn list(&self, name: &str, columns: &[&str]) -> Result<Text, InputError> {
        // This call reports errors in the name or the file.
        let text = self.files.open(name)?;
        let path = self.path(name);
        let mut start = [0; PARQUET_MAGIC.len()];
        let parquet = File::open(&path).and_then(|mut file| file.read_exact(&mut start));
        if parquet.is_err() || start != *PARQUET_MAGIC {
            return Ok(text);
        }
        let error = |message: String| InputError::new(name, message);
        let Some(read) = self.tables else {
            return Err(error("a Parquet file, which only the Python package reads; write it as CSV".into()));
        };
        Text::from_reader(name, read(&path, columns).map_err(error)?)
    }

    /// Returns the path of a file opened by this name.
    fn path(&self, name: &str) -> PathBuf {
        match (name.strip_prefix("data:"), &self.files.data) {
            (Some(below), Some(data)) => data.join(below),
            _ => self.files.base.join(name),
        }
    }
}
