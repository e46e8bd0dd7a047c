//! The agent in a systemd that runs.

use leeward_testing::booted;

#[test]
fn the_unit_of_the_agent_works_without_a_controller() {
    let files = [
        (env!("CARGO_BIN_EXE_leeward-agent"), "/usr/local/bin/leeward-agent"),
        ("packaging/leeward-agent.service", "/etc/systemd/system/leeward-agent.service"),
        ("packaging/leeward-agent.service.d/enforce.conf", "/usr/local/share/enforce.conf"),
    ];
    let Some(output) = booted::run("crates/agent/tests/booted.sh", &files) else { return };
    assert!(output.ends_with("== done\n"), "{output}");
}
