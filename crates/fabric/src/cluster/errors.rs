//! Errors about a cluster file, and the checks that several fields share.

use super::file::Duplex;
use crate::input::{InputError, Spanned};

/// Makes errors that name the file, and the place in it where known.
#[derive(Clone, Copy)]
pub(super) struct Errors<'a> {
    pub path: &'a str,
}

impl Errors<'_> {
    pub fn about(&self, message: String) -> InputError {
        InputError::new(self.path, message)
    }

    pub fn at<T>(&self, at: Option<&Spanned<T>>, field: &str, message: String) -> InputError {
        let error = self.about(message).in_field(field);
        match at {
            Some(spanned) => error.at(spanned),
            None => error,
        }
    }

    pub fn missing(&self, field: &str, example: &str) -> InputError {
        self.about(format!("missing; expected for example `{field}: {example}`")).in_field(field)
    }

    pub fn check_name<T>(&self, at: &Spanned<T>, field: &str, name: &str) -> Result<(), InputError> {
        if is_name(name) {
            return Ok(());
        }
        let message = format!("`{name}`: a name has letters, digits, `.`, `_` and `-` only");
        Err(self.at(Some(at), field, message))
    }

    pub fn check_link<T>(
        &self,
        at: Option<&Spanned<T>>,
        field: &str,
        link: Option<Duplex>,
        oversubscription: Option<f64>,
    ) -> Result<(), InputError> {
        if link.is_some_and(|link| link.up.0 == 0 || link.down.0 == 0) {
            let message = "zero capacity: must be positive (a failure belongs in a scenario)".to_owned();
            return Err(self.at(at, field, message));
        }
        if link.is_some() && oversubscription.is_some() {
            let message = "give the link's rate or its oversubscription, not both".to_owned();
            return Err(self.at(at, field, message));
        }
        match oversubscription {
            Some(ratio) if !(ratio.is_finite() && ratio > 0.0) => {
                Err(self.at(at, field, format!("oversubscription {ratio}: must be positive")))
            }
            _ => Ok(()),
        }
    }
}

pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || ['.', '_', '-'].contains(&c))
}
