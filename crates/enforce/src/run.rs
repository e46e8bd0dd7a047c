//! Main loop: turns at each interval until a signal, and then the undo.

use std::time::Duration;

use leeward_client::{Clock, end_with_parent};
use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_lease::{Connection, Report, Update};
use leeward_systemd::Notifier;

use crate::enforcer::Enforcer;
use crate::error::{EnforceError, StartError};
use crate::event::Event;
use crate::settings::{PROGRAM, PromisesSource, Settings};
use crate::state_file::StateFile;
use crate::undo::undo_all;

/// Time between two looks at the lease.
const LOOK: Duration = Duration::from_millis(100);

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
/// Without a file, the promises are those of a controller under a lease. Without a controller for the length of the lease,
/// everything is undone until one answers again.
///
/// # Errors
/// Returns the reason of the stop; see [`StopReason`]. Everything is undone then too.
pub fn run<E>(
    settings: Settings,
    mut log: impl FnMut(&Event) -> Result<(), E>,
    wait: impl FnMut(Duration) -> Result<bool, E>,
) -> Result<(), StopReason<E>> {
    let interval = settings.interval;
    let connection = match &settings.promises {
        Some(PromisesSource::Controller(controller)) => {
            let connection = Connection::start(controller.clone(), PROGRAM);
            Some(connection.map_err(StopReason::Input)?)
        }
        Some(PromisesSource::File(_)) | None => None,
    };
    end_with_parent().map_err(EnforceError::system("prctl")).map_err(StopReason::Failed)?;
    let (mut enforcer, mut events) = Enforcer::new(settings)?;
    events.extend(enforcer.undo_others());
    let mut session = Session { connection, interval, clock: Clock::start(), log: &mut log, wait };
    let result = session.print(&events).and_then(|()| session.enforce(&mut enforcer));
    let connection = session.connection;
    if enforcer.leaves() && result.is_ok() {
        return result;
    }
    let mut events = enforcer.undo();
    if let Some(Err(rejection)) = connection.map(Connection::remove) {
        events.push(Event::Lease(format!("not removed at the controller: {}", rejection.why)));
    }
    print(&events, &mut log)?;
    result?;
    complete(&events)
}

/// An enforcer's loop.
struct Session<'l, L, W> {
    /// Lease with a controller.
    connection: Option<Connection>,
    /// Time between two comparisons with the kernel.
    interval: Nanos,
    clock: Clock,
    log: &'l mut L,
    wait: W,
}

impl<E, L: FnMut(&Event) -> Result<(), E>, W: FnMut(Duration) -> Result<bool, E>> Session<'_, L, W> {
    fn enforce(&mut self, enforcer: &mut Enforcer) -> Result<(), StopReason<E>> {
        let notifier = match Notifier::from_env() {
            Ok(notifier) => notifier,
            Err(error) => {
                let note = format!("systemd is not notified: NOTIFY_SOCKET unavailable: {error}");
                self.print(&[Event::Note(note)])?;
                None
            }
        };
        let events = enforcer.turn();
        self.print(&events)?;
        if self.connection.is_none() && !enforcer.is_enforcing() {
            return Err(StopReason::Nothing("no interface is enforced"));
        }
        // A message that systemd does not take now is lost; the next one comes soon.
        let notify = |status: &str, is_first: bool| {
            if let Some(notifier) = &notifier {
                drop(if is_first { notifier.ready(status) } else { notifier.works(true, status) });
            }
        };
        notify(&self.status(enforcer), true);
        let interval = Duration::from_nanos(self.interval.0);
        let tick = notifier.as_ref().map_or(interval, Notifier::tick);
        let mut notified = self.clock.now();
        loop {
            let until = self.clock.now().plus(self.interval);
            loop {
                self.follow(enforcer)?;
                let left = Duration::from_nanos(until.since(self.clock.now()).0);
                if left.is_zero() {
                    break;
                }
                let step = left.min(if self.connection.is_some() { LOOK } else { tick });
                if (self.wait)(step).map_err(StopReason::Output)? {
                    return Ok(());
                }
                let now = self.clock.now();
                if Duration::from_nanos(now.since(notified).0) >= tick {
                    notify(&self.status(enforcer), false);
                    notified = now;
                }
            }
            let events = enforcer.turn();
            self.print(&events)?;
        }
    }

    /// Takes steps of the lease, if there is one.
    fn follow(&mut self, enforcer: &mut Enforcer) -> Result<(), StopReason<E>> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        let mut events = Vec::new();
        loop {
            let update =
                connection.poll(|| Report { addresses: enforcer.addresses(), workloads: enforcer.report() });
            events.extend(connection.take_lines().into_iter().map(Event::Lease));
            match update {
                None => break,
                Some(Update::Release) => events.extend(enforcer.release()),
                Some(Update::Apply(received)) => {
                    events.extend(enforcer.apply(&received));
                    connection.applied(received.is_complete());
                }
            }
        }
        self.print(&events)
    }

    fn status(&self, enforcer: &Enforcer) -> String {
        let enforced = status(enforcer);
        match &self.connection {
            Some(connection) => format!("{enforced}; {}", connection.status()),
            None => enforced,
        }
    }

    fn print(&mut self, events: &[Event]) -> Result<(), StopReason<E>> {
        print(events, &mut *self.log)
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
