//! Main loop: reads, reports and sleeps.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use leeward_client::{Client, Clock, Rejection, random};
use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_probe::Limits;
use leeward_probe::control::Listener;
use leeward_systemd::Notifier;

use crate::body::{Acceptance, Report};
use crate::counters::Meter;
use crate::enforcers::Enforcers;
use crate::liveness::{Liveness, Message};
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

/// Name and version that requests have.
const PROGRAM: &str = concat!("leeward-agent/", env!("CARGO_PKG_VERSION"));
/// Time between two looks at the threads without systemd.
const IDLE: Duration = Duration::from_secs(3_600);

/// Time between two looks at enforcers.
const LOOK: Duration = Duration::from_millis(200);

/// Reads and reports until the process ends. A report that was not sent by then is lost. `log` receives events, one
/// line each. With several controllers, a line begins with the controller's URL. systemd is notified if it started the
/// agent.
///
/// An agent with enforcers calls `stops` several times a second, and returns when it is true and the enforcers have undone
/// their work. Without enforcers, it does not call it.
///
/// # Errors
/// Returns the reason of the stop; see [`StopReason`].
pub fn run<E>(
    settings: &Arc<Settings>,
    mut log: impl FnMut(&str) -> Result<(), E>,
    mut stops: impl FnMut() -> Result<bool, E>,
) -> Result<(), StopReason<E>> {
    let controllers = &settings.access.controllers;
    let clients: Vec<Client> = controllers
        .iter()
        .map(|url| Client::new(&settings.access, url, PROGRAM))
        .collect::<Result<_, _>>()?;
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
    let (messages, receiver) = channel();
    let clock = Clock::start();
    let notifier = match Notifier::from_env() {
        Ok(notifier) => notifier,
        Err(error) => {
            let line = format!("systemd is not notified: NOTIFY_SOCKET unavailable: {error}");
            log(&line).map_err(StopReason::Output)?;
            None
        }
    };
    let mut liveness =
        Liveness::new(notifier, clients.iter().map(Client::url), settings.interval, clock.now());
    for client in clients {
        let (settings, messages) = (settings.clone(), messages.clone());
        let builder = thread::Builder::new().name("leeward-reports".to_owned());
        let reporting = builder.spawn(move || report_to(&client, &settings, probe, clock, &messages));
        reporting.map_err(|error| InputError::new("--controller", error))?;
    }
    let mut enforcers = Enforcers::new(&settings.enforcers, clock.now());
    let period = liveness.period();
    let mut next_tick = clock.now();
    loop {
        if let Some(period) = period.filter(|_| clock.now() >= next_tick) {
            liveness.tick(clock.now());
            next_tick = clock.now().plus(Nanos(period.as_nanos() as u64));
        }
        let mut wait = period.map_or(IDLE, |_| Duration::from_nanos(next_tick.since(clock.now()).0));
        if !enforcers.is_empty() {
            wait = wait.min(LOOK);
            let mut lines = enforcers.tick(clock.now(), random());
            let ends = stops().map_err(StopReason::Output)?;
            if ends {
                lines.extend(enforcers.end(clock));
            }
            lines.iter().try_for_each(|line| log(line)).map_err(StopReason::Output)?;
            if ends {
                return Ok(());
            }
        }
        match receiver.recv_timeout(wait) {
            Ok((url, Message::Event(event))) => {
                let line = if several { format!("{url}: {event}") } else { event.to_string() };
                log(&line).map_err(StopReason::Output)?;
                liveness.record(&url, &event);
            }
            Ok((url, Message::Turn { next, attempted })) => liveness.turn(&url, next, attempted),
            Err(RecvTimeoutError::Timeout) => {}
            // This sender keeps the channel open.
            Err(RecvTimeoutError::Disconnected) => unreachable!("{messages:?} is held"),
        }
    }
}

/// Sends a report.
fn send(client: &Client, report: &Report) -> Result<Acceptance, Rejection> {
    let body = serde_json::to_string(report).map_err(|error| Rejection::new(error.to_string()))?;
    client.post("/v1/reports", body)
}

/// Reads and reports to one controller, independent of others, until the receiver of events is gone.
fn report_to(
    client: &Client,
    settings: &Settings,
    probe: Option<u16>,
    clock: Clock,
    messages: &Sender<(String, Message)>,
) {
    let mut machine =
        Machine::default().with_volumes(settings.volumes.clone()).with_pods(settings.pods.clone());
    let schedule = ReportSchedule::new(settings.interval, clock.now(), random());
    let meter = Meter::new(settings.interfaces.iter().cloned());
    let disks = Disks::new(settings.devices.iter().cloned());
    let mut reporter = Reporter::new(settings.host.clone(), meter, disks, schedule).with_probe(probe);
    loop {
        let mut new_events = match machine.read(clock.now(), Clock::wall()) {
            Ok(reading) => reporter.read(&reading),
            Err(error) => reporter.read_failed(error.to_string()).into_iter().collect(),
        };
        let report = reporter.report(clock.now());
        let attempted = report.is_some();
        if let Some(report) = report {
            let reply = send(client, &report);
            new_events.extend(reporter.process_reply(clock.now(), reply, random()));
        }
        let next = reporter.next(clock.now(), random());
        let events = new_events.into_iter().map(Message::Event);
        for message in events.chain([Message::Turn { next, attempted }]) {
            if messages.send((client.url().to_owned(), message)).is_err() {
                return;
            }
        }
        clock.sleep_until(next);
    }
}
