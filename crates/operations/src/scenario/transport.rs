//! Network and TCP of a scenario.

use std::collections::BTreeSet;

use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, excerpt};
use leeward_tcp as tcp;
use leeward_tcp::control::Control;

use super::invalid;
use crate::file::{ControlFile, OperationsFile};
use crate::network::{Limits, Settings};

/// Name of the class of a scenario without classes.
const ONE_CLASS: &str = "all";
const MOST_CLASSES: usize = 8;
const MOST_WEIGHT: u32 = 1000;
/// Longest propagation delay, and longest timeout: a second.
const LONGEST: Nanos = Nanos::SECOND;
/// Largest payload of a segment.
const MOST_MSS: u32 = 65_000;

/// Names of the classes.
pub(super) fn classes(file: &OperationsFile) -> Result<Vec<String>, InputError> {
    if file.classes.is_empty() {
        return Ok(vec![ONE_CLASS.to_owned()]);
    }
    if file.classes.len() > MOST_CLASSES {
        let message = format!("{}: expected at most {MOST_CLASSES}", file.classes.len());
        return Err(invalid("classes", message));
    }
    let mut names = BTreeSet::new();
    for (number, class) in file.classes.iter().enumerate() {
        if class.name.is_empty() || !names.insert(&class.name) {
            let message = format!("`{}`: expected a name, and each once", excerpt(&class.name));
            return Err(invalid(&format!("classes[{number}].name"), message));
        }
        if class.name.contains('/') {
            let message =
                format!("`{}`: expected a name without `/`, for names of files", excerpt(&class.name));
            return Err(invalid(&format!("classes[{number}].name"), message));
        }
        if !(1..=MOST_WEIGHT).contains(&class.weight) {
            let message = format!("{}: expected 1 to {MOST_WEIGHT}", class.weight);
            return Err(invalid(&format!("classes[{number}].weight"), message));
        }
    }
    Ok(file.classes.iter().map(|class| class.name.clone()).collect())
}

/// Settings of the network.
pub(super) fn network(file: &OperationsFile) -> Result<Settings, InputError> {
    let network = &file.network;
    if network.delay > LONGEST {
        return Err(invalid("network.delay", format!("{}: expected at most {LONGEST}", network.delay)));
    }
    let least = u64::from(file.tcp.mss) + u64::from(tcp::HEADER);
    for (field, bytes) in [("buffer", network.buffer), ("host_limit", network.host_limit)] {
        if bytes.0 < least {
            let message = format!("{bytes}: expected room for a packet, which has up to {least}B");
            return Err(invalid(&format!("network.{field}"), message));
        }
    }
    let weights = file.classes.iter().map(|class| class.weight).collect::<Vec<_>>();
    Ok(Settings {
        delay: network.delay.0,
        limits: Limits {
            buffer: network.buffer.0,
            mark_at: network.mark_at.map_or(u64::MAX, |bytes| bytes.0),
        },
        weights: if weights.is_empty() { vec![1] } else { weights },
    })
}

/// Settings of TCP.
pub(super) fn tcp(file: &OperationsFile) -> Result<tcp::Settings, InputError> {
    let read = &file.tcp;
    if !(1..=MOST_MSS).contains(&read.mss) {
        return Err(invalid("tcp.mss", format!("{}: expected 1 to {MOST_MSS}", read.mss)));
    }
    let marks = [
        ("tcp.control", read.control == ControlFile::Dctcp, "`dctcp` requires marks of queues"),
        ("tcp.ecn", read.ecn, "ECN requires marks of queues"),
    ];
    if file.network.mark_at.is_none()
        && let Some((field, _, reason)) = marks.iter().find(|(_, is_set, _)| *is_set)
    {
        return Err(invalid(field, format!("{reason}: expected `network.mark_at`")));
    }
    let control = match read.control {
        ControlFile::Reno => Control::Reno,
        ControlFile::Cubic => Control::Cubic,
        ControlFile::Dctcp => Control::Dctcp,
    };
    let settings = tcp::Settings {
        control,
        mss: read.mss,
        initial_window: read.initial_window,
        ecn: read.ecn,
        restart_after_idle: read.restart_after_idle,
        tail_probe: read.tail_probe,
        min_probe: read.min_probe,
        lone_probe: read.lone_probe,
        initial_timeout: read.initial_timeout,
        min_timeout: read.min_timeout,
        max_timeout: read.max_timeout,
        ack_every: read.ack_every,
        ack_delay: read.ack_delay,
        ..tcp::Settings::default()
    };
    settings.check().map_err(|error| invalid("tcp", error))?;
    Ok(settings)
}
