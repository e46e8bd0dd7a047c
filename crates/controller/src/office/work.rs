//! The task itself: the desk, and how it stands to the store.

use std::sync::Arc;
use std::time::Duration;

use leeward_fabric::{Cluster, Nanos};
use tokio::sync::mpsc;

use super::keeper::{Heard, Keeper, Turn};
use super::published::{Position, Press};
use super::studies::Studies;
use super::{Asker, Envelope, Maker, NewCluster, OpenError, fresh};
use crate::clock::Clock;
use crate::desk::{Desk, Message, Refused, Replies, Reply, Seen};
use crate::store::{Change, News, Standing, StoreError, Version};

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
    /// Whether all that the desk knows of decisions is kept.
    pub exact: bool,
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
        match stands {
            Standing::Leads { term } => {
                let state = self.keeper.load().await?;
                let is_last = state.file.is_some_and(|last| last.text == file.text);
                if state.cluster.is_none() || !is_last {
                    self.note_cluster(&file).await?;
                }
                self.term = Some(term);
                self.resume(Position::Leads, None).await
            }
            Standing::Follows { leader, .. } => self.resume(Position::Follows { leader }, None).await,
        }
    }

    pub async fn run(mut self, mut messages: mpsc::Receiver<Envelope>) {
        let mut replies = Replies::new();
        loop {
            tokio::select! {
                biased;
                heard = self.keeper.hear() => match heard {
                    Some(heard) => self.hear(heard).await,
                    None => break,
                },
                message = messages.recv() => match message {
                    Some(Envelope::Message(_, fabric, asker)) if !Arc::ptr_eq(&fabric, self.desk.fabric()) => {
                        replies.push((asker, Err(Refused::Moved)));
                    }
                    Some(Envelope::Cluster(new, asker)) => {
                        let changed = self.change_cluster(new).await;
                        let _ = asker.send(changed);
                    }
                    Some(Envelope::Message(message, _, asker)) => match self.refusal(&message) {
                        Some(refused) => replies.push((asker, Err(refused))),
                        None => self.desk.handle(self.clock.now(), message, asker, &mut replies),
                    },
                    Some(Envelope::World(asker)) => self.press.want(asker),
                    Some(Envelope::Found(desk, finding)) if desk == self.desks => {
                        self.desk.found(self.clock.now(), finding, &mut replies);
                    }
                    Some(Envelope::Found(..)) => {}
                    None => break,
                },
                () = until(&self.clock, self.desk.wakes_at()) => self.desk.wake(self.clock.now(), &mut replies),
                () = tokio::time::sleep_until(self.press.due().into()) => {
                    self.desk.wake(self.clock.now(), &mut replies);
                }
            }
            self.finish(std::mem::take(&mut replies)).await;
            self.press.make(|| self.desk.world());
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
            Heard::Stands(Ok(Standing::Leads { term })) => self.lead(term).await,
            Heard::Stands(Ok(Standing::Follows { leader, news })) => self.follow(leader, news).await,
            Heard::Stands(Err(error)) => Err(error.into()),
            Heard::Lost(error) => {
                (self.exact, self.term) = (false, None);
                self.stall(&error.clone().into());
                let (position, seen) = (self.press.position(), self.desk.seen());
                self.resume(position, Some(seen)).await
            }
            // It was asked for by somebody who waits no more.
            Heard::Loaded(_) => Ok(()),
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
        if let Some(stored) = state.cluster.clone().filter(|stored| stored.number != self.press.version()) {
            self.cluster = Cluster::from_text("the store's cluster", &stored.text)?;
            self.press.cluster(stored);
        }
        self.desk = fresh(&self.make, &self.cluster, position == Position::Leads);
        self.desks += 1;
        self.desk.resume(state)?;
        seen.into_iter().for_each(|seen| self.desk.see(seen));
        self.exact = true;
        self.press.stand(position);
        self.finish(Replies::new()).await;
        self.press.make_now(|| self.desk.world());
        Ok(())
    }

    /// Keeps a version of the cluster, which is told when it is kept.
    async fn note_cluster(&mut self, new: &NewCluster) -> Result<(), StoreError> {
        let state = self.keeper.load().await?;
        let found = state.cluster.map_or(0, |cluster| cluster.number);
        let NewCluster { text, origin, .. } = new;
        let version =
            Version { number: found + 1, at: self.clock.now(), origin: *origin, text: text.clone() };
        let changes = vec![Change::Cluster(version.clone())];
        self.keeper.keep(Turn { changes, replies: Vec::new() }).await;
        let state = self.keeper.load().await?;
        if state.cluster.is_none_or(|cluster| cluster != version) {
            return Err(StoreError::Database("it was not written".to_owned()));
        }
        self.press.cluster(version);
        Ok(())
    }

    async fn change_cluster(&mut self, new: NewCluster) -> Result<(), Refused> {
        if let Some(refused) = self.press.position().refusal() {
            return Err(refused);
        }
        let found = self.press.version();
        if new.after.is_some_and(|after| after != found) {
            return Err(Refused::Version { found });
        }
        let noted = self.note_cluster(&new).await;
        if noted.is_ok() {
            self.cluster = new.cluster;
        }
        // Where it was not kept, what was decided just before may not be either.
        let seen = self.desk.seen();
        let resumed = self.resume(Position::Leads, Some(seen)).await;
        if let Err(error) = &resumed {
            self.exact = false;
            self.stall(error);
        }
        noted.map_err(|error| Refused::Store(error.to_string()))?;
        resumed.map_err(|error| Refused::Store(error.to_string()))
    }

    /// Sends replies: at once where they tell of what telemetry shows, and when it is kept where they tell of what was
    /// decided.
    async fn finish(&mut self, replies: Replies<Asker>) {
        for study in self.desk.studies() {
            self.studies.look_into(self.desks, study);
        }
        let mut turn = Turn { changes: self.desk.changes().collect(), replies: Vec::new() };
        let leads = self.press.position() == Position::Leads;
        if !leads {
            // Ends come with time, and come again for who leads next.
            self.exact &= turn.changes.iter().all(|change| matches!(change, Change::Ended { .. }));
            turn.changes.clear();
        }
        for (asker, answer) in replies {
            match answer {
                Ok(
                    Reply::Placed { .. }
                    | Reply::Decision(_)
                    | Reply::Decisions(_)
                    | Reply::Migrations(_)
                    | Reply::Workloads(_)
                    | Reply::Noted,
                ) if leads => turn.replies.push((asker, answer)),
                answer => drop(asker.send(answer)),
            }
        }
        if !turn.changes.is_empty() || !turn.replies.is_empty() {
            self.keeper.keep(turn).await;
        }
    }
}

/// Waits for a time of the engine's; for ever if there is none.
async fn until(clock: &Clock, at: Option<Nanos>) {
    match at {
        Some(at) => tokio::time::sleep(Duration::from_nanos(at.since(clock.now()).0)).await,
        None => std::future::pending().await,
    }
}
