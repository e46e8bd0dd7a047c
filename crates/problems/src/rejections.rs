//! Fields of rejected requests: of bodies, of requests inside a larger body, and of what an extractor rejects.

use axum::extract::rejection::{PathRejection, QueryRejection};
use leeward_fabric::input::InputError;

use super::{INVALID, Problem};

impl Problem {
    /// The problem of a request inside a larger body: its field is a field of `place`, unless it is a header or one of
    /// the larger body's `own` fields.
    #[must_use]
    pub fn under(self, place: &str, own: &[&str]) -> Problem {
        let is_inside = |field: &str| field != "idempotency-key" && !own.contains(&field);
        let field =
            self.field.map(|field| if is_inside(&field) { format!("{place}.{field}") } else { field });
        Problem { field, ..self }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_an_inner_request_has_the_place_of_the_request() {
        let field = |problem: Problem| problem.under("tasks", &["key", "hosts"]).field;
        let inner = Problem::field("app.tasks[0].cpus", "too many");
        assert_eq!(field(inner).as_deref(), Some("tasks.app.tasks[0].cpus"));
        assert_eq!(field(Problem::field("hosts", "empty")).as_deref(), Some("hosts"), "of the larger body");
        let header = Problem::field("idempotency-key", "too long");
        assert_eq!(field(header).as_deref(), Some("idempotency-key"));
        assert_eq!(field(Problem::invalid("neither replicas nor tasks")), None);
    }
}
