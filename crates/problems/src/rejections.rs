//! Problems of requests that an extractor rejects.

use axum::extract::rejection::{PathRejection, QueryRejection};
use leeward_fabric::input::InputError;

use super::{INVALID, Problem};

impl From<InputError> for Problem {
    fn from(error: InputError) -> Problem {
        Problem { field: error.field, ..Problem::new(INVALID, error.message) }
    }
}

impl From<PathRejection> for Problem {
    fn from(rejection: PathRejection) -> Problem {
        Problem::invalid(rejection.body_text())
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Problem {
        let text = rejection.body_text();
        let text = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
        match text.split_once(": ") {
            Some((field, detail)) if field.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') => {
                Problem::field(field, detail)
            }
            _ => Problem::invalid(text),
        }
    }
}
