//! Files of running tasks.
#![no_main]

use leeward_fuzz::CLUSTER;
use leeward_placement::moves::Fleet;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Fleet::from_text("running", text, &CLUSTER.fabric) {
        Ok(fleet) => {
            for task in &fleet.request.running {
                assert!(task.host.index() < CLUSTER.fabric.host_count());
                assert!((task.job as usize) < fleet.request.budgets.len());
            }
        }
        Err(error) => leeward_fuzz::one_line(&error),
    }
});
