//! Telemetry on a disk, so that a service knows the loads again right after a restart. The service writes the file every
//! ten seconds and when it stops, and reads it when it starts. Only telemetry that is still fresh counts: as much as
//! would count if the service had never stopped.
//!
//! The coordinator gives its state in pieces and decides between them; another thread names, compresses and writes it. A
//! file that cannot be read costs the telemetry and never the start.

mod file;
mod keeper;
mod rows;

pub use self::file::{TelemetryFile, TelemetryFileError};
pub use self::keeper::{KeptTelemetryView, TelemetryKeeper};
