//! The polling loop: queries the server, reports samples to the consumer, publishes the state, and waits.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use leeward_fabric::{Cluster, Fabric, Load, Nanos, ResourceId};
use leeward_records::Clock;
use tokio::sync::oneshot;

use super::client::{Fault, QueryReply};
use super::meter::{Meter, PortReadings, Ports, Taken, Topology, Window};
use super::plan::Plan;
use super::samples::{Consumer, CurrentCluster, Samples, Stopped};
use super::state::{State, Telemetry, TelemetryStatus};

/// Wait before the next check of a cluster that is changing.
const SHORTLY: Duration = Duration::from_millis(200);

/// Polls by the current plan, until dropped.
pub async fn poll(telemetry: &Telemetry, consumer: &mut impl Consumer, clock: &Clock) -> Infallible {
    let mut plans = telemetry.plans();
    loop {
        let plan = plans.borrow_and_update().clone();
        let go_on = async {
            match plan {
                Some(plan) => Poller { plan, telemetry, consumer: &mut *consumer, clock }.run().await,
                None => {
                    telemetry.set_status(None);
                    consumer.ports(&Ports::default(), 0);
                    std::future::pending().await
                }
            }
        };
        tokio::select! {
            // The sender of plans exists as long as `telemetry`, so the wait only ends with a new plan.
            _ = plans.changed() => {}
            Stopped = go_on => std::future::pending::<()>().await,
        }
    }
}

/// Polling by one plan.
struct Poller<'a, C> {
    plan: Arc<Plan>,
    telemetry: &'a Telemetry,
    consumer: &'a mut C,
    clock: &'a Clock,
}

/// Result of one round of queries.
struct Round {
    taken: Taken,
    /// First fault of the round.
    fault: Option<Fault>,
    /// Warning of Prometheus.
    warning: Option<String>,
    /// Offset of the server's clock to the local clock, in milliseconds; positive if the server is ahead.
    ahead_ms: Option<i64>,
}

/// Request for a round.
struct Ask {
    cluster: CurrentCluster,
    now: Nanos,
    answer: oneshot::Sender<Round>,
}

impl<C: Consumer> Poller<'_, C> {
    /// Runs until the consumer stops.
    async fn run(&mut self) -> Stopped {
        let mut status = TelemetryStatus::new(&self.plan, State::Starts, self.clock.now());
        self.telemetry.set_status(Some(status.clone()));
        let thread = match PollThread::start(self.plan.clone(), self.clock.clone()) {
            Ok(thread) => thread,
            Err(error) => {
                status.state = State::Fails(format!("cannot start a thread: {error}"));
                self.telemetry.set_status(Some(status));
                return std::future::pending().await;
            }
        };
        let mut failed = 0;
        loop {
            if self.consumer.follows() {
                // The known ports are from this service's last leadership.
                status = TelemetryStatus::new(&self.plan, State::Follows, self.clock.now());
                self.consumer.ports(&status.ports, 0);
                self.telemetry.set_status(Some(status.clone()));
                match self.consumer.leader_changed().await {
                    Ok(()) => continue,
                    Err(stopped) => return stopped,
                }
            }
            let Some(cluster) = self.consumer.cluster() else {
                tokio::time::sleep(SHORTLY).await;
                continue;
            };
            let began = self.clock.now();
            let Some(round) = thread.ask(cluster.clone(), began).await else {
                status.state = State::Fails("the thread that asks has failed".to_owned());
                self.telemetry.set_status(Some(status));
                return std::future::pending().await;
            };
            let took = self.clock.now().since(began);
            self.consumer.polled(round.fault.is_none(), round.taken.steps, Duration::from_nanos(took.0));
            failed = if round.fault.is_some() { failed + 1 } else { 0 };
            let asked = round.fault.as_ref().and_then(|fault| fault.after);
            self.tell(&mut status, &cluster.fabric, &round);
            if let Err(stopped) = self.hand_in(round.taken, &cluster.fabric).await {
                return stopped;
            }
            let wait = Duration::from_nanos(self.plan.wait(took, failed, asked).0);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = self.consumer.leader_changed() => {}
            }
        }
    }

    /// Reports the loads of links to the consumer, one window at a time.
    async fn hand_in(&mut self, taken: Taken, fabric: &Arc<Fabric>) -> Result<(), Stopped> {
        let Taken { windows, speeds, .. } = taken;
        for Window { from, until, loads } in windows {
            let speed = |&(link, _): &(ResourceId, Load)| Some((link, *speeds.get(&link)?));
            let speeds = loads.iter().filter_map(speed).collect();
            let samples = Samples { window: (from, until), loads, speeds };
            self.consumer.take(samples, fabric.clone()).await?;
        }
        Ok(())
    }

    /// Publishes the state after a round.
    fn tell(&mut self, status: &mut TelemetryStatus, fabric: &Fabric, round: &Round) {
        let state = match &round.fault {
            Some(fault) => State::Fails(fault.why.clone()),
            None => State::Answers,
        };
        if status.state.name() != state.name() {
            status.since = self.clock.now();
        }
        status.state = state;
        status.look(&self.plan, fabric, round.taken.ports.clone());
        if let Some(warning) = &round.warning {
            status.remarks.insert("warning", format!("Prometheus warns: {warning}"));
        }
        let interval_ms = self.plan.interval.0 / 1_000_000;
        // HTTP dates have a resolution of one second, and the response took time.
        if let Some(ahead) = round.ahead_ms.filter(|ahead| ahead.unsigned_abs() > interval_ms.max(2_000)) {
            let (seconds, word) = (ahead.abs() / 1000, if ahead > 0 { "ahead of" } else { "behind" });
            let text = format!("Prometheus' clock is {seconds} s {word} this service's: set both by NTP");
            status.remarks.insert("clock", text);
        }
        self.consumer.ports(&status.ports, status.remarks.len());
        self.telemetry.set_status(Some(status.clone()));
    }
}

