//! The network enforcer in a systemd that runs.

use std::process::Command;

use leeward_testing::{booted, require};

#[test]
fn the_unit_of_the_enforcer_programs_survives_a_kill_and_undoes_at_a_stop() {
    let nft = Command::new("nft").arg("--version").output();
    if require("nftables", nft.map_err(|error| format!("nft: {error}"))).is_none() {
        return;
    }
    let files = [
        (env!("CARGO_BIN_EXE_leeward-enforce-net"), "/usr/local/bin/leeward-enforce-net"),
        ("packaging/leeward-enforce-net.service", "/etc/systemd/system/leeward-enforce-net.service"),
    ];
    let Some(output) = booted::run("crates/enforce/tests/booted.sh", &files) else { return };
    assert!(output.ends_with("== done\n"), "{output}");
}
