//! Telemetry that is kept over a restart: read at the start, written while the service runs and when it stops.

use std::convert::Infallible;
use std::time::Duration;

use leeward_fabric::Nanos;
use leeward_ledger::LedgerSettings;
use leeward_records::Clock;
use leeward_service::{Handle, KeptTelemetry, TelemetryState};
use schemars::JsonSchema;
use serde::Serialize;

use super::file::TelemetryFile;

/// Time limit of the last write, which delays the end of the service.
const LAST_WRITE: Duration = Duration::from_secs(5);

/// The file, if there is one, and the result of reading it.
#[derive(Clone, Default)]
pub struct TelemetryKeeper {
    file: Option<TelemetryFile>,
    problem: Option<String>,
}

/// Telemetry that is kept over a restart.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "KeptTelemetry")]
pub struct KeptTelemetryView {
    /// File with the telemetry.
    file: String,
    /// Number of links with telemetry from before the start that was fresh at the start.
    links: usize,
    /// Number of such devices.
    devices: usize,
    /// Number of such hosts.
    hosts: usize,
    /// Reason why the file was not read at the start; null if it was read or did not exist.
    problem: Option<String>,
}

impl TelemetryKeeper {
    /// Reads the fresh part of the file. A file that cannot be read is a warning.
    pub async fn read(
        file: Option<TelemetryFile>,
        clock: &Clock,
        settings: LedgerSettings,
    ) -> (TelemetryKeeper, TelemetryState) {
        let Some(file) = file else { return Default::default() };
        let (now, reader) = (clock.now(), file.clone());
        let read = tokio::task::spawn_blocking(move || reader.read(now, &settings)).await;
        let read = match read {
            Ok(read) => read.map_err(|error| error.to_string()),
            Err(_) => Err("the reading thread ended".to_owned()),
        };
        match read {
            Ok(state) => (TelemetryKeeper { file: Some(file), problem: None }, state),
            Err(problem) => {
                let shown = file.path().display();
                tracing::warn!(file = %shown, problem, "telemetry file not read: the service starts without telemetry");
                (TelemetryKeeper { file: Some(file), problem: Some(problem) }, TelemetryState::default())
            }
        }
    }

    /// Logs the telemetry that counts at the start.
    pub fn log(&self, handle: &Handle) {
        if let Some(file) = &self.file {
            let KeptTelemetry { links, devices, hosts } = handle.kept_telemetry();
            tracing::info!(file = %file.path().display(), links, devices, hosts, "telemetry kept from the last run");
        }
    }

    /// The file and its telemetry, for the status; `None` without a file.
    pub fn view(&self, handle: &Handle) -> Option<KeptTelemetryView> {
        let file = self.file.as_ref()?.path().display().to_string();
        let KeptTelemetry { links, devices, hosts } = handle.kept_telemetry();
        Some(KeptTelemetryView { file, links, devices, hosts, problem: self.problem.clone() })
    }

    /// Writes the file regularly.
    pub async fn keep(&self, handle: &Handle, interval: Nanos) -> Infallible {
        match &self.file {
            Some(file) => file.keep(handle, interval).await,
            None => std::future::pending().await,
        }
    }

    /// Writes the file before the service ends.
    pub async fn save(&self, handle: &Handle) {
        let Some(file) = &self.file else { return };
        let shown = file.path().display();
        match tokio::time::timeout(LAST_WRITE, file.save(handle)).await {
            Ok(Ok(resources)) => tracing::info!(file = %shown, resources, "telemetry written"),
            Ok(Err(error)) => tracing::warn!(file = %shown, %error, "telemetry not written"),
            Err(_) => tracing::warn!(file = %shown, "telemetry not written: the disk is too slow"),
        }
    }
}
