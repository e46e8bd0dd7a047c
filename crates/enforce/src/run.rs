//! Main loop: turns at each interval until a signal, and then the undo.

use std::time::Duration;

use leeward_fabric::input::InputError;
use leeward_systemd::Notifier;

use crate::enforcer::{Enforcer, now, undo_all};
use crate::error::{EnforceError, StartError};
use crate::event::Event;
use crate::settings::Settings;
use crate::state_file::StateFile;

/// Reason why the enforcer stops by itself.
#[derive(Debug)]
pub enum StopReason<E> {
    /// An option or a file is invalid.
    Input(InputError),
    /// It does not start.
    Failed(EnforceError),
    /// No interface could be enforced, or an undo failed. The log has the reasons.
    Nothing(&'static str),
    /// A callback failed.
    Output(E),
}

impl<E> From<StartError> for StopReason<E> {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Input(error) => StopReason::Input(error),
            StartError::Failed(error) => StopReason::Failed(error),
        }
    }
}

/// Enforces the promises until `wait` returns true, and then undoes everything, unless the settings leave it. `log`
/// receives events. `wait` waits for at most the given time, and returns true to stop. systemd is notified if it started
/// the process.
///
/// # Errors
/// Returns the reason of the stop; see [`StopReason`]. Everything is undone then too.
pub fn run<E>(
    settings: Settings,
    mut log: impl FnMut(&Event) -> Result<(), E>,
    mut wait: impl FnMut(Duration) -> Result<bool, E>,
) -> Result<(), StopReason<E>> {
    let interval = Duration::from_nanos(settings.interval.0);
    let (mut enforcer, mut events) = Enforcer::new(settings)?;
    events.extend(enforcer.undo_others());
    let result =
        print(&events, &mut log).and_then(|()| enforce(&mut enforcer, interval, &mut log, &mut wait));
    if enforcer.leaves() && result.is_ok() {
        return result;
    }
    let events = enforcer.undo();
    print(&events, &mut log)?;
    result?;
    complete(&events)
}

fn enforce<E>(
    enforcer: &mut Enforcer,
    interval: Duration,
    log: &mut impl FnMut(&Event) -> Result<(), E>,
    wait: &mut impl FnMut(Duration) -> Result<bool, E>,
) -> Result<(), StopReason<E>> {
    let notifier = match Notifier::from_env() {
        Ok(notifier) => notifier,
        Err(error) => {
            let note = format!("systemd is not notified: NOTIFY_SOCKET unavailable: {error}");
            print(&[Event::Note(note)], log)?;
            None
        }
    };
    print(&enforcer.turn(), log)?;
    if !enforcer.is_enforcing() {
        return Err(StopReason::Nothing("no interface is enforced"));
    }
    // A message that systemd does not take now is lost; the next one comes soon.
    let notify = |status: &str, is_first: bool| {
        if let Some(notifier) = &notifier {
            drop(if is_first { notifier.ready(status) } else { notifier.works(true, status) });
        }
    };
    notify(&status(enforcer), true);
    loop {
        let until = now() + interval;
        loop {
            let left = until.saturating_sub(now());
            if left.is_zero() {
                break;
            }
            let step = notifier.as_ref().map_or(left, |notifier| left.min(notifier.tick()));
            if wait(step).map_err(StopReason::Output)? {
                return Ok(());
            }
            notify(&status(enforcer), false);
        }
        print(&enforcer.turn(), log)?;
    }
}

fn status(enforcer: &Enforcer) -> String {
    let names = enforcer.enforced();
    if names.is_empty() {
        "no interface is enforced".to_owned()
    } else {
        format!("enforces on {}", names.join(", "))
    }
}

fn print<E>(events: &[Event], log: &mut impl FnMut(&Event) -> Result<(), E>) -> Result<(), StopReason<E>> {
    events.iter().try_for_each(log).map_err(StopReason::Output)
}

/// Undoes what a killed enforcer left in this network namespace.
///
/// # Errors
/// Returns the reason of the stop; see [`StopReason`].
pub fn undo<E>(
    settings: &Settings,
    mut log: impl FnMut(&Event) -> Result<(), E>,
) -> Result<(), StopReason<E>> {
    let mut state = StateFile::open(&settings.state).map_err(StopReason::Failed)?;
    let mut events = undo_all(&mut state);
    if events.is_empty() {
        events.push(Event::NothingToUndo);
    }
    print(&events, &mut log)?;
    complete(&events)
}

/// An error if an undo failed.
fn complete<E>(events: &[Event]) -> Result<(), StopReason<E>> {
    let failed = events.iter().any(|event| matches!(event, Event::Failed { .. }));
    if failed { Err(StopReason::Nothing("not everything is undone; --undo tries again")) } else { Ok(()) }
}
