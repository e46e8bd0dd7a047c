//! Events of a lease.

use leeward_fabric::Nanos;

/// An event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A controller does not answer, or rejects a request.
    Unavailable {
        /// Number of the controller.
        controller: usize,
        /// Reason.
        why: String,
        /// Time until the lease ends and promises in force are removed; `None` if there are none.
        left: Option<Nanos>,
    },
    /// A controller answers again.
    Answers,
    /// The lease is over: all promises are removed.
    Over {
        /// False if this enforcer had none in force, and an earlier one may have left some.
        held: bool,
    },
}

impl Event {
    /// The event as a line of a log. `controllers` are the URLs.
    pub fn line(&self, controllers: &[String]) -> String {
        match self {
            Event::Unavailable { controller, why, left } => {
                let url = controllers.get(*controller).map_or("controller", String::as_str);
                let left = left.map(|left| {
                    format!(
                        "; the promises stay in force until the lease ends in {:.0} s",
                        left.as_secs_f64()
                    )
                });
                format!("{url}: {why}{}", left.unwrap_or_default())
            }
            Event::Answers => "the controller answers again".to_owned(),
            Event::Over { held: true } => {
                "lease expired: all promises are removed, and everything is best effort".to_owned()
            }
            Event::Over { held: false } => {
                "no controller answers: promises that an earlier enforcer left are removed".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_the_controller_and_what_happens_to_promises() {
        let urls = ["http://a".to_owned(), "http://b".to_owned()];
        let unavailable = |controller, left| {
            let why = "connection refused".to_owned();
            Event::Unavailable { controller, why, left }.line(&urls)
        };
        assert_eq!(
            unavailable(1, Some(Nanos(11_600_000_000))),
            "http://b: connection refused; the promises stay in force until the lease ends in 12 s"
        );
        assert_eq!(unavailable(0, None), "http://a: connection refused");
        assert_eq!(unavailable(7, None), "controller: connection refused");
    }
}
