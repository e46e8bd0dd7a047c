//! Messages to systemd about the state of the service (sd_notify(3)): it is ready, reloads, stops, and its engine answers.
//! Without `NOTIFY_SOCKET` there is nobody to notify.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use leeward_service::{Handle, LeaderState};
use rustix::time::{ClockId, clock_gettime};

/// Age of the last snapshot beyond which the engine counts as stuck. The engine makes a snapshot every second.
const STUCK: Duration = Duration::from_secs(10);
/// Time between two updates of the status.
const TICK: Duration = Duration::from_secs(5);

/// Socket of systemd, and the time within which the watchdog expects a message.
pub struct Notifier {
    socket: UnixDatagram,
    watchdog: Option<Duration>,
}

impl Notifier {
    /// The notifier for the environment of this process; `None` without systemd.
    ///
    /// # Errors
    /// An I/O error if the socket cannot be reached.
    pub fn from_env() -> io::Result<Option<Notifier>> {
        let Some(path) = env::var_os("NOTIFY_SOCKET") else { return Ok(None) };
        let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        // The watchdog of another process, such as a parent, is not for this one.
        let is_own = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|&micros| is_own && micros > 0);
        Notifier::new(&path, watchdog.map(Duration::from_micros)).map(Some)
    }

    /// A notifier for a socket. A path that begins with `@` is an abstract name.
    fn new(path: &OsStr, watchdog: Option<Duration>) -> io::Result<Notifier> {
        let address = match path.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(path)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        socket.connect_addr(&address)?;
        Ok(Notifier { socket, watchdog })
    }

    /// Sends a message. A message that systemd does not take now is lost; the next one comes soon.
    fn send(&self, message: &str) {
        if let Err(error) = self.socket.send(message.as_bytes()) {
            tracing::debug!(%error, "notification of systemd failed");
        }
    }

    /// The service serves clients.
    pub fn ready(&self) {
        self.send("READY=1\nSTATUS=Serving");
    }

    /// The service reads its settings again; [`Notifier::ready`] follows.
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={micros}\nSTATUS=Reloading settings"));
    }

    /// The service finishes the requests in progress.
    pub fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=Finishing the requests in progress");
    }

    /// Sends the status and, while the engine answers, a message to the watchdog, until it is dropped.
    pub async fn watch(&self, handle: &Handle) -> std::convert::Infallible {
        // Three messages in the time of the watchdog: one or two may be late on a busy machine.
        let tick = self.watchdog.map_or(TICK, |watchdog| (watchdog / 3).min(TICK));
        loop {
            let (message, answers) = (status(handle), handle.age() <= STUCK);
            if answers && self.watchdog.is_some() {
                self.send(&format!("WATCHDOG=1\n{message}"));
            } else {
                self.send(&message);
            }
            tokio::time::sleep(tick).await;
        }
    }
}

/// The status in one line, as `systemctl status` shows it.
fn status(handle: &Handle) -> String {
    let age = handle.age();
    if age > STUCK {
        return format!("STATUS=The engine has not responded for {:.0} s", age.as_secs_f64());
    }
    let role = match &*handle.leader_state().borrow() {
        LeaderState::Leader => "Leader".to_owned(),
        LeaderState::Follower { leader: Some(leader) } => format!("Follower of {leader}"),
        LeaderState::Follower { leader: None } => "Follower without a known leader".to_owned(),
        LeaderState::Unavailable { problem } => format!("Store unavailable: {problem}"),
    };
    let snapshot = handle.last_snapshot();
    let seen = snapshot.links.iter().filter(|link| link.measured.is_some()).count();
    // A line break would end the field.
    format!("STATUS={role}; telemetry of {seen} of {} links", snapshot.links.len()).replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_reach_sockets_by_path_and_by_abstract_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let name = format!("@leeward-test-{}", std::process::id());
        let by_path = UnixDatagram::bind(&path).expect("a socket");
        let abstract_address = SocketAddr::from_abstract_name(&name.as_bytes()[1..]).expect("a name");
        let by_name = UnixDatagram::bind_addr(&abstract_address).expect("a socket");
        for (socket, at) in [(by_path, path.as_os_str()), (by_name, OsStr::new(&name))] {
            let notifier = Notifier::new(at, None).expect("the socket is there");
            notifier.ready();
            notifier.reloading();
            notifier.stopping();
            let next = || {
                let mut message = [0; 256];
                let length = socket.recv(&mut message).expect("a message");
                String::from_utf8_lossy(&message[..length]).into_owned()
            };
            assert_eq!(next(), "READY=1\nSTATUS=Serving");
            let reloading = next();
            let micros = reloading.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC="));
            assert!(
                micros.is_some_and(|micros| micros.parse::<u64>().is_ok_and(|micros| micros > 0)),
                "{reloading}"
            );
            assert!(next().starts_with("STOPPING=1\n"));
        }
    }

    #[test]
    fn a_socket_that_does_not_exist_is_an_error() {
        assert!(Notifier::new(OsStr::new("/nonexistent/notify"), None).is_err());
    }
}
