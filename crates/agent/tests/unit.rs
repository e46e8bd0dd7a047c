//! The unit of the agent, and the part for agents that run enforcers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(packaging(name)).expect("a file of the repository")
}

/// Values of a setting in units that are read one after another, as systemd reads them: an empty one removes those before.
fn values(texts: &[&str], name: &str) -> Vec<String> {
    let mut values = Vec::new();
    for line in texts.iter().flat_map(|text| text.lines()) {
        match line.split_once('=') {
            Some((key, "")) if key == name => values.clear(),
            Some((key, value)) if key == name => values.push(value.to_owned()),
            _ => {}
        }
    }
    values
}

#[test]
fn the_part_for_enforcers_gives_the_rights_that_the_unit_takes() {
    let (unit, part) = (read("leeward-agent.service"), read("leeward-agent.service.d/enforce.conf"));
    let alone = |name: &str| values(&[&unit], name);
    assert_eq!(alone("CapabilityBoundingSet"), [""; 0]);
    assert_eq!(alone("SystemCallFilter"), ["@system-service", "~@privileged @resources"]);
    assert_eq!(alone("MemoryMax"), ["64M"]);
    let both = |name: &str| values(&[&unit, &part], name);
    for name in ["CapabilityBoundingSet", "AmbientCapabilities"] {
        assert_eq!(both(name), ["CAP_NET_ADMIN CAP_NET_BIND_SERVICE"], "{name}");
    }
    assert_eq!(both("SystemCallFilter"), ["@system-service"]);
    assert_eq!(both("MemoryMax").last().map(String::as_str), Some("2G"));
    // The enforcer of packets has its state there, also as a service of its own.
    for text in [part, read("leeward-enforce-net.service")] {
        assert_eq!(values(&[&text], "RuntimeDirectory"), ["leeward-enforce"]);
        assert_eq!(values(&[&text], "RuntimeDirectoryPreserve"), ["yes"]);
    }
}

#[test]
fn systemd_accepts_the_unit_with_the_part_for_enforcers() {
    if let Err(error) = Command::new("systemd-analyze").arg("--version").output() {
        // The test above is for machines without it.
        println!("skipped: no systemd-analyze: {error}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let units = folder.path();
    // Its program and its settings are those of an installed agent.
    let settings = units.join("agent.env");
    let unit = read("leeward-agent.service")
        .replace("/usr/local/bin/leeward-agent", env!("CARGO_BIN_EXE_leeward-agent"))
        .replace("/etc/leeward/agent.env", &settings.display().to_string())
        // The manual need not be installed.
        .replace("Documentation=man:leeward-agent(8)\n", "");
    let parts = units.join("leeward-agent.service.d");
    fs::create_dir(&parts).expect("the folder is ours");
    fs::write(&settings, "LEEWARD_AGENT=--controller http://127.0.0.1:1\n").expect("the folder is ours");
    fs::write(units.join("leeward-agent.service"), unit).expect("the folder is ours");
    fs::copy(packaging("leeward-agent.service.d/enforce.conf"), parts.join("enforce.conf")).expect("a copy");
    let verify = || {
        let path = units.join("leeward-agent.service");
        let output = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(path).output();
        let output = output.expect("it is installed");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        // Other units of the machine may have faults of their own.
        let own: Vec<&str> = text.lines().filter(|line| line.contains("leeward")).collect();
        own.join("\n")
    };
    assert_eq!(verify(), "");
    fs::write(parts.join("broken.conf"), "[Service]\nCapabilityBoundSet=CAP_NET_ADMIN\n").expect("ours");
    assert!(verify().contains("Unknown key 'CapabilityBoundSet'"), "a mistake is found");
}
