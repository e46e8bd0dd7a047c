//! Policies as named on a command line, and their settings as in a scenario.
#![no_main]

use leeward_placement::replicas::{self, REGISTRY};
use leeward_scenarios::scenario::PolicySpec;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let short = |error: String| assert!(error.len() < 2000 && !error.contains('\n'), "{error}");
    match text.parse::<PolicySpec>() {
        Ok(spec) => {
            drop(replicas::make(&spec.name, &spec.settings).map_err(|error| short(error.to_string())))
        }
        Err(error) => short(error),
    }
    for policy in REGISTRY {
        drop(replicas::make(policy.name, text).map_err(|error| short(error.to_string())));
    }
});
