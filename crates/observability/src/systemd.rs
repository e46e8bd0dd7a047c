//! Messages of the service to systemd: it serves, reloads, stops, and its engine answers.

use std::time::Duration;

use leeward_service::{Handle, LeaderState};
use leeward_systemd::Notifier;

/// Age of the last snapshot beyond which the engine counts as stuck. The engine makes a snapshot every second.
const STUCK: Duration = Duration::from_secs(10);

/// Messages of the service.
pub struct ServiceNotifier(Notifier);

impl ServiceNotifier {
    /// The notifier for the environment of this process; `None` without systemd. A socket that cannot be reached is a
    /// warning.
    pub fn from_env() -> Option<ServiceNotifier> {
        let notifier = Notifier::from_env().inspect_err(
            |error| tracing::warn!(%error, "NOTIFY_SOCKET unavailable: systemd is not notified"),
        );
        notifier.ok().flatten().map(ServiceNotifier)
    }

    /// The service serves clients.
    pub fn ready(&self) {
        log(self.0.ready("Serving"));
    }

    /// The service reads its settings again; [`ServiceNotifier::ready`] follows.
    pub fn reloading(&self) {
        log(self.0.reloading("Reloading settings"));
    }

    /// The service finishes the requests in progress.
    pub fn stopping(&self) {
        log(self.0.stopping("Finishing the requests in progress"));
    }

    /// Sends the status and, while the engine answers, a message to the watchdog, until it is dropped.
    pub async fn watch(&self, handle: &Handle) -> std::convert::Infallible {
        loop {
            log(self.0.works(handle.age() <= STUCK, &status(handle)));
            tokio::time::sleep(self.0.tick()).await;
        }
    }
}

/// A message that systemd does not take now is lost; the next one comes soon.
fn log(sent: std::io::Result<()>) {
    if let Err(error) = sent {
        tracing::debug!(%error, "notification of systemd failed");
    }
}

/// The status in one line, as `systemctl status` shows it.
fn status(handle: &Handle) -> String {
    let age = handle.age();
    if age > STUCK {
        return format!("The engine has not responded for {:.0} s", age.as_secs_f64());
    }
    let role = match &*handle.leader_state().borrow() {
        LeaderState::Leader => "Leader".to_owned(),
        LeaderState::Follower { leader: Some(leader) } => format!("Follower of {leader}"),
        LeaderState::Follower { leader: None } => "Follower without a known leader".to_owned(),
        LeaderState::Unavailable { problem } => format!("Store unavailable: {problem}"),
    };
    let snapshot = handle.last_snapshot();
    let seen = snapshot.links.iter().filter(|link| link.measured.is_some()).count();
    format!("{role}; telemetry of {seen} of {} links", snapshot.links.len())
}
