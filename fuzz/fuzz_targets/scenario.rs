//! Scenario files. Any cluster name refers to an existing file; traces are not opened.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use leeward_fuzz::one_line;
use leeward_scenarios::scenario::Scenario;
use libfuzzer_sys::fuzz_target;

/// A folder with `cluster.yaml` in it.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("leeward-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder for temporary files can be written to");
    let cluster = "{racks: 3, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 10}";
    std::fs::write(folder.join("cluster.yaml"), cluster).expect("a file in a folder of its own");
    folder
});

fuzz_target!(|text: &str| {
    match Scenario::from_text("scenario", text, &FOLDER, None) {
        Ok(scenario) => {
            assert!(!scenario.policies.is_empty() && scenario.warmup < scenario.horizon);
            assert!(scenario.sample.0 > 0 && scenario.sample <= scenario.horizon);
            assert!(scenario.events.iter().all(|event| event.at < scenario.horizon));
            assert!(scenario.events.is_sorted_by_key(|event| event.at));
        }
        Err(error) => one_line(&error),
    }
});
