//! Support that tests of several crates share; a dev-dependency only.
//!
//! * [`require`] skips a test whose environment is missing. Under CI it fails instead, so that no test is lost
//!   unnoticed.
//! * [`golden`] finds and reads reference results of released code, [`trace_folder`] public traces. Neither is part of
//!   the repository, so their tests are skipped without them, under CI too.
//! * [`postgres`] runs a PostgreSQL server for the tests of the store and the service.
//! * [`booted`] runs scripts in a systemd that boots, where the machine can.
//! * [`clusters`] holds clusters and ledgers that several tests share.
//! * [`workloads`] has workloads with SLOs.
//! * [`numbers`] draws pseudorandom numbers, and [`bench`] has the clocks of benchmarks.
//! * [`allocations`] counts the allocations of a thread.
//! * [`rows`] checks all rows of a table, and reports every row that fails.

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::PathBuf;

pub mod allocations;
pub mod bench;
pub mod booted;
pub mod clusters;
pub mod golden;
pub mod numbers;
pub mod postgres;
pub mod rows;
pub mod workloads;

/// Returns the environment that a test needs. Without it, prints the reason of the skip and returns `None`.
///
/// # Panics
/// Panics without the environment if CI runs the test: the variable `CI` is set, and not empty, `false` or `0`.
pub fn require<T>(name: &str, environment: Result<T, impl Display>) -> Option<T> {
    require_unless(is_ci(std::env::var_os("CI").as_deref()), name, environment)
}

fn is_ci(variable: Option<&OsStr>) -> bool {
    variable.is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
}

fn require_unless<T>(fails: bool, name: &str, environment: Result<T, impl Display>) -> Option<T> {
    match environment {
        Ok(environment) => Some(environment),
        Err(reason) if fails => panic!("{name} is required under CI: {reason}"),
        Err(reason) => {
            println!("skipped: no {name}: {reason}");
            None
        }
    }
}

/// Folder `part` of the public traces, below the folder in the variable `LEEWARD_DATA`. Without the variable, or
/// without the folder, prints that the test is skipped and returns `None`.
pub fn trace_folder(part: &str) -> Option<PathBuf> {
    let Some(data) = std::env::var_os("LEEWARD_DATA").map(PathBuf::from) else {
        println!("skipped: LEEWARD_DATA is not set, so there are no traces");
        return None;
    };
    let folder = data.join(part);
    if !folder.is_dir() {
        println!("skipped: there is no {part} in the folder of traces");
        return None;
    }
    Some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_environment_is_a_skip_outside_ci() {
        assert_eq!(require_unless(false, "PostgreSQL", Err::<u8, _>("not installed")), None);
        assert_eq!(require_unless(false, "PostgreSQL", Ok::<_, String>(1)), Some(1));
    }

    #[test]
    #[should_panic = "PostgreSQL is required under CI: not installed"]
    fn a_missing_environment_is_a_failure_under_ci() {
        require_unless(true, "PostgreSQL", Err::<u8, _>("not installed"));
    }

    #[test]
    fn an_environment_that_exists_is_used_under_ci() {
        assert_eq!(require_unless(true, "PostgreSQL", Ok::<_, String>(1)), Some(1));
    }

    #[test]
    fn ci_is_detected_by_its_variable() {
        let detected = |value: Option<&str>| is_ci(value.map(OsStr::new));
        assert!(detected(Some("true")) && detected(Some("1")));
        assert!(!detected(None) && !detected(Some("")) && !detected(Some("false")) && !detected(Some("0")));
    }
}
