//! The polling loop: queries the server, reports samples to the consumer, publishes the state, and waits.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use leeward_fabric::{Cluster, Fabric, Load, Nanos, ResourceId};
use leeward_records::Clock;
use tokio::sync::oneshot;

use super::client::{QueryError, QueryReply};
use super::meter::{Meter, PortReadings, Ports, RoundResult, Topology, Window};
use super::plan::Plan;
use super::samples::{Consumer, CurrentCluster, Samples, Stopped};
use super::state::{State, Telemetry, TelemetryStatus};

/// Wait before the next check of a cluster that is changing.
const RETRY_WAIT: Duration = Duration::from_millis(200);

/// Polls by the current plan, until dropped.
pub async fn poll(telemetry: &Telemetry, consumer: &mut impl Consumer, clock: &Clock) -> Infallible {
    let mut plans = telemetry.plans();
    loop {
        let plan = plans.borrow_and_update().clone();
        let polling = async {
            match plan {
                Some(plan) => Poller { plan, telemetry, consumer: &mut *consumer, clock }.run().await,
                None => {
                    telemetry.set_status(None);
                    consumer.set_ports(&Ports::default(), 0);
                    std::future::pending().await
                }
            }
        };
        tokio::select! {
            // The sender of plans exists as long as `telemetry`, so the wait only ends with a new plan.
            _ = plans.changed() => {}
            Stopped = polling => std::future::pending::<()>().await,
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
    result: RoundResult,
    /// First failure of the round.
    error: Option<QueryError>,
    /// Warning of Prometheus.
    warning: Option<String>,
    /// Offset of the server's clock from the local clock, in milliseconds; positive if the server is ahead.
    ahead_ms: Option<i64>,
}

/// Request for a round.
struct RoundRequest {
    cluster: CurrentCluster,
    now: Nanos,
    reply: oneshot::Sender<Round>,
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
                self.consumer.set_ports(&status.ports, 0);
                self.telemetry.set_status(Some(status.clone()));
                match self.consumer.leader_changed().await {
                    Ok(()) => continue,
                    Err(stopped) => return stopped,
                }
            }
            let Some(cluster) = self.consumer.cluster() else {
                tokio::time::sleep(RETRY_WAIT).await;
                continue;
            };
            let began = self.clock.now();
            let Some(round) = thread.run_round(cluster.clone(), began).await else {
                status.state = State::Fails("the query thread has failed".to_owned());
                self.telemetry.set_status(Some(status));
                return std::future::pending().await;
            };
            let took = self.clock.now().since(began);
            self.consumer.count_round(
                round.error.is_none(),
                round.result.steps,
                Duration::from_nanos(took.0),
            );
            failed = if round.error.is_some() { failed + 1 } else { 0 };
            let retry_after = round.error.as_ref().and_then(|error| error.retry_after);
            self.publish(&mut status, &cluster.fabric, &round);
            if let Err(stopped) = self.deliver(round.result, &cluster.fabric).await {
                return stopped;
            }
            let wait = Duration::from_nanos(self.plan.wait(took, failed, retry_after).0);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = self.consumer.leader_changed() => {}
            }
        }
    }

    /// Reports the loads of links to the consumer, one window at a time.
    async fn deliver(&mut self, result: RoundResult, fabric: &Arc<Fabric>) -> Result<(), Stopped> {
        let RoundResult { windows, speeds, .. } = result;
        for Window { from, until, loads } in windows {
            let speed = |&(link, _): &(ResourceId, Load)| Some((link, *speeds.get(&link)?));
            let speeds = loads.iter().filter_map(speed).collect();
            let samples = Samples { window: (from, until), loads, speeds };
            self.consumer.take(samples, fabric.clone()).await?;
        }
        Ok(())
    }

    /// Publishes the state after a round.
    fn publish(&mut self, status: &mut TelemetryStatus, fabric: &Fabric, round: &Round) {
        let state = match &round.error {
            Some(error) => State::Fails(error.reason.clone()),
            None => State::Answers,
        };
        if status.state.name() != state.name() {
            status.since = self.clock.now();
        }
        status.state = state;
        status.update(&self.plan, fabric, round.result.ports.clone());
        if let Some(warning) = &round.warning {
            status.remarks.insert("warning", format!("Prometheus returned a warning: {warning}"));
        }
        let interval_ms = self.plan.interval.0 / 1_000_000;
        // HTTP dates have a resolution of one second, and the response took time.
        if let Some(ahead) = round.ahead_ms.filter(|ahead| ahead.unsigned_abs() > interval_ms.max(2_000)) {
            let (seconds, word) = (ahead.abs() / 1000, if ahead > 0 { "ahead of" } else { "behind" });
            let text = format!(
                "the clock of Prometheus is {seconds} s {word} the clock of this service: synchronize both by NTP"
            );
            status.remarks.insert("clock", text);
        }
        self.consumer.set_ports(&status.ports, status.remarks.len());
        self.telemetry.set_status(Some(status.clone()));
    }
}

