//! The loop: reads, reports, and waits.

use std::convert::Infallible;
use std::thread;

use leeward_fabric::input::InputError;
use leeward_probe::Limits;
use leeward_probe::control::Listener;

use crate::client::Client;
use crate::clock::{Clock, random};
use crate::counters::Meter;
use crate::machine::Machine;
use crate::pace::Pace;
use crate::report::{Event, Reporter};
use crate::settings::Settings;

/// Why an agent stopped that nobody told to.
#[derive(Debug)]
pub enum Stopped<E> {
    /// What it was given is wrong.
    Input(InputError),
    /// Who is told what happens did not take it.
    Told(E),
}

impl<E> From<InputError> for Stopped<E> {
    fn from(error: InputError) -> Self {
        Stopped::Input(error)
    }
}

/// Reads and reports until the process is ended; what it has sent by then is all that counts. `tell` hears what happens.
///
/// # Errors
/// See [`Stopped`].
pub fn run<E>(
    settings: &Settings,
    mut tell: impl FnMut(&Event) -> Result<(), E>,
) -> Result<Infallible, Stopped<E>> {
    let client = Client::new(settings)?;
    if let Some((address, secret)) = &settings.probe {
        let wrong = |error| InputError::new("--probe-listen", error);
        let listener = Listener::bind(*address, Limits::default(), secret.clone()).map_err(wrong)?;
        let named = thread::Builder::new().name("leeward-probe".to_owned());
        let serving = named.spawn(move || listener.run());
        serving.map_err(|error| InputError::new("--probe-listen", error))?;
    }
    let (machine, clock) = (Machine::default(), Clock::start());
    let pace = Pace::new(settings.interval, clock.now(), random());
    let meter = Meter::new(settings.interfaces.iter().cloned());
    let mut reporter = Reporter::new(settings.host.clone(), meter, pace);
    loop {
        let read = machine.read(clock.now(), Clock::wall());
        let event = match read {
            Ok(reading) => reporter.read(&reading),
            Err(error) => reporter.unread(error.to_string()),
        };
        event.map_or(Ok(()), |event| tell(&event)).map_err(Stopped::Told)?;
        if let Some(report) = reporter.report(clock.now()) {
            let answer = client.send(&report);
            let event = reporter.answered(clock.now(), answer, random());
            event.map_or(Ok(()), |event| tell(&event)).map_err(Stopped::Told)?;
        }
        let next = reporter.next(clock.now(), random());
        clock.sleep_until(next);
    }
}
