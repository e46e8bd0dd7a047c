//! Secrets, which no error and no log repeats.

use std::path::{Path, PathBuf};

use leeward_fabric::input::{InputError, read_text};

/// A secret, or the file that contains it.
pub(super) enum Secret {
    Text(String),
    File(PathBuf),
}

const EITHER_FIELD: &str = "expected either this field or the one that ends in `_file`";

impl Secret {
    /// The secret of a field, or of the file that the field with `_file` names.
    ///
    /// # Errors
    /// [`InputError`] with the field of `file`, if both or none is given, or the secret's file cannot be read.
    pub fn of_field(
        file: &str,
        field: &str,
        text: Option<String>,
        secret_file: Option<String>,
    ) -> Result<Secret, InputError> {
        match (text, secret_file) {
            (Some(text), None) => Ok(Secret::Text(text)),
            (None, Some(secret_file)) => {
                let folder = Path::new(file).parent().unwrap_or(Path::new(""));
                let secret = Secret::File(folder.join(secret_file));
                let unreadable = |error| InputError::new(file, error).in_field(format!("{field}_file"));
                secret.read().map_err(unreadable)?;
                Ok(secret)
            }
            _ => Err(InputError::new(file, EITHER_FIELD).in_field(field)),
        }
    }

    /// The secret; a file is read again each time, so a new secret takes effect at once.
    ///
    /// # Errors
    /// The reason why the file cannot be read.
    pub fn read(&self) -> Result<String, String> {
        match self {
            Secret::Text(text) => Ok(text.clone()),
            Secret::File(file) => {
                let text = read_text(&file.display().to_string()).map_err(|error| error.to_string())?;
                Ok(text.trim().to_owned())
            }
        }
    }
}