/// The query thread. The thread ends after its current round when this handle is dropped.
struct PollThread(mpsc::Sender<RoundRequest>);

impl PollThread {
    fn start(plan: Arc<Plan>, clock: Clock) -> io::Result<PollThread> {
        let (sender, requests) = mpsc::channel();
        let builder = std::thread::Builder::new().name("leeward-poll".to_owned());
        builder.spawn(move || run_rounds(&plan, &clock, &requests))?;
        Ok(PollThread(sender))
    }

    /// Runs a round; `None` if the thread is gone.
    async fn run_round(&self, cluster: CurrentCluster, now: Nanos) -> Option<Round> {
        let (reply, round) = oneshot::channel();
        self.0.send(RoundRequest { cluster, now, reply }).ok()?;
        round.await.ok()
    }
}

/// Answers requests until their sender is dropped.
fn run_rounds(plan: &Plan, clock: &Clock, requests: &mpsc::Receiver<RoundRequest>) {
    let mut current: Option<(Arc<Fabric>, Cluster, Meter)> = None;
    while let Ok(RoundRequest { cluster: CurrentCluster { fabric, text }, now, reply }) = requests.recv() {
        if current.as_ref().is_none_or(|(current, ..)| !Arc::ptr_eq(current, &fabric)) {
            // The service already parsed this text, so it is valid.
            let Ok(cluster) = Cluster::from_text("the cluster", &text) else { continue };
            current = Some((fabric.clone(), cluster, Meter::new(plan.map.clone(), plan.interval)));
        }
        let Some((_, cluster, meter)) = &mut current else { continue };
        let at_ms = clock.unix_ms(now);
        let mut round = Round { result: RoundResult::default(), error: None, warning: None, ahead_ms: None };
        let mut readings = PortReadings::default();
        for (kind, query) in plan.queries() {
            match plan.client.query(&query, at_ms) {
                Ok(QueryReply { answer, date_ms }) => {
                    let now_ms = clock.unix_ms(clock.now());
                    round.ahead_ms = round.ahead_ms.or(date_ms.map(|date| date - now_ms));
                    round.warning = round.warning.or(answer.warning);
                    kind.store(answer.series, &mut readings);
                }
                Err(error) => {
                    let ends_round = error.ends_round;
                    let reason =
                        if ends_round { error.reason } else { format!("{}: {}", kind.field(), error.reason) };
                    round.error.get_or_insert(QueryError { reason, ..error });
                    if ends_round {
                        break;
                    }
                }
            }
        }
        let topology = Topology { fabric: &fabric, capacities: &cluster.capacities };
        round.result = meter.process(&topology, now, readings, |at| clock.at_unix_ms(at));
        // The poller may have switched to another plan.
        let _ = reply.send(round);
    }
}
