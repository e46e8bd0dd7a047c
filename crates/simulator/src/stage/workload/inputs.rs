//! What sources read from: text files, and tables in Parquet where something is at hand that can read them.
//!
//! A list may be Parquet in place of CSV, told apart by its first bytes. It is not read here: a reader of Parquet is a
//! library of its own size, and who runs scenarios has one (from Python, pyarrow). That reader gives the wanted columns
//! as the CSV that they stand for, and so every rule and every error of a list is the same for both; line N of an error is
//! row N - 1 of the table.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use leeward_fabric::input::{Files, InputError, Text};

/// Reads some columns of a table, as far as it has them, as CSV with a header; or says on one line why not.
pub type ReadTable = fn(&Path, &[&str]) -> Result<Vec<u8>, String>;

const PARQUET_MAGIC: &[u8; 4] = b"PAR1";

/// Where the files of sources are found, and how tables among them are read.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Where files are looked up.
    pub files: Files,
    /// What reads Parquet, if anything does.
    pub tables: Option<ReadTable>,
}

impl Inputs {
    /// Opens a list of which `columns` are wanted.
    pub(super) fn list(&self, name: &str, columns: &[&str]) -> Result<Text, InputError> {
        // What is wrong with a name or a file is said here.
        let text = self.files.open(name)?;
        let path = self.path(name);
        let mut start = [0; PARQUET_MAGIC.len()];
        let parquet = File::open(&path).and_then(|mut file| file.read_exact(&mut start));
        if parquet.is_err() || start != *PARQUET_MAGIC {
            return Ok(text);
        }
        let refuse = |message: String| InputError::new(name, message);
        let Some(read) = self.tables else {
            return Err(refuse(
                "a Parquet file, which only the Python package reads; write it as CSV".into(),
            ));
        };
        Text::from_bytes(name, read(&path, columns).map_err(refuse)?)
    }

    /// Where a file is that was opened by this name.
    fn path(&self, name: &str) -> PathBuf {
        match (name.strip_prefix("data:"), &self.files.data) {
            (Some(below), Some(data)) => data.join(below),
            _ => self.files.base.join(name),
        }
    }
}
