//! Problems of requests inside a larger body.

use super::{Problem, REFUSED};

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

    /// HTTP status.
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// Word of its kind.
    pub fn word(&self) -> &'static str {
        self.word
    }

    /// No copy or host can be chosen.
    pub fn refused(detail: impl Into<String>) -> Problem {
        Problem::new(REFUSED, detail)
    }
}
