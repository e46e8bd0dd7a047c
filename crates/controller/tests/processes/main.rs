//! Tests of `leewardd` as a process: start, signals, takeover, telemetry, upgrades and long runs.

#[path = "../support"]
mod support {
    pub mod access;
    pub mod leewardd;
    pub mod prometheus;
}

mod booted;
mod leaders;
mod many;
mod modes;
mod panics;
mod program;
mod reliability;
mod restart;
mod soak;
mod systemd;
mod telemetry;
mod upgrade;
