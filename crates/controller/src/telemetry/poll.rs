//! The loop: asks, hands what it hears to the office as reports, tells how that goes, and waits.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use leeward_fabric::{Cluster, Fabric, Load, Nanos, ResourceId};
use tokio::sync::oneshot;

use super::client::{Fault, Told};
use super::meter::{Ground, Heard, Meter, Ports, Taken, Window};
use super::plan::Plan;
use super::state::{Standing, State, Telemetry};
use crate::clock::Clock;
use crate::desk::{Message, Reading, Report, World};
use crate::office::{Closed, Office, Position};
use crate::store::Version;
use crate::watch::Metrics;

/// How long the cluster may be changing before it is looked at again.
const SHORTLY: Duration = Duration::from_millis(200);

/// Asks whatever plan there is, again and again, until it is dropped.
pub async fn poll(telemetry: &Telemetry, office: &Office, clock: &Clock, metrics: &Metrics) -> Infallible {
    let mut plans = telemetry.plans();
    loop {
        let plan = plans.borrow_and_update().clone();
        let go_on = async {
            match plan {
                Some(plan) => Poller { plan, telemetry, office, clock, metrics }.run().await,
                None => {
                    telemetry.stand(None);
                    metrics.ports(&Ports::default(), 0);
                    std::future::pending().await
                }
            }
        };
        tokio::select! {
            // Who could set another plan has this one too.
            _ = plans.changed() => {}
            Closed = go_on => std::future::pending::<()>().await,
        }
    }
}

/// Polls by one plan.
struct Poller<'a> {
    plan: Arc<Plan>,
    telemetry: &'a Telemetry,
    office: &'a Office,
    clock: &'a Clock,
    metrics: &'a Metrics,
}

/// What a round of questions brought.
struct Round {
    taken: Taken,
    /// The first thing that went wrong.
    fault: Option<Fault>,
    /// What Prometheus warns of.
    warning: Option<String>,
    /// How far the server's clock is ahead of ours, in milliseconds.
    ahead_ms: Option<i64>,
}

/// A round that is to be.
struct Ask {
    world: Arc<World>,
    cluster: Arc<Version>,
    now: Nanos,
    answer: oneshot::Sender<Round>,
}

