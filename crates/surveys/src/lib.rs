//! Measurements through agents: participating hosts, and measured results.
//!
//! The service sends no packets. It sends orders to listening agents, only at the source addresses of their own reports
//! or at addresses from the settings. It never uses an address from a request. A client therefore cannot direct the
//! service or a host to an arbitrary address. One survey runs at a time, because two surveys would measure each other's
//! traffic.

mod offers;
mod surveys;

use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, read_secret};
use leeward_probe::control::Secret;

pub use self::offers::Offers;
pub use self::surveys::{Kind, Progress, StartResult, State, Survey, SurveyResult, SurveySpec, Surveys};
pub use leeward_probe::{apply_mesh, mesh_shape};
use leeward_settings::ProbeSettings;

/// State of measurements.
pub struct Probes {
    /// Participating hosts.
    pub offers: Offers,
    /// Surveys and their results.
    pub surveys: Surveys,
    /// File with the hosts' shared secret.
    secret: Option<String>,
}

impl Probes {
    /// Starts without hosts and surveys. `interval` is the time between reports.
    pub fn new(settings: ProbeSettings, interval: Nanos, now: Nanos) -> Probes {
        let ProbeSettings { secret, addresses } = settings;
        // Ids start at the start time in microseconds, so they exceed the ids of earlier runs.
        let surveys = Surveys::new(now.0 / 1_000);
        Probes { offers: Offers::new(addresses, interval), surveys, secret }
    }

    /// Shared secret of the hosts. The file is read each time, so a new secret takes effect at once.
    ///
    /// # Errors
    /// [`InputError`] with the file.
    pub fn secret(&self) -> Result<Secret, InputError> {
        Ok(Secret(self.secret.as_deref().map(read_secret).transpose()?))
    }
}
