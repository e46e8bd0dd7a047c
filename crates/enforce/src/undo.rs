//! The undo of an enforcer's work, on the interfaces of a state file.

use crate::event::Event;
use crate::interface::Interface;
use crate::state_file::StateFile;

/// Undoes everything on all interfaces of a state file. Interfaces whose undo fails stay in the file.
pub(crate) fn undo_all(state: &mut StateFile) -> Vec<Event> {
    let names: Vec<String> = state.taken().keys().cloned().collect();
    undo_each(state, &names)
}

/// Undoes everything on some interfaces of a state file.
pub(crate) fn undo_each(state: &mut StateFile, names: &[String]) -> Vec<Event> {
    let undo = |name: &String| {
        let hook = *state.taken().get(name)?;
        let result = Interface::new(name).undo(hook).and_then(|exists| state.remove(name).map(|()| exists));
        Some(match result {
            Ok(exists) => Event::Undone { interface: name.clone(), exists },
            Err(error) => Event::Failed { error: format!("{name}: {error}") },
        })
    };
    names.iter().filter_map(undo).collect()
}

/// Failures of an undo that is tried again and again, each reported once until it changes or ends.
#[derive(Debug, Default)]
pub(crate) struct Failures(Vec<String>);

impl Failures {
    /// Events of a further undo without failures that were reported.
    pub fn unreported(&mut self, events: Vec<Event>) -> Vec<Event> {
        let is_failure = |event: &&Event| matches!(event, Event::Failed { .. });
        let failures = events.iter().filter(is_failure).map(Event::to_string).collect();
        let before = std::mem::replace(&mut self.0, failures);
        let is_new = |event: &Event| !is_failure(&event) || !before.contains(&event.to_string());
        events.into_iter().filter(is_new).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_undo_is_reported_once_until_it_changes() {
        let failed = |error: &str| Event::Failed { error: error.to_owned() };
        let mut failures = Failures::default();
        let mut shown = |events: Vec<Event>| -> Vec<String> {
            failures.unreported(events).iter().map(Event::to_string).collect()
        };
        assert_eq!(shown(vec![failed("eth0: busy"), failed("eth1: busy")]).len(), 2);
        assert_eq!(shown(vec![failed("eth0: busy"), failed("eth1: busy")]), [""; 0]);
        let undone = Event::Undone { interface: "eth1".to_owned(), exists: true };
        assert_eq!(shown(vec![failed("eth0: gone"), undone]), ["error: eth0: gone", "eth1: undone"]);
        assert_eq!(shown(vec![failed("eth0: busy")]), ["error: eth0: busy"], "it failed otherwise meanwhile");
    }
}
