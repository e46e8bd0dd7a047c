//! Messages of a program to systemd (sd_notify(3)): it is ready, reloads, stops, and works. The service and the agent
//! decide what they say and when. Without `NOTIFY_SOCKET` there is nobody to notify.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Longest time between two updates of the status.
const TICK: Duration = Duration::from_secs(5);

/// Socket of systemd, and the time within which the watchdog expects a message.
#[derive(Debug)]
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

    /// Time between two messages of [`Notifier::works`]: three messages in the time of the watchdog, because one or two
    /// may be late on a busy machine.
    pub fn tick(&self) -> Duration {
        self.watchdog.map_or(TICK, |watchdog| (watchdog / 3).min(TICK))
    }

    /// The program is ready, or ready again after a reload.
    ///
    /// # Errors
    /// An I/O error if systemd does not take the message now.
    pub fn ready(&self, status: &str) -> io::Result<()> {
        self.send(&format!("READY=1\n{}", line(status)))
    }

    /// The program reads its settings again; [`Notifier::ready`] follows.
    ///
    /// # Errors
    /// As [`Notifier::ready`].
    pub fn reloading(&self, status: &str) -> io::Result<()> {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={micros}\n{}", line(status)))
    }

    /// The program is about to end.
    ///
    /// # Errors
    /// As [`Notifier::ready`].
    pub fn stopping(&self, status: &str) -> io::Result<()> {
        self.send(&format!("STOPPING=1\n{}", line(status)))
    }

    /// Sends the status and, if the program works, a message to the watchdog.
    ///
    /// # Errors
    /// As [`Notifier::ready`].
    pub fn works(&self, works: bool, status: &str) -> io::Result<()> {
        let watchdog = if works && self.watchdog.is_some() { "WATCHDOG=1\n" } else { "" };
        self.send(&format!("{watchdog}{}", line(status)))
    }

    fn send(&self, message: &str) -> io::Result<()> {
        self.socket.send(message.as_bytes()).map(drop)
    }
}

/// The status as `systemctl status` shows it. A line break would end the field.
fn line(status: &str) -> String {
    format!("STATUS={}", status.replace('\n', " "))
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
            let notifier = Notifier::new(at, Some(Duration::from_secs(3))).expect("the socket is there");
            assert_eq!(notifier.tick(), Duration::from_secs(1));
            notifier.ready("Serving").expect("systemd listens");
            notifier.reloading("Reloading").expect("systemd listens");
            notifier.works(true, "two\nlines").expect("systemd listens");
            notifier.works(false, "Hangs").expect("systemd listens");
            notifier.stopping("Ending").expect("systemd listens");
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
            assert_eq!(next(), "WATCHDOG=1\nSTATUS=two lines");
            assert_eq!(next(), "STATUS=Hangs");
            assert_eq!(next(), "STOPPING=1\nSTATUS=Ending");
        }
    }

    #[test]
    fn a_socket_that_does_not_exist_is_an_error() {
        assert!(Notifier::new(OsStr::new("/nonexistent/notify"), None).is_err());
    }
}
