//! Main loop: reads, reports and sleeps.

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
use crate::report::{Disks, Reporter};
use crate::report_schedule::ReportSchedule;
use crate::settings::Settings;

/// Reason why the agent stops by itself.
#[derive(Debug)]
pub enum StopReason<E> {
    /// Invalid settings.
    Input(InputError),
    /// The log callback failed.
    Output(E),
}

impl<E> From<InputError> for StopReason<E> {
    fn from(error: InputError) -> Self {
        StopReason::Input(error)
    }
}

/// Reads and reports until the process ends. A report that was not sent by then is lost. `log` receives events, one
/// line each. With several controllers, a line begins with the controller's URL.
///
/// # Errors
/// Returns the reason of the stop; see [`StopReason`].
pub fn run<E>(
    settings: &Arc<Settings>,
    mut log: impl FnMut(&str) -> Result<(), E>,
) -> Result<Infallible, StopReason<E>> {
    let clients: Vec<Client> =
        settings.controllers.iter().map(|url| Client::new(settings, url)).collect::<Result<_, _>>()?;
    let mut probe = None;
    if let Some((address, secret)) = &settings.probe {
        let invalid = |error| InputError::new("--probe-listen", error);
        let listener = Listener::bind(*address, Limits::default(), secret.clone()).map_err(invalid)?;
        // The port in use, which differs from a requested port 0.
        probe = Some(listener.address().map_err(invalid)?.port());
        let builder = thread::Builder::new().name("leeward-probe".to_owned());
        let serving = builder.spawn(move || listener.run());
        serving.map_err(|error| InputError::new("--probe-listen", error))?;
    }
    let several = clients.len() > 1;
    let (events, receiver) = channel();
    for client in clients {
        let (settings, events) = (settings.clone(), events.clone());
        let builder = thread::Builder::new().name("leeward-reports".to_owned());
        let reporting = builder.spawn(move || report_to(&client, &settings, probe, &events));
        reporting.map_err(|error| InputError::new("--controller", error))?;
    }
    loop {
        // This sender keeps the channel open.
        let Ok((url, event)) = receiver.recv() else { unreachable!("{events:?} is held") };
        let line = if several { format!("{url}: {event}") } else { event.to_string() };
        log(&line).map_err(StopReason::Output)?;
    }
}

/// Reads and reports to one controller, independent of others, until the receiver of events is gone.
fn report_to(client: &Client, settings: &Settings, probe: Option<u16>, events: &Sender<(String, Event)>) {
    let (mut machine, clock) = (Machine::default(), Clock::start());
    let schedule = ReportSchedule::new(settings.interval, clock.now(), random());
    let meter = Meter::new(settings.interfaces.iter().cloned());
    let disks = Disks::new(settings.devices.iter().cloned());
    let mut reporter = Reporter::new(settings.host.clone(), meter, disks, schedule).with_probe(probe);
    loop {
        let mut new_events = match machine.read(clock.now(), Clock::wall()) {
            Ok(reading) => reporter.read(&reading),
            Err(error) => reporter.read_failed(error.to_string()).into_iter().collect(),
        };
        if let Some(report) = reporter.report(clock.now()) {
            let reply = client.send(&report);
            new_events.extend(reporter.process_reply(clock.now(), reply, random()));
        }
        for event in new_events {
            if events.send((client.url().to_owned(), event)).is_err() {
                return;
            }
        }
        let next = reporter.next(clock.now(), random());
        clock.sleep_until(next);
    }
}