/// The query thread. The thread ends after its current round when this handle is dropped.
struct PollThread(mpsc::Sender<Ask>);

impl PollThread {
    fn start(plan: Arc<Plan>, clock: Clock) -> io::Result<PollThread> {
        let (sender, asks) = mpsc::channel();
        let named = std::thread::Builder::new().name("leeward-poll".to_owned());
        named.spawn(move || listen(&plan, &clock, &asks))?;
        Ok(PollThread(sender))
    }

    /// Runs a round; `None` if the thread is gone.
    async fn ask(&self, cluster: CurrentCluster, now: Nanos) -> Option<Round> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Ask { cluster, now, answer }).ok()?;
        answered.await.ok()
    }
}

fn listen(plan: &Plan, clock: &Clock, asks: &mpsc::Receiver<Ask>) {
    let mut known: Option<(Arc<Fabric>, Cluster, Meter)> = None;
    while let Ok(Ask { cluster: CurrentCluster { fabric, text }, now, answer }) = asks.recv() {
        if known.as_ref().is_none_or(|(known, ..)| !Arc::ptr_eq(known, &fabric)) {
            // The service already parsed this text, so it is valid.
            let Ok(read) = Cluster::from_text("the cluster", &text) else { continue };
            known = Some((fabric.clone(), read, Meter::new(plan.map.clone(), plan.interval)));
        }
        let Some((_, cluster, meter)) = &mut known else { continue };
        let at_ms = clock.unix_ms(now);
        let mut round = Round { taken: Taken::default(), fault: None, warning: None, ahead_ms: None };
        let mut heard = PortReadings::default();
        for (asked, query) in plan.queries() {
            match plan.client.ask(&query, at_ms) {
                Ok(QueryReply { answer, date_ms }) => {
                    let now_ms = clock.unix_ms(clock.now());
                    round.ahead_ms = round.ahead_ms.or(date_ms.map(|date| date - now_ms));
                    round.warning = round.warning.or(answer.warning);
                    asked.put(answer.series, &mut heard);
                }
                Err(fault) => {
                    let away = fault.away;
                    let why = if away { fault.why } else { format!("{}: {}", asked.field(), fault.why) };
                    round.fault.get_or_insert(Fault { why, ..fault });
                    if away {
                        break;
                    }
                }
            }
        }
        let topology = Topology { fabric: &fabric, capacities: &cluster.capacities };
        round.taken = meter.take(&topology, now, heard, |at| clock.at_unix_ms(at));
        // The poller may have switched to another plan.
        let _ = answer.send(round);
    }
}
