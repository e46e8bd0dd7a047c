//! Measurements through agents: which hosts take part, and what was measured between them.
//!
//! The service sends no packets. It orders them from agents that listen, at the addresses that their own reports came from or
//! that its settings name, and never at one that a request names; so nobody can make it, or a host, speak to a stranger. One
//! survey runs at a time: two would measure each other.

mod keep;
mod offers;
mod surveys;

use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, read_text};
use leeward_probe::control::Secret;

pub use self::keep::{can_keep, with_mesh};
pub use self::offers::Offers;
pub use self::surveys::{Begun, Course, Found, Kind, State, Survey, Surveys, Wish};
use crate::settings::ProbeSettings;

/// All that the service knows of measurements.
pub struct Probes {
    /// Which hosts take part.
    pub offers: Offers,
    /// What was measured.
    pub surveys: Surveys,
    /// The file of what the hosts share.
    secret: Option<String>,
}

impl Probes {
    /// Nobody takes part yet, and nothing was measured. `interval` is the time between reports.
    pub fn new(settings: ProbeSettings, interval: Nanos, now: Nanos) -> Probes {
        let ProbeSettings { secret, addresses } = settings;
        // By the microsecond of the start, so that numbers of an earlier run are lower.
        let surveys = Surveys::new(now.0 / 1_000);
        Probes { offers: Offers::new(addresses, interval), surveys, secret }
    }

    /// What the hosts share; its file is read each time, so that another one counts at once.
    ///
    /// # Errors
    /// An [`InputError`] with the file.
    pub fn secret(&self) -> Result<Secret, InputError> {
        Ok(Secret(self.secret.as_deref().map(secret).transpose()?))
    }
}

/// The first line of a file that has a secret; errors never repeat it.
///
/// # Errors
/// An [`InputError`] with the file.
pub fn secret(file: &str) -> Result<String, InputError> {
    let text = read_text(file)?;
    let line = text.lines().next().unwrap_or_default().trim();
    if line.is_empty() {
        return Err(InputError::new(file, "expected a secret in the first line"));
    }
    Ok(line.to_owned())
}
