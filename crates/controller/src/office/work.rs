//! The task itself: the desk, and how it stands to the store.

use std::sync::Arc;
use std::time::Duration;

use leeward_fabric::{Cluster, Nanos};
use tokio::sync::mpsc;

use super::keeper::{Heard, Keeper, Turn};
use super::published::{Position, Press};
use super::studies::Studies;
use super::{Asker, Changed, Envelope, Maker, NewCluster, OpenError, fresh};
use crate::clock::Clock;
use crate::desk::{Desk, Message, Refused, Replies, Reply, Seen};
use crate::store::{Change, Leadership, News, State, StoreError, Version};

/// Messages that have come together are one turn, so many of them at most: replies wait for the end of it.
const TURN: usize = 16;

/// The desk's owner.
pub(super) struct Work {
    pub desk: Desk<Asker>,
    /// How many desks there were before: what those wanted to know is of no use to this one.
    pub desks: u64,
    pub studies: Studies,
    pub cluster: Cluster,
    pub make: Maker,
    pub keeper: Keeper,
    pub clock: Clock,
    pub press: Press,
    /// The term in which the desk was made to lead; `None` if it was made to follow.
    pub term: Option<u64>,
    /// Whether all that the desk knows of decisions is kept, or owed.
    pub exact: bool,
    /// What ended while nothing could be kept, until this desk leads again.
    pub owed: Vec<Change>,
}

impl Work {
    /// Goes on where the store says, as it says.
    pub async fn begin(&mut self, file: NewCluster) -> Result<(), OpenError> {
        let stands = loop {
            match self.keeper.hear().await {
                Some(Heard::Stands(stands)) => break stands?,
                Some(_) => {}
                None => return Err(StoreError::Database("the store's thread is gone".to_owned()).into()),
            }
        };
        let mut state = self.keeper.load().await?;
        match stands {
            Leadership::Leads { term } => {
                let is_last = state.file.as_ref().is_some_and(|last| last.text == file.text);
                if state.cluster.is_none() || !is_last {
                    let found = state.cluster.map_or(0, |cluster| cluster.number);
                    let version = self.version(found + 1, &file);
                    self.keeper.settle(Change::Cluster(version.clone())).await.map_err(not_kept)?;
                    state.cluster = Some(version);
                }
                self.term = Some(term);
                self.take_up(state, Position::Leads, None).await
            }
            Leadership::Follows { leader, .. } => {
                self.take_up(state, Position::Follows { leader }, None).await
            }
        }
    }

    pub async fn run(mut self, mut messages: mpsc::Receiver<Envelope>) {
        let (mut replies, mut envelopes) = (Replies::new(), Vec::with_capacity(TURN));
        loop {
            tokio::select! {
                biased;
                heard = self.keeper.hear() => match heard {
                    Some(heard) => self.hear(heard).await,
                    None => break,
                },
                count = messages.recv_many(&mut envelopes, TURN) => {
                    if count == 0 {
                        break;
                    }
                    let now = self.clock.now();
                    for envelope in envelopes.drain(..) {
                        self.open(envelope, now, &mut replies).await;
                    }
                }
                () = until(&self.clock, self.desk.wakes_at()) => self.desk.wake(self.clock.now(), &mut replies),
                () = tokio::time::sleep_until(self.press.due().into()) => {
                    self.desk.wake(self.clock.now(), &mut replies);
                }
            }
            self.finish(std::mem::take(&mut replies)).await;
            self.press.make(|past| self.desk.world_in(past));
        }
    }

    /// Takes in what was handed in.
    async fn open(&mut self, envelope: Envelope, now: Nanos, replies: &mut Replies<Asker>) {
        match envelope {
            Envelope::Message(_, fabric, asker) if !Arc::ptr_eq(&fabric, self.desk.fabric()) => {
                replies.push((asker, Err(Refused::Moved)));
            }
            Envelope::Message(message, _, asker) => match self.refusal(&message) {
                Some(refused) => replies.push((asker, Err(refused))),
                None => self.desk.handle(now, message, asker, replies),
            },
            Envelope::Cluster(new, asker) => {
                // What was decided before is of this desk, and the next one begins with what is kept.
                self.finish(std::mem::take(replies)).await;
                let changed = self.change_cluster(new).await;
                let _ = asker.send(changed);
            }
            Envelope::World(asker) => {
                self.press.want(asker);
                // Who asks often sees time pass too.
                if self.press.is_due() {
                    self.desk.wake(now, replies);
                }
            }
            Envelope::Found(desk, finding) if desk == self.desks => {
                self.desk.found(now, finding, replies);
            }
            Envelope::Found(..) => {}
        }
    }

