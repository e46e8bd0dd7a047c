//! The service in a systemd that runs: its unit, credentials, restarts, watchdog and rollback.

use leeward_testing::booted;

#[test]
fn the_unit_of_the_service_works_as_the_guide_says() {
    let files = [
        (env!("CARGO_BIN_EXE_leewardd"), "/usr/local/bin/leewardd"),
        ("packaging/leewardd.service", "/etc/systemd/system/leewardd.service"),
    ];
    let Some(output) = booted::run("crates/controller/tests/processes/booted.sh", &files) else { return };
    assert!(output.ends_with("== done\n"), "{output}");
}
