//! Encoded snapshots, shared by all readers: each snapshot is read, encoded and compressed once for each choice of
//! columns, on a thread for blocking work, one at a time. So any number of readers costs one core at most, and the
//! threads that serve placements none of it.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use leeward_fabric::Nanos;
use leeward_ledger::Epoch;
use leeward_records::Clock;
use leeward_service::{Handle, in_background};
use tokio::sync::Mutex;

use crate::encoding::Encoding;
use crate::frame::Frame;
use crate::selection::Selection;

/// Largest number of selections whose snapshots are stored.
const MAX_SELECTIONS: usize = 8;
/// Largest number of stored snapshots of a selection, from which differences can be made.
const MAX_FRAMES: usize = 16;
/// Limit on the memory of all stored snapshots, in bytes. The newest of each selection is always stored.
const MAX_BYTES: usize = 128 << 20;

/// Encoded snapshots.
pub struct Snapshots {
    handle: Handle,
    clock: Clock,
    /// Start of every id. Other runs and other services have another one.
    prefix: String,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    /// Number of snapshots so far.
    count: u64,
    /// Stored snapshots of each selection; the last used selection comes last.
    selections: Vec<Stored>,
}

struct Stored {
    selection: Selection,
    /// Snapshots, the newest last.
    frames: VecDeque<Arc<Frame>>,
    /// Bodies of the newest snapshot.
    bodies: Vec<(Variant, Bytes)>,
}

/// Variant of a body: id of the snapshot from which it is a difference, and encoding.
type Variant = (Option<Arc<str>>, Encoding);

/// A snapshot that a reader has.
#[derive(Clone, Copy)]
pub struct Base {
    /// Time of the snapshot.
    pub at: Nanos,
    /// Epoch of the ledger.
    pub epoch: Epoch,
}

impl Snapshots {
    /// An empty store. `address` is the address of the service.
    pub fn new(handle: Handle, clock: Clock, address: &str) -> Snapshots {
        let mut hasher = DefaultHasher::new();
        (address, clock.now().0, std::process::id()).hash(&mut hasher);
        let prefix = format!("{:016x}", hasher.finish());
        Snapshots { handle, clock, prefix, shared: Arc::default() }
    }

    /// The snapshot with this id, if it is stored and can be the base of a difference.
    pub async fn base(&self, selection: &Selection, id: &str) -> Option<Base> {
        let shared = self.shared.lock().await;
        let stored = shared.selections.iter().find(|stored| stored.selection == *selection)?;
        let frame = stored.frames.iter().find(|frame| *frame.id == *id)?;
        Some(Base { at: frame.at, epoch: frame.epoch })
    }

    /// The last snapshot of the service as JSON: the difference from the snapshot `since`, or the whole snapshot if
    /// that one is not stored.
    ///
    /// # Errors
    /// An I/O error if the compressor fails.
    pub async fn body(
        &self,
        selection: Selection,
        since: Option<String>,
        encoding: Encoding,
    ) -> io::Result<Bytes> {
        let mut shared = self.shared.clone().lock_owned().await;
        let number = self.handle.last_snapshot().number;
        if let Some(body) = shared.stored(&selection, number, since.as_deref(), encoding) {
            return Ok(body);
        }
        let (handle, clock, prefix) = (self.handle.clone(), self.clock.clone(), self.prefix.clone());
        let encoding = in_background(move || {
            shared.read(&handle, &prefix, &selection);
            shared.encode(&clock, &selection, since.as_deref(), encoding)
        });
        encoding.await.unwrap_or_else(|ended| Err(io::Error::other(ended)))
    }
}

impl Shared {
    /// The body, if it exists already.
    fn stored(
        &mut self,
        selection: &Selection,
        number: u64,
        since: Option<&str>,
        encoding: Encoding,
    ) -> Option<Bytes> {
        let stored = self.selections.iter().find(|stored| stored.selection == *selection)?;
        let is_current = stored.frames.back().is_some_and(|frame| frame.number == number);
        if is_current { stored.body(since, encoding) } else { None }
    }