    /// Why a message is not for this desk, as it stands to the store.
    fn refusal(&self, message: &Message) -> Option<Refused> {
        let refused = self.press.position().refusal()?;
        let is_seen = self.exact || matches!(message, Message::Report(_));
        (message.commits() || !is_seen).then_some(refused)
    }

    /// How the service stands to the store may be another way now.
    async fn hear(&mut self, heard: Heard) {
        let stands = match heard {
            Heard::Stands(Ok(Leadership::Leads { term })) => self.lead(term).await,
            Heard::Stands(Ok(Leadership::Follows { leader, news })) => self.follow(leader, news).await,
            Heard::Stands(Err(error)) => Err(error.into()),
            Heard::Lost(error) => {
                (self.exact, self.term) = (false, None);
                self.stall(&error.clone().into());
                let (position, seen) = (self.press.position(), self.desk.seen());
                self.resume(position, Some(seen)).await
            }
            // It was asked for by somebody who waits no more.
            Heard::Loaded(_) => Ok(()),
            Heard::Silence(error) => Err(error.into()),
        };
        if let Err(error) = stands {
            self.stall(&error);
        }
    }

    /// It decides from now on.
    async fn lead(&mut self, term: u64) -> Result<(), OpenError> {
        if self.exact && self.term == Some(term) {
            self.press.stand(Position::Leads);
            return Ok(());
        }
        self.term = Some(term);
        let seen = self.desk.seen();
        let led = self.resume(Position::Leads, Some(seen)).await;
        self.exact &= led.is_ok();
        led
    }

    /// Another service decides; it goes along with what that has kept.
    async fn follow(&mut self, leader: Option<Arc<str>>, news: News) -> Result<(), OpenError> {
        let position = Position::Follows { leader };
        let changes = match news {
            News::Changes(changes) if self.exact && self.term.is_none() => changes,
            _ => {
                (self.exact, self.term) = (false, None);
                let seen = self.desk.seen();
                return self.resume(position, Some(seen)).await;
            }
        };
        for change in changes {
            if let Err(error) = self.desk.follow(self.clock.now(), change) {
                self.exact = false;
                return Err(error.into());
            }
        }
        self.press.stand(position);
        Ok(())
    }

    /// Nothing can be kept for now. What waits to be decided is to be asked again.
    fn stall(&mut self, error: &OpenError) {
        let mut away = Replies::new();
        self.desk.turn_away(&mut away);
        self.exact &= away.is_empty();
        away.into_iter().for_each(|(asker, answer)| drop(asker.send(answer)));
        self.press.stand(Position::Stalls { problem: error.to_string().into() });
    }

    /// A new desk that goes on where the store says, and has seen what another one saw.
    async fn resume(&mut self, position: Position, seen: Option<Seen>) -> Result<(), OpenError> {
        let mut away = Replies::new();
        self.desk.turn_away(&mut away);
        away.into_iter().for_each(|(asker, answer)| drop(asker.send(answer)));
        let state = self.keeper.load().await?;
        self.take_up(state, position, seen).await
    }

    /// The same, of what is kept.
    async fn take_up(
        &mut self,
        state: State,
        position: Position,
        seen: Option<Seen>,
    ) -> Result<(), OpenError> {
        if let Some(stored) = state.cluster.clone().filter(|stored| stored.number != self.press.version()) {
            self.cluster = Cluster::from_text("the store's cluster", &stored.text)?;
            self.press.cluster(stored);
        }
        self.desk = fresh(&self.make, &self.cluster, position == Position::Leads);
        self.desks += 1;
        self.owed.clear();
        let mut replies = Replies::new();
        self.desk.wake(self.clock.now(), &mut replies);
        self.desk.resume(state)?;
        seen.into_iter().for_each(|seen| self.desk.see(seen));
        self.exact = true;
        self.press.stand(position);
        self.finish(replies).await;
        self.press.make_now(|past| self.desk.world_in(past));
        Ok(())
    }

