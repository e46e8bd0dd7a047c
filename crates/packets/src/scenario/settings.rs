//! Settings of the simulator from a file. Errors name the invalid field of the file.

use leeward_circuits::switch::Resize;
use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;

use crate::file::{ControlFile, EceFile, LimitFile, PacketsFile};
use crate::settings::{Settings, SettingsError};

/// Lead time of circuit announcements in Etalon's code if queues are not resized.
const EARLY: Nanos = Nanos(600_000);
/// Largest number of samples of a run.
const MOST_SAMPLES: u64 = 20_000_000;

fn invalid(field: &str, message: impl Into<String>) -> InputError {
    InputError::new("scenario", message.into()).in_field(field)
}

/// Returns the checked settings of the simulator.
pub(super) fn of(file: &PacketsFile) -> Result<Settings, InputError> {
    let tcp = file.tcp.settings();
    tcp.check().map_err(|error| invalid("tcp", error.to_string()))?;
    let mut switch = file.network.switch();
    if let Some(resize) = &file.resize {
        let resize = Resize::new(resize.small, resize.big, resize.tau)
            .map_err(|error| invalid("resize", strip_name(&error.to_string())))?;
        switch.resize = Some(resize);
    }
    reject_unused(file)?;
    if file.tcp.control == ControlFile::Retcp {
        switch.circuit_marks = Some(match file.tcp.ece.unwrap_or(EceFile::AtCircuit) {
            EceFile::AtCircuit => Nanos(0),
            EceFile::TauEarly => file.resize.map_or(EARLY, |resize| resize.tau),
        });
    }
    let sampled = file.sample.iter().flat_map(|sample| &sample.pairs).map(|&[from, to]| (from, to)).collect();
    let settings = Settings {
        switch,
        hosts_per_rack: file.network.hosts_per_rack,
        nic: file.network.nic,
        nic_limit: file.network.nic_limit.map(|bytes| bytes.0),
        limits: file.network.limits.iter().map(LimitFile::limit).collect(),
        give_up: file.give_up,
        local_delay: file.network.local_delay,
        tcp,
        jitter: file.network.jitter,
        seed: file.seed,
        sample_every: file.sample.as_ref().map(|sample| sample.every),
        sampled,
    };
    settings.check().map_err(|error| of_field(&error))?;
    if let Some(sample) = &file.sample {
        let count = (file.horizon.0 / sample.every.0).saturating_mul(sample.pairs.len() as u64);
        if count > MOST_SAMPLES {
            return Err(invalid("sample.every", format!("{count} samples: must be at most {MOST_SAMPLES}")));
        }
    }
    Ok(settings)
}

/// Rejects settings that have no effect without another setting.
fn reject_unused(file: &PacketsFile) -> Result<(), InputError> {
    let tcp = &file.tcp;
    let is_retcp = tcp.control == ControlFile::Retcp;
    let of_retcp = [("alpha", tcp.alpha.is_some()), ("beta", tcp.beta.is_some()), ("ece", tcp.ece.is_some())];
    if let Some((field, _)) = of_retcp.iter().find(|(_, given)| *given && !is_retcp) {
        return Err(invalid(&format!("tcp.{field}"), "applies to `control: retcp` only"));
    }
    if file.scheduler.is_none() {
        let expected = "expected `scheduler`";
        let of_circuits = [
            ("resize", file.resize.is_some(), "queues grow ahead of circuits"),
            ("tcp.control", is_retcp, "`retcp` requires circuits"),
            ("tcp.divisions", tcp.divisions > 1, "divisions require circuits"),
        ];
        if let Some((field, _, reason)) = of_circuits.iter().find(|(_, given, _)| *given) {
            return Err(invalid(field, format!("{reason}: {expected}")));
        }
    }
    if file.network.mark_at.is_none() {
        let expected = "expected `network.mark_at`";
        let of_marks = [
            ("tcp.control", tcp.control == ControlFile::Dctcp, "`dctcp` requires marks of queues"),
            ("tcp.ecn", tcp.ecn, "ECN requires marks of queues"),
        ];
        if let Some((field, _, reason)) = of_marks.iter().find(|(_, given, _)| *given) {
            return Err(invalid(field, format!("{reason}: {expected}")));
        }
    }
    Ok(())
}

/// Maps an invalid setting to its field of the file.
fn of_field(error: &SettingsError) -> InputError {
    match error {
        SettingsError::Switch(error) => invalid("network", error.to_string()),
        SettingsError::Tcp(error) => invalid("tcp", error.to_string()),
        SettingsError::Zero { name: "give_up" } => invalid("give_up", "0s: must be above 0"),
        SettingsError::Zero { name: "limits" } => invalid("network.limits", "rate: 0bps: must be above 0"),
        SettingsError::Limited { .. } => invalid("network.limits", strip_name(&error.to_string())),
        SettingsError::Zero { name: "sample_every" } => invalid("sample.every", "0s: must be above 0"),
        SettingsError::Zero { name } => invalid(&format!("network.{name}"), "0: must be above 0"),
        SettingsError::Pair { .. } => invalid("sample.pairs", strip_name(&error.to_string())),
    }
}

/// Strips the name of the setting from an error, because the error already names the file's field.
fn strip_name(text: &str) -> String {
    text.split_once(": ").map_or(text, |(_, problem)| problem).to_owned()
}