    /// Reads the last snapshot of the service, unless it is already the newest stored one.
    fn read(&mut self, handle: &Handle, prefix: &str, selection: &Selection) {
        let at = self.selections.iter().position(|stored| stored.selection == *selection);
        let mut stored = at.map_or_else(
            || Stored { selection: selection.clone(), frames: VecDeque::new(), bodies: Vec::new() },
            |at| self.selections.remove(at),
        );
        let snapshot = handle.last_snapshot();
        if stored.frames.back().is_none_or(|frame| frame.number != snapshot.number) {
            let id = format!("{prefix}-{}", self.count).into();
            let mut frame = Frame::read(id, &snapshot, selection);
            drop(snapshot);
            match stored.frames.back_mut() {
                // A reader sees no difference, so the snapshot keeps its id and its bodies.
                Some(last) if last.shows_same(&frame) => {
                    frame.id = last.id.clone();
                    *last = Arc::new(frame);
                }
                _ => {
                    self.count += 1;
                    stored.bodies.clear();
                    stored.frames.push_back(Arc::new(frame));
                }
            }
        }
        self.selections.push(stored);
        self.forget();
    }

    /// Drops the oldest snapshots above the limits.
    fn forget(&mut self) {
        if self.selections.len() > MAX_SELECTIONS {
            self.selections.remove(0);
        }
        for stored in &mut self.selections {
            while stored.frames.len() > MAX_FRAMES {
                stored.frames.pop_front();
            }
        }
        let bytes = |stored: &Stored| stored.frames.iter().map(|frame| frame.bytes()).sum::<usize>();
        let mut total: usize = self.selections.iter().map(bytes).sum();
        while total > MAX_BYTES {
            let several = self.selections.iter_mut().filter(|stored| stored.frames.len() > 1);
            let oldest = several.min_by_key(|stored| stored.frames.front().map(|frame| frame.number));
            let Some(frame) = oldest.and_then(|stored| stored.frames.pop_front()) else { break };
            total -= frame.bytes();
        }
    }

    /// Encodes the newest snapshot of the last used selection.
    fn encode(
        &mut self,
        clock: &Clock,
        selection: &Selection,
        since: Option<&str>,
        encoding: Encoding,
    ) -> io::Result<Bytes> {
        let newest =
            self.selections.last_mut().and_then(|stored| Some((stored.frames.back()?.clone(), stored)));
        let Some((frame, stored)) = newest else { return Err(io::Error::other("no snapshot was read")) };
        let base = stored.base(since).cloned();
        let id = base.as_ref().map(|base| base.id.clone());
        let identity = match stored.get(&id, Encoding::Identity) {
            Some(identity) => identity,
            None => {
                let identity = Bytes::from(frame.json(selection, base.as_deref(), clock));
                stored.bodies.push(((id.clone(), Encoding::Identity), identity.clone()));
                identity
            }
        };
        if encoding == Encoding::Identity {
            return Ok(identity);
        }
        if let Some(body) = stored.get(&id, encoding) {
            return Ok(body);
        }
        let body = encoding.compress(identity)?;
        stored.bodies.push(((id, encoding), body.clone()));
        Ok(body)
    }
}

impl Stored {
    /// The snapshot with this id, if it has the rows of the newest one.
    fn base(&self, since: Option<&str>) -> Option<&Arc<Frame>> {
        let (since, newest) = (since?, self.frames.back()?);
        self.frames.iter().find(|frame| *frame.id == *since && frame.has_rows_of(newest))
    }

    fn body(&self, since: Option<&str>, encoding: Encoding) -> Option<Bytes> {
        self.get(&self.base(since).map(|base| base.id.clone()), encoding)
    }

    fn get(&self, id: &Option<Arc<str>>, encoding: Encoding) -> Option<Bytes> {
        let found = self.bodies.iter().find(|((one, other), _)| one == id && *other == encoding);
        found.map(|(_, body)| body.clone())
    }
}
