//! The thread that reads the store for searches and summaries, on a connection of its own. Neither the actor nor the
//! thread that writes waits for it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{SyncSender, sync_channel};

use leeward_store::{Reader, StoreError};
use tokio::sync::oneshot;

use crate::background::lower_priority;

/// Largest number of reads that wait.
const MAX_WAITING: usize = 64;
/// A read with its reply.
type Read = Box<dyn FnOnce(&mut Reader) + Send>;

/// Failure of a read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadError {
    /// Too many reads wait.
    #[error("{MAX_WAITING} reads of the store are waiting")]
    Busy,
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Handle to the thread, which ends when all handles are dropped.
#[derive(Clone)]
pub(super) struct ReaderThread {
    reads: SyncSender<Read>,
}

impl ReaderThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(mut reader: Reader) -> std::io::Result<ReaderThread> {
        let (reads, inbox) = sync_channel::<Read>(MAX_WAITING);
        std::thread::Builder::new().name("leeward-read".to_owned()).spawn(move || {
            lower_priority();
            while let Ok(read) = inbox.recv() {
                // A panic is a bug in one read. Its reply is dropped, and later reads run.
                if catch_unwind(AssertUnwindSafe(|| read(&mut reader))).is_err() {
                    tracing::error!("a read of the store panicked");
                }
            }
        })?;
        Ok(ReaderThread { reads })
    }

    /// Runs a read, and waits for its result.
    ///
    /// # Errors
    /// [`ReadError`] if too many reads wait, or the store cannot be read.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, ReadError> {
        let (sender, result) = oneshot::channel();
        let read: Read = Box::new(move |reader| {
            // The client of a read that waited may have disconnected.
            if !sender.is_closed() {
                let _ = sender.send(read(reader));
            }
        });
        self.reads.try_send(read).map_err(|_| ReadError::Busy)?;
        let failed = || StoreError::Database("the read failed; the log has the reason".to_owned());
        Ok(result.await.map_err(|_| failed())??)
    }
}