impl Poller<'_> {
    /// Until the office is gone.
    async fn run(&self) -> Closed {
        let mut standing = Standing::new(&self.plan, State::Starts, self.clock.now());
        self.telemetry.stand(Some(standing.clone()));
        let ears = match Ears::start(self.plan.clone(), self.clock.clone()) {
            Ok(ears) => ears,
            Err(error) => {
                standing.state = State::Fails(format!("no thread is to be had: {error}"));
                self.telemetry.stand(Some(standing));
                return std::future::pending().await;
            }
        };
        let (mut failed, mut position) = (0, self.office.position());
        loop {
            if matches!(*position.borrow_and_update(), Position::Follows { .. }) {
                // What it knows of ports is as old as its lead.
                standing = Standing::new(&self.plan, State::Follows, self.clock.now());
                self.metrics.ports(&standing.ports, 0);
                self.telemetry.stand(Some(standing.clone()));
                match position.changed().await {
                    Ok(()) => continue,
                    Err(_) => return Closed,
                }
            }
            let (world, cluster) = (self.office.last_world(), self.office.cluster());
            if world.version != cluster.number {
                tokio::time::sleep(SHORTLY).await;
                continue;
            }
            let began = self.clock.now();
            let Some(round) = ears.ask(world.clone(), cluster, began).await else {
                standing.state = State::Fails("the thread that asks has failed".to_owned());
                self.telemetry.stand(Some(standing));
                return std::future::pending().await;
            };
            let took = self.clock.now().since(began);
            self.metrics.polled(round.fault.is_none(), round.taken.steps, Duration::from_nanos(took.0));
            failed = if round.fault.is_some() { failed + 1 } else { 0 };
            let asked = round.fault.as_ref().and_then(|fault| fault.after);
            self.tell(&mut standing, &world, &round);
            if self.hand_in(round.taken, &world).await.is_err() {
                return Closed;
            }
            let wait = Duration::from_nanos(self.plan.wait(took, failed, asked).0);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = position.changed() => {}
            }
        }
    }

    /// Hands what links carried to the office, a window at a time.
    async fn hand_in(&self, taken: Taken, world: &World) -> Result<(), Closed> {
        let Taken { windows, speeds, .. } = taken;
        for Window { from, until, loads } in windows {
            let said = |&(link, _): &(ResourceId, Load)| {
                let speed = Some(*speeds.get(&link)?);
                Some((link, Reading { speed, ..Reading::default() }))
            };
            let readings = loads.iter().filter_map(said).collect();
            let report = Report { window: (from, until), loads, readings, ..Report::default() };
            match self.office.ask(Message::Report(report), world.fabric.clone()).await? {
                Ok(_) => self.metrics.report(),
                // Links of another cluster are named anew in the next round.
                Err(refused) => tracing::debug!(?refused, "a report of Prometheus' was not taken in"),
            }
        }
        Ok(())
    }

    /// Tells how it goes.
    fn tell(&self, standing: &mut Standing, world: &World, round: &Round) {
        let state = match &round.fault {
            Some(fault) => State::Fails(fault.why.clone()),
            None => State::Answers,
        };
        if standing.state.name() != state.name() {
            standing.since = self.clock.now();
        }
        standing.state = state;
        standing.look(&self.plan, &world.fabric, round.taken.ports.clone());
        if let Some(warning) = &round.warning {
            standing.remarks.insert("warning", format!("Prometheus warns: {warning}"));
        }
        let interval_ms = self.plan.interval.0 / 1_000_000;
        // Its clock is told to a second, and the answer took its time.
        if let Some(ahead) = round.ahead_ms.filter(|ahead| ahead.unsigned_abs() > interval_ms.max(2_000)) {
            let (seconds, word) = (ahead.abs() / 1000, if ahead > 0 { "ahead of" } else { "behind" });
            let text = format!("Prometheus' clock is {seconds} s {word} this service's: set both by NTP");
            standing.remarks.insert("clock", text);
        }
        self.metrics.ports(&standing.ports, standing.remarks.len());
        self.telemetry.stand(Some(standing.clone()));
    }
}

/// The thread that asks and listens. It ends when nobody has a use for it, once what is under way is answered.
struct Ears(mpsc::Sender<Ask>);

impl Ears {
    fn start(plan: Arc<Plan>, clock: Clock) -> io::Result<Ears> {
        let (sender, asks) = mpsc::channel();
        let named = thread::Builder::new().name("leeward-poll".to_owned());
        named.spawn(move || listen(&plan, &clock, &asks))?;
        Ok(Ears(sender))
    }

    /// A round of questions; `None` if the thread is gone.
    async fn ask(&self, world: Arc<World>, cluster: Arc<Version>, now: Nanos) -> Option<Round> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Ask { world, cluster, now, answer }).ok()?;
        answered.await.ok()
    }
}

fn listen(plan: &Plan, clock: &Clock, asks: &mpsc::Receiver<Ask>) {
    let mut known: Option<(Arc<Fabric>, Cluster, Meter)> = None;
    while let Ok(Ask { world, cluster, now, answer }) = asks.recv() {
        if known.as_ref().is_none_or(|(fabric, ..)| !Arc::ptr_eq(fabric, &world.fabric)) {
            // It is the one that counts, so it was read before.
            let Ok(read) = Cluster::from_text("the cluster", &cluster.text) else { continue };
            known = Some((world.fabric.clone(), read, Meter::new(plan.map.clone(), plan.interval)));
        }
        let Some((fabric, cluster, meter)) = &mut known else { continue };
        let at_ms = clock.unix_ms(now);
        let mut round = Round { taken: Taken::default(), fault: None, warning: None, ahead_ms: None };
        let mut heard = Heard::default();
        for (asked, query) in plan.queries() {
            match plan.client.ask(&query, at_ms) {
                Ok(Told { answer, date_ms }) => {
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
        let ground = Ground { fabric, capacities: &cluster.capacities };
        round.taken = meter.take(&ground, now, heard, |at| clock.at_unix_ms(at));
        // Who asked may have another plan by now.
        let _ = answer.send(round);
    }
}
