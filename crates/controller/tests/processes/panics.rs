//! A panic in a service with a JSON log becomes a regular JSON log line.

use std::path::PathBuf;
use std::process::Command;
use std::{env, thread};

use leeward_controller::{Flags, Ready};
use leeward_testing::clusters::RACKS_2X2;
use serde_json::Value;

/// Environment variable with the folder of the process that panics.
const FOLDER: &str = "LEEWARD_TEST_PANICS_IN";

/// Starts the log of a service and panics in a thread.
fn panic_in(folder: PathBuf) {
    let config = folder.join("l.yaml").display().to_string();
    let ready = Ready::to_run(Flags { config: Some(config), ..Flags::default() });
    assert!(ready.is_ok(), "the settings are right");
    let named = thread::Builder::new().name("worker".to_owned());
    let worker = named.spawn(|| panic!("a defect \"of this kind\"\nover two lines")).expect("a thread");
    assert!(worker.join().is_err());
}

#[test]
fn a_panic_is_one_json_log_line() {
    if let Some(folder) = env::var_os(FOLDER) {
        return panic_in(folder.into());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = folder.path().join("c.yaml");
    std::fs::write(&cluster, RACKS_2X2).expect("a file");
    let config =
        format!("cluster: {}\nstore: memory\nlog: {{format: json, level: error}}\n", cluster.display());
    std::fs::write(folder.path().join("l.yaml"), config).expect("a file");
    // The panic hook is global to the process, so the test runs itself again in a child process.
    let mut itself = Command::new(env::current_exe().expect("a program"));
    let ran = itself
        .args(["panics::a_panic_is_one_json_log_line", "--exact", "--nocapture"])
        .env(FOLDER, folder.path())
        .env_remove("RUST_BACKTRACE")
        .output();
    let ran = ran.expect("the program starts");
    let stderr_text = String::from_utf8(ran.stderr).expect("text");
    assert!(ran.status.success() && stderr_text.lines().count() == 1, "{stderr_text}");
    let line: Value = serde_json::from_str(&stderr_text).unwrap_or_else(|_| panic!("no JSON: {stderr_text}"));
    assert_eq!((&line["level"], &line["thread"]), (&"ERROR".into(), &"worker".into()), "{line}");
    assert_eq!(line["message"], "panicked: a defect \"of this kind\"\nover two lines");
    assert!(line["location"].as_str().is_some_and(|at| at.contains("panics.rs:")), "{line}");
    assert_eq!(line["backtrace"], Value::Null);
}
