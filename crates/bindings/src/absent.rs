//! Functions and classes that a smaller build lacks.

use leeward_fabric::input::InputError;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;

use crate::errors::PyInputError;

/// Names of each part that a build may lack, and whether this build has it.
const PARTS: [(&str, &[&str], bool); 2] = [
    ("capture", &["read_capture"], cfg!(feature = "capture")),
    (
        "service",
        &[
            "SimulatedClock",
            "check_service",
            "enforce_net",
            "enforce_nfs",
            "new_token",
            "remove_nfs_file",
            "replay_nfs",
            "run_agent",
            "serve",
        ],
        cfg!(feature = "service"),
    ),
];

/// Called by Python for a name that the module does not have.
///
/// # Errors
/// An input error with a hint for a name of a part that this build lacks; an `AttributeError` for other names.
#[pyfunction(name = "__getattr__")]
pub fn absent(name: &str) -> PyResult<()> {
    let part = PARTS.iter().find(|(_, names, here)| !here && names.contains(&name));
    Err(match part {
        Some((part, ..)) => {
            let message = "this build, made for the demo, does not have this part; `make build` adds it";
            PyInputError(InputError::new(*part, message)).into()
        }
        None => PyAttributeError::new_err(format!("module 'leeward._native' has no attribute '{name}'")),
    })
}
