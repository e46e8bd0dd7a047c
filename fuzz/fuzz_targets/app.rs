//! App files.
#![no_main]

use leeward_fabric::input::Files;
use leeward_placement::tasks::App;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match App::from_text("app", text, &Files::default()) {
        Ok(app) => {
            let count = app.request.tasks.len() as u32;
            for transfer in &app.request.transfers {
                assert!(transfer.from < count && transfer.to < count && transfer.from != transfer.to);
            }
        }
        Err(error) => leeward_fuzz::one_line(&error),
    }
});
