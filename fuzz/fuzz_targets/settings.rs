//! Files of settings of the service, YAML or TOML.
#![no_main]

use leeward_controller::Settings;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for file in ["leeward.yaml", "leeward.toml"] {
        match Settings::from_text(file, text) {
            Ok(settings) => assert!(settings.fixed(&settings).is_empty()),
            Err(error) => leeward_fuzz::one_line(&error),
        }
    }
});
