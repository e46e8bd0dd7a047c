//! Machines of a lab, by their names, and the commands that run there.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::LabError;

/// Variables of the environment with the first folder of a host's disks, and with all of them, separated by colons.
const DISK: &str = "LEEWARD_DISK";
const DISKS: &str = "LEEWARD_DISKS";
/// Largest number of similar names in an error.
const SIMILAR: usize = 3;
/// Shell program that enters control groups, and then becomes the program that follows: `$1` is their number.
const ENTER: &str =
    r#"n=$1; shift; while [ "$n" -gt 0 ]; do echo $$ > "$1" || exit 125; shift; n=$((n-1)); done; exec "$@""#;

/// A host, rack or pod of a lab, or its core.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Name by its place: `r3h1`, `r3`, `p0` or `core`.
    pub place: String,
    /// Name in the cluster file.
    pub name: String,
    /// Its network namespace.
    pub namespace: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// True for a host, false for a machine that forwards packets.
    pub is_host: bool,
    /// Folders of its disks.
    #[serde(default)]
    pub disks: Vec<PathBuf>,
    /// Files to which a program of the host writes its process id: those of its control groups.
    #[serde(default)]
    pub cgroups: Vec<PathBuf>,
    /// Variables of the environment of its programs, besides those of its disks.
    #[serde(default)]
    pub environment: Vec<(String, String)>,
}

impl Machine {
    /// Program and arguments that run what follows them at the machine: in its namespace and its control groups, with its
    /// environment.
    pub fn prefix(&self) -> Vec<String> {
        let mut words = Vec::new();
        if !self.cgroups.is_empty() {
            words.extend(["sh", "-c", ENTER, "sh"].map(str::to_owned));
            words.push(self.cgroups.len().to_string());
            words.extend(self.cgroups.iter().map(|file| file.display().to_string()));
        }
        words.extend(["ip", "netns", "exec", &self.namespace].map(str::to_owned));
        let mut variables: Vec<String> =
            self.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let folders: Vec<String> = self.disks.iter().map(|folder| folder.display().to_string()).collect();
        if let Some(first) = folders.first() {
            variables.extend([format!("{DISK}={first}"), format!("{DISKS}={}", folders.join(":"))]);
        }
        if !variables.is_empty() {
            words.push("env".to_owned());
            words.extend(variables);
        }
        words
    }

    /// Finds the machine of a name: first names of hosts in the cluster file, then their places, then racks and pods.
    ///
    /// # Errors
    /// Returns an error with similar names if there is none.
    pub fn find<'a>(machines: &'a [Machine], name: &str) -> Result<&'a Machine, LabError> {
        let find = |is_host: bool, key: fn(&Machine) -> &String| {
            machines.iter().find(|machine| machine.is_host == is_host && key(machine) == name)
        };
        let of_kind =
            |is_host| find(is_host, |machine| &machine.name).or(find(is_host, |machine| &machine.place));
        of_kind(true).or(of_kind(false)).ok_or_else(|| LabError::NoMachine {
            name: name.chars().take(40).collect(),
            similar: similar(machines, name),
        })
    }
}

/// Names of hosts that are most similar to a name: those with the most letters in common at the beginning and the end.
fn similar(machines: &[Machine], name: &str) -> String {
    let common = |other: &str| {
        let same = |(one, other): &(char, char)| one.eq_ignore_ascii_case(other);
        let first = name.chars().zip(other.chars()).take_while(same).count();
        let last = name.chars().rev().zip(other.chars().rev()).take_while(same).count();
        (first + last).saturating_sub(other.chars().count().abs_diff(name.chars().count()))
    };
    let mut hosts: Vec<&str> =
        machines.iter().filter(|machine| machine.is_host).map(|machine| machine.name.as_str()).collect();
    hosts.sort_by_key(|host| std::cmp::Reverse(common(host)));
    hosts.truncate(SIMILAR);
    hosts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(place: &str, name: &str, is_host: bool) -> Machine {
        Machine {
            place: place.to_owned(),
            name: name.to_owned(),
            namespace: format!("leeward-lab-{place}"),
            address: Ipv4Addr::LOCALHOST,
            is_host,
            disks: Vec::new(),
            cgroups: Vec::new(),
            environment: Vec::new(),
        }
    }

    #[test]
    fn names_of_the_file_come_before_places_and_hosts_before_racks() {
        let machines = [
            machine("r0h0", "web", true),
            machine("r0h1", "r0h0", true),
            machine("r0", "web", false),
            machine("core", "core", false),
        ];
        for (name, place) in
            [("web", "r0h0"), ("r0h0", "r0h1"), ("r0h1", "r0h1"), ("r0", "r0"), ("core", "core")]
        {
            assert_eq!(Machine::find(&machines, name).expect("a machine").place, place);
        }
        let error = Machine::find(&machines, "wev").expect_err("no machine").to_string();
        assert_eq!(error, "`wev`: the lab has no such host, rack or pod; similar names: web, r0h0");
    }

    #[test]
    fn a_program_enters_its_control_groups_and_knows_its_disks() {
        let folder = std::env::temp_dir();
        let files = ["one", "two"].map(|name| folder.join(format!("leeward-{name}-{}", std::process::id())));
        let host = Machine {
            disks: vec!["/disks/a".into(), "/disks/b".into()],
            cgroups: files.to_vec(),
            environment: vec![("WORD".to_owned(), "word".to_owned())],
            ..machine("r0h0", "web", true)
        };
        let mut words = host.prefix();
        // Without the namespace, which does not exist.
        let inside = words.iter().position(|word| word == "ip").expect("it enters the namespace");
        assert_eq!(
            words.drain(inside..inside + 4).collect::<Vec<_>>(),
            ["ip", "netns", "exec", "leeward-lab-r0h0"]
        );
        words.extend(["sh", "-c", "echo $$ $WORD $LEEWARD_DISK $LEEWARD_DISKS"].map(str::to_owned));
        let output = std::process::Command::new(&words[0]).args(&words[1..]).output().expect("a shell");
        let text = String::from_utf8(output.stdout).expect("text");
        let pid = text.split(' ').next().expect("an id");
        assert_eq!(text, format!("{pid} word /disks/a /disks/a:/disks/b\n"));
        for file in files {
            assert_eq!(std::fs::read_to_string(&file).expect("it was written").trim(), pid);
            std::fs::remove_file(file).expect("it is there");
        }
    }
}
