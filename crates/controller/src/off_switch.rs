//! The off switch: a file whose existence turns every mode off. It works without tokens and without a client.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leeward_service::{CallError, Handle, SetOffSwitch, Unavailable};

/// Time between two looks at the file.
const EVERY: Duration = Duration::from_millis(250);

/// The off switch of a service.
#[derive(Debug)]
pub struct OffSwitch {
    file: Option<PathBuf>,
    on: AtomicBool,
}

impl OffSwitch {
    /// A switch in the position that the file has now.
    pub fn new(file: Option<PathBuf>) -> OffSwitch {
        let switch = OffSwitch { file, on: AtomicBool::new(false) };
        // An unreadable folder must not turn a service on that an operator turned off.
        let is_on = switch.look().unwrap_or_else(|error| {
            tracing::error!(file = switch.file(), %error, "off switch: the file cannot be looked for; every mode is off");
            true
        });
        switch.on.store(is_on, Ordering::Relaxed);
        if is_on {
            switch.log(true);
        }
        switch
    }

    /// True if every mode is off.
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Path of the file.
    pub fn file(&self) -> Option<String> {
        self.file.as_ref().map(|file| file.display().to_string())
    }

    /// Looks for the file.
    ///
    /// # Errors
    /// An I/O error if the system does not say if the file exists.
    fn look(&self) -> std::io::Result<bool> {
        self.file.as_ref().map_or(Ok(false), |file| file.try_exists())
    }

    fn log(&self, on: bool) {
        let file = self.file();
        if on {
            tracing::warn!(file, "off switch: every mode is off while the file exists");
        } else {
            tracing::warn!(file, "off switch: the file is gone, and the modes are in force again");
        }
    }

    /// Follows the file forever, and tells the coordinator of each change. If the system does not say if the file
    /// exists, the switch stays as it is.
    pub async fn follow(self: Arc<OffSwitch>, handle: Handle) -> Infallible {
        let mut failed = false;
        loop {
            tokio::time::sleep(EVERY).await;
            let switch = self.clone();
            // A file on a network may block.
            let Ok(look) = tokio::task::spawn_blocking(move || switch.look()).await else { continue };
            match look {
                Ok(on) if on != self.is_on() => {
                    self.on.store(on, Ordering::Relaxed);
                    self.log(on);
                    self.tell(&handle, on).await;
                }
                Ok(_) => failed = false,
                Err(error) => {
                    if !std::mem::replace(&mut failed, true) {
                        tracing::error!(file = self.file(), %error, "off switch: the file cannot be looked for");
                    }
                }
            }
        }
    }

    /// Tells the coordinator the position. A coordinator that is made later reads it itself; one that is made meanwhile
    /// may have read the former position, so the call is repeated for it.
    async fn tell(&self, handle: &Handle, on: bool) {
        loop {
            let fabric = handle.last_snapshot().fabric.clone();
            match handle.call(SetOffSwitch(on), fabric).await {
                Err(CallError::Unavailable(Unavailable::ClusterChanged)) => {
                    if handle.snapshot().await.is_err() {
                        return;
                    }
                }
                Ok(_) | Err(_) => return,
            }
        }
    }
}
