//! The loop: reads, reports, and waits.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use leeward_fabric::input::InputError;
use leeward_probe::Limits;
use leeward_probe::control::Listener;

use crate::client::Client;
use crate::clock::{Clock, random};
use crate::counters::Meter;
use crate::event::Event;
use crate::machine::Machine;
use crate::pace::Pace;
use crate::report::{Disks, Reporter};
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

/// Reads and reports until the process is ended; what it has sent by then is all that counts. `tell` hears what happens, a line
/// each; where there are several controllers, it begins with the one that it is about.
///
/// # Errors
/// See [`Stopped`].
pub fn run<E>(
    settings: &Arc<Settings>,
    mut tell: impl FnMut(&str) -> Result<(), E>,
) -> Result<Infallible, Stopped<E>> {
    let clients: Vec<Client> =
        settings.controllers.iter().map(|url| Client::new(settings, url)).collect::<Result<_, _>>()?;
    let mut probe = None;
    if let Some((address, secret)) = &settings.probe {
        let wrong = |error| InputError::new("--probe-listen", error);
        let listener = Listener::bind(*address, Limits::default(), secret.clone()).map_err(wrong)?;
        // Which one was found, where port 0 was asked for.
        probe = Some(listener.address().map_err(wrong)?.port());
        let named = thread::Builder::new().name("leeward-probe".to_owned());
        let serving = named.spawn(move || listener.run());
        serving.map_err(|error| InputError::new("--probe-listen", error))?;
    }
    let several = clients.len() > 1;
    let (events, told) = channel();
    for client in clients {
        let (settings, events) = (settings.clone(), events.clone());
        let named = thread::Builder::new().name("leeward-reports".to_owned());
        let reporting = named.spawn(move || report_to(&client, &settings, probe, &events));
        reporting.map_err(|error| InputError::new("--controller", error))?;
    }
    loop {
        // As long as this one is held there is always somebody who may say something.
        let Ok((url, event)) = told.recv() else { unreachable!("{events:?} is held") };
        let line = if several { format!("{url}: {event}") } else { event.to_string() };
        tell(&line).map_err(Stopped::Told)?;
    }
}

/// Reads and reports to one controller, as if it were the only one, until nobody hears what happens any more.
fn report_to(client: &Client, settings: &Settings, probe: Option<u16>, events: &Sender<(String, Event)>) {
    let (mut machine, clock) = (Machine::default(), Clock::start());
    let pace = Pace::new(settings.interval, clock.now(), random());
    let meter = Meter::new(settings.interfaces.iter().cloned());
    let disks = Disks::new(settings.devices.iter().cloned());
    let mut reporter = Reporter::new(settings.host.clone(), meter, disks, pace).probed_at(probe);
    loop {
        let mut happened = match machine.read(clock.now(), Clock::wall()) {
            Ok(reading) => reporter.read(&reading),
            Err(error) => reporter.unread(error.to_string()).into_iter().collect(),
        };
        if let Some(report) = reporter.report(clock.now()) {
            let answer = client.send(&report);
            happened.extend(reporter.answered(clock.now(), answer, random()));
        }
        for event in happened {
            if events.send((client.url().to_owned(), event)).is_err() {
                return;
            }
        }
        let next = reporter.next(clock.now(), random());
        clock.sleep_until(next);
    }
}