    fn version(&self, number: u64, of: &NewCluster) -> Version {
        Version { number, at: self.clock.now(), origin: of.origin, text: of.text.clone() }
    }

    /// The number of the version that it made, or that is the same.
    async fn change_cluster(&mut self, new: NewCluster) -> Result<Changed, Refused> {
        if let Some(refused) = self.press.position().refusal() {
            return Err(refused);
        }
        // Sent again, or said already: it counts, and is no other version.
        if let Some(version) = self.press.counts(&new.text) {
            return Ok(Changed { version, again: true });
        }
        let found = self.press.version();
        if new.after.is_some_and(|after| after != found) {
            return Err(Refused::Version { found });
        }
        let version = self.version(found + 1, &new);
        let kept = self.keeper.settle(Change::Cluster(version.clone())).await;
        let position = match &kept {
            Ok(()) => {
                self.cluster = new.cluster;
                self.press.cluster(version.clone());
                Position::Leads
            }
            // What was decided just before may not be kept either, and whether it leads is to be heard again.
            Err(_) => {
                self.term = None;
                Position::Stalls { problem: "a change of the cluster was not kept".into() }
            }
        };
        let seen = self.desk.seen();
        let resumed = self.resume(position, Some(seen)).await;
        if let Err(error) = &resumed {
            self.exact = false;
            self.stall(error);
        }
        match kept {
            // By now it may be known.
            Err(Refused::Unknown(_)) if resumed.is_ok() && self.press.has(&version) => {
                Ok(Changed { version, again: false })
            }
            Err(Refused::Unknown(problem)) if resumed.is_ok() => Err(Refused::Store(problem)),
            kept => kept.map(|()| Changed { version, again: false }),
        }
    }

    /// Sends replies: at once where they tell of what telemetry shows, when it is kept where they tell of what was decided,
    /// and when it is read where the store has it.
    async fn finish(&mut self, replies: Replies<Asker>) {
        for study in self.desk.studies() {
            self.studies.look_into(self.desks, study);
        }
        let mut turn = Turn { changes: self.desk.changes().collect(), replies: Vec::new() };
        let leads = self.press.position() == Position::Leads;
        if leads {
            turn.changes.splice(0..0, self.owed.drain(..));
        } else {
            // Ends come with time, and come again for who leads next; a desk that led, and may go on, owes them.
            self.exact &= turn.changes.iter().all(|change| matches!(change, Change::Ended { .. }));
            if self.exact && self.term.is_some() {
                self.owed.append(&mut turn.changes);
            }
            turn.changes.clear();
        }
        for (asker, answer) in replies {
            let waits = match answer {
                Ok(Reply::Left(_)) => true,
                Ok(
                    Reply::Placed { .. }
                    | Reply::Decision(_)
                    | Reply::Decisions(_)
                    | Reply::Migrations(_)
                    | Reply::Workloads(_)
                    | Reply::Noted,
                ) => leads,
                _ => false,
            };
            if waits {
                turn.replies.push((asker, answer));
            } else {
                // Who asked may have gone.
                let _ = asker.send(answer);
            }
        }
        if turn.changes.is_empty() && turn.replies.is_empty() {
            return;
        }
        if let Err(error) = self.keeper.keep(turn).await {
            self.exact = false;
            self.stall(&error.into());
        }
    }
}

/// Why a service does not begin whose cluster is not kept.
fn not_kept(refused: Refused) -> StoreError {
    match refused {
        Refused::Store(problem) | Refused::Unknown(problem) => StoreError::Database(problem),
        _ => StoreError::Database("the store's thread is gone".to_owned()),
    }
}

/// Waits for a time of the engine's; for ever if there is none.
async fn until(clock: &Clock, at: Option<Nanos>) {
    match at {
        Some(at) => tokio::time::sleep(Duration::from_nanos(at.since(clock.now()).0)).await,
        None => std::future::pending().await,
    }
}
