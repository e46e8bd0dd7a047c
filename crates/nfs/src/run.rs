//! Start of a proxy from its settings, and the loop around it: log, reports, signals, systemd.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::Duration;

use leeward_client::{end_with_parent, unblock_signals};
use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_lease::{Addresses, Connection};
use leeward_systemd::Notifier;
use leeward_traces::device::Device;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use crate::clock::Clock;
use crate::control::Control;
use crate::event::{Event, Events};
use crate::proxy::{Export, Handle, Proxy, ProxySettings};
use crate::received::Rules;
use crate::server::{Server, machine_name};
use crate::settings::{Settings, WorkloadSource};
use crate::workload_file::ServerWorkloads;
use crate::workloads::Workloads;

/// Name and version that requests to controllers have.
const PROGRAM: &str = concat!("leeward-nfs/", env!("CARGO_PKG_VERSION"));
/// Time between two looks at the threads and signals.
const LOOK: Duration = Duration::from_millis(100);
/// Longest time of a process that ends.
const END: Duration = Duration::from_secs(2);
/// Tasks that run between two looks at sockets. With the usual 61, large requests would delay small ones.
const TASKS_BETWEEN_EVENTS: u32 = 8;

/// A line of output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Line<'a> {
    /// An event for the log.
    Log(&'a str),
    /// Counters, as JSON on one line.
    Report(&'a str),
}

/// Reason why a proxy ends without a signal.
#[derive(Debug)]
pub enum StopReason<E> {
    /// Invalid settings or files.
    Input(InputError),
    /// The server, its export or a port is not available, or the system failed.
    Failed(io::Error),
    /// The callback for lines failed.
    Output(E),
}

impl<E> From<InputError> for StopReason<E> {
    fn from(error: InputError) -> Self {
        StopReason::Input(error)
    }
}

/// Serves the exports until SIGINT or SIGTERM. `write` receives log lines and reports: one report at each interval, and
/// one at the end. SIGHUP reads the workloads again. systemd is notified if it started the process.
///
/// With a controller, the workloads are those of its promises, under a lease. Without a controller for the length of the
/// lease, all requests are best effort until one answers again.
///
/// # Errors
/// Returns the reason of the stop; see [`StopReason`].
pub fn run<E>(
    settings: &Settings,
    mut write: impl FnMut(Line<'_>) -> Result<(), E>,
) -> Result<(), StopReason<E>> {
    let clock = Clock::start();
    let (events, receiver) = Events::channel();
    end_with_parent().map_err(StopReason::Failed)?;
    let Start { proxy, mut control, device } = start(settings, clock, &events)?;
    for ((export, _), address) in settings.exports.iter().zip(proxy.addresses()) {
        events.send(Event::Listening { export: export.to_string(), address });
    }
    let handle = proxy.handle();
    let runtime = runtime(settings.threads).map_err(StopReason::Failed)?;
    let (stops, reloads) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    watch_signals(&runtime, stops.clone(), reloads.clone()).map_err(StopReason::Failed)?;
    let stopped = {
        let stops = stops.clone();
        async move {
            while !stops.load(Ordering::Relaxed) {
                tokio::time::sleep(LOOK).await;
            }
        }
    };
    let serving = thread::Builder::new().name("leeward-nfs".to_owned());
    let serving = serving.spawn(move || {
        let result = runtime.block_on(proxy.run(stopped));
        runtime.shutdown_timeout(END);
        result
    });
    let serving = serving.map_err(StopReason::Failed)?;
    let mut systemd = Systemd::new(&events, clock.now());
    let mut next_report = settings.interval.map(|interval| clock.now().plus(interval));
    let mut limiter = LineLimit::default();
    let result = loop {
        match receiver.recv_timeout(LOOK) {
            Ok(event) if limiter.allows(clock.now()) => {
                if let Err(error) = write(Line::Log(&event.to_string())) {
                    break Err(StopReason::Output(error));
                }
            }
            Ok(_) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        limiter.left_out += events.take_dropped();
        let left_out = limiter.take_left_out(clock.now());
        if left_out > 0
            && let Err(error) = write(Line::Log(&format!("{left_out} further lines left out")))
        {
            break Err(StopReason::Output(error));
        }
        if reloads.swap(false, Ordering::Relaxed) {
            reload(settings, device.as_deref(), &handle, &events);
        }
        let lines = control.as_mut().map(|control| control.follow(&handle)).unwrap_or_default();
        if let Err(error) = lines.iter().try_for_each(|line| write(Line::Log(line))) {
            break Err(StopReason::Output(error));
        }
        if let (Some(at), Some(interval)) = (next_report, settings.interval)
            && clock.now() >= at
        {
            // A report that is late does not cause others at once.
            next_report = Some(at.plus(interval).max(clock.now()));
            if let Err(error) = write(Line::Report(&report(&handle))) {
                break Err(StopReason::Output(error));
            }
        }
        systemd.tick(clock.now(), &handle, control.as_ref());
        if serving.is_finished() {
            break Ok(());
        }
    };
    stops.store(true, Ordering::Relaxed);
    systemd.stopping();
    let line = control.and_then(Control::remove);
    let served = serving.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
    result?;
    served.map_err(StopReason::Failed)?;
    line.iter().try_for_each(|line| write(Line::Log(line))).map_err(StopReason::Output)?;
    for event in receiver.try_iter() {
        write(Line::Log(&event.to_string())).map_err(StopReason::Output)?;
    }
    write(Line::Report(&report(&handle))).map_err(StopReason::Output)
}

/// Counters as JSON on one line.
fn report(handle: &Handle) -> String {
    serde_json::to_string(&handle.report()).unwrap_or_default()
}

/// A proxy that listens, and its control by a controller, if there is one.
struct Start {
    proxy: Proxy,
    control: Option<Control>,
    device: Option<Arc<Device>>,
}

/// Reads the files, finds the server and listens.
fn start<E>(settings: &Settings, clock: Clock, events: &Events) -> Result<Start, StopReason<E>> {
    let (workloads, device) = read(settings, events)?;
    let caps = settings.caps(device.as_deref());
    let stated = device.as_ref().is_some_and(|device| device.outstanding.requests().is_some());
    if settings.workloads.is_some() && !settings.caps.has_outstanding() && !stated {
        let note = "no device file states a number of requests at once, so they start one at a time; --outstanding sets it";
        events.send(Event::Note(note.to_owned()));
    }
    if settings.allow.is_none() && settings.exports.iter().any(|(_, listen)| !listen.ip().is_loopback()) {
        let note =
            "clients of any address may connect, and the client lists of the exports do not apply to them";
        events.send(Event::Note(note.to_owned()));
    }
    let machine = machine_name();
    let failed = |error: InputError| StopReason::Failed(io::Error::other(error.to_string()));
    let mut exports = Vec::with_capacity(settings.exports.len());
    for (export, listen) in &settings.exports {
        let server = Server::find(export, settings.ports, settings.source, &machine).map_err(failed)?;
        exports.push(Export { server, listen: *listen });
    }
    let control = match &settings.workloads {
        Some(WorkloadSource::Controller(controller)) => {
            Addresses::read(controller.addresses.as_deref())?;
            let rules = Rules {
                exports: exports.len(),
                named: settings.workload_exports.clone(),
                over: settings.over,
                outstanding: caps.outstanding,
            };
            Some(Control::new(Connection::start(controller.clone(), PROGRAM)?, rules))
        }
        Some(WorkloadSource::Files(_)) | None => None,
    };
    let proxy = ProxySettings {
        exports,
        limits: settings.limits,
        source: settings.source,
        allowed: settings.allowed(),
        reserved_clients: settings.reserved_clients,
        caps,
        order: settings.order,
        device: device.clone(),
        workloads,
        recorder: settings.recorder.clone(),
    };
    let proxy = Proxy::bind(proxy, clock, events.clone()).map_err(failed)?;
    Ok(Start { proxy, control, device })
}

/// Reads the workloads of the files, if there are any, and their device: that of the settings, or else the one that they
/// name.
fn read(settings: &Settings, events: &Events) -> Result<(Workloads, Option<Arc<Device>>), InputError> {
    let given = settings.device.as_deref().map(Device::read).transpose()?.map(Arc::new);
    let exports = settings.exports.len();
    let Some(WorkloadSource::Files(files)) = &settings.workloads else {
        return Ok((Workloads::none(exports), given));
    };
    let addresses = Addresses::read(files.addresses.as_deref())?;
    let ServerWorkloads { entries, device, notes } = settings.sources(files).read(&addresses)?;
    notes.into_iter().for_each(|note| events.send(Event::Note(note)));
    let device = given.or(device.map(|(_, device)| device));
    if device.is_none() && entries.iter().any(|entry| !entry.workload.limits.is_empty()) {
        let message = "missing; the limits of workloads are seconds of service, which depend on the device";
        return Err(InputError::new("--device", message));
    }
    let workloads = Workloads::new(exports, entries);
    let workloads =
        workloads.map_err(|error| InputError::new(&files.workloads, format!("{error} (--workload)")))?;
    Ok((workloads, device))
}

/// Reads the workloads again. After an error, the workloads stay. `running` is the device of the proxy, on which its caps
/// and the work of its requests depend.
fn reload(settings: &Settings, running: Option<&Device>, handle: &Handle, events: &Events) {
    let replaced = match &settings.workloads {
        Some(WorkloadSource::Files(_)) => read(settings, events).map_err(|error| error.to_string()),
        _ => Err("there is no file of workloads".to_owned()),
    };
    let replaced = replaced.and_then(|(workloads, device)| match device.as_deref() == running {
        true => handle.replace(workloads).map_err(|error| error.to_string()),
        false => Err("their device differs from that of the start; a restart applies it".to_owned()),
    });
    if let Err(error) = replaced {
        events.send(Event::Note(format!("workloads not replaced: {error}")));
    }
}

fn runtime(threads: usize) -> io::Result<Runtime> {
    let mut builder = if threads == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    if threads > 1 {
        builder.worker_threads(threads);
    }
    builder.thread_name("leeward-nfs").event_interval(TASKS_BETWEEN_EVENTS).enable_all().build()
}

/// Sets flags at signals, also at those that came before.
fn watch_signals(runtime: &Runtime, stops: Arc<AtomicBool>, reloads: Arc<AtomicBool>) -> io::Result<()> {
    let _entered = runtime.enter();
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    for (kind, flag) in kinds.into_iter().zip([stops.clone(), stops, reloads]) {
        let mut signals = signal(kind)?;
        runtime.spawn(async move {
            while signals.recv().await.is_some() {
                flag.store(true, Ordering::Relaxed);
            }
        });
    }
    unblock_signals()
}

/// Lines of the log in the current second. A client that provokes many lines must not fill a disk with them.
#[derive(Debug, Default)]
struct LineLimit {
    second: u64,
    lines: u64,
    left_out: u64,
}

impl LineLimit {
    /// Lines of a second.
    const MOST: u64 = 20;

    fn allows(&mut self, now: Nanos) -> bool {
        let second = now.0 / Nanos::SECOND.0;
        if second != self.second {
            (self.second, self.lines) = (second, 0);
        }
        self.lines += 1;
        let allows = self.lines <= LineLimit::MOST;
        self.left_out += u64::from(!allows);
        allows
    }

    /// Number of lines left out, once their second is over.
    fn take_left_out(&mut self, now: Nanos) -> u64 {
        if now.0 / Nanos::SECOND.0 == self.second { 0 } else { std::mem::take(&mut self.left_out) }
    }
}

/// Messages to systemd.
struct Systemd {
    notifier: Option<Notifier>,
    next: Nanos,
    /// Number of rounds of the proxy at the last message.
    rounds: u64,
}

impl Systemd {
    fn new(events: &Events, now: Nanos) -> Systemd {
        let notifier = Notifier::from_env().unwrap_or_else(|error| {
            events.send(Event::Note(format!("systemd is not notified: NOTIFY_SOCKET unavailable: {error}")));
            None
        });
        if let Some(notifier) = &notifier {
            // A message that systemd does not take now is lost; the next one comes soon.
            drop(notifier.ready("serving"));
        }
        Systemd { notifier, next: now, rounds: 0 }
    }

    /// Sends the status and, while the proxy works, a message to the watchdog.
    fn tick(&mut self, now: Nanos, handle: &Handle, control: Option<&Control>) {
        let Some(notifier) = &self.notifier else { return };
        if now < self.next {
            return;
        }
        self.next = now.plus(Nanos(notifier.tick().as_nanos() as u64));
        let rounds = handle.rounds();
        let works = rounds != self.rounds;
        self.rounds = rounds;
        let lease = control.map(|control| format!("; {}", control.status())).unwrap_or_default();
        drop(notifier.works(works, &format!("{}{lease}", Status(handle))));
    }

    fn stopping(&self) {
        if let Some(notifier) = &self.notifier {
            drop(notifier.stopping("ending"));
        }
    }
}

/// Status of a proxy in one line.
struct Status<'a>(&'a Handle);

impl fmt::Display for Status<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (connections, waiting, in_service) = self.0.load();
        write!(f, "{connections} connections, {waiting} requests wait, {in_service} at the server")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_a_number_of_lines_and_the_next_one_says_how_many_were_left_out() {
        let mut limit = LineLimit::default();
        let at = |seconds: u64| Nanos(seconds * Nanos::SECOND.0 + 5);
        let allowed = (0..50).filter(|_| limit.allows(at(3))).count();
        assert_eq!((allowed, limit.take_left_out(at(3))), (20, 0));
        assert_eq!((limit.take_left_out(at(4)), limit.take_left_out(at(4))), (30, 0));
        assert!(limit.allows(at(4)));
    }
}
