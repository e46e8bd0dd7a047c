//! A dry run: the programs for interfaces that the enforcer has not programmed yet.

use std::fmt::Write;

use serde::Serialize;

use crate::difference::difference;
use crate::error::{EnforceError, StartError};
use crate::facts;
use crate::nft::{self, Hook};
use crate::plan::plan;
use crate::settings::Settings;
use crate::sources::read_once;
use crate::status::{WorkloadStatus, rows};
use crate::tc;
use crate::tree::{Marks, State};

/// Programs of a host.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Rehearsal {
    /// Name of the host.
    pub host: String,
    /// Programs by interface.
    pub interfaces: Vec<InterfaceProgram>,
    /// Workloads of each interface, with their classes and limits.
    pub workloads: Vec<WorkloadStatus>,
    /// Notes about limits.
    pub notes: Vec<String>,
}

/// Programs of an interface.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct InterfaceProgram {
    /// Name of the interface.
    pub interface: String,
    /// Rate of the link in bytes per second.
    pub rate_bytes_s: u64,
    /// Lines for `tc -batch -`.
    pub tc: Vec<String>,
    /// Program for `nft -f -`.
    pub nft: String,
}

impl Rehearsal {
    /// The programs as text, with comments that name the interface and the command.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for InterfaceProgram { interface, tc, nft, .. } in &self.interfaces {
            let _ = writeln!(text, "# {interface}: tc -batch -");
            for line in tc {
                let _ = writeln!(text, "{line}");
            }
            let _ = write!(text, "# {interface}: nft -f -\n{nft}");
        }
        text
    }

    /// True if every workload is in the programs or needs none.
    pub fn is_complete(&self) -> bool {
        self.workloads.iter().all(|one| one.state != "left-out")
    }
}

/// The programs that an enforcer would run first. They depend on the files, and on the speed and the addresses of
/// interfaces, which need not exist: `--rate` and `--addresses` replace both. The hook is egress.
///
/// # Errors
/// A [`StartError`] for an invalid file, or an interface without a speed.
pub fn rehearse(settings: &Settings) -> Result<Rehearsal, StartError> {
    let (promises, left_out) = read_once(settings)?;
    let names = facts::interfaces(&settings.interfaces)?;
    let mut rehearsal = Rehearsal {
        host: promises.host.clone(),
        interfaces: Vec::with_capacity(names.len()),
        workloads: Vec::new(),
        notes: Vec::new(),
    };
    for name in &names {
        let facts = facts::read(name, settings.rate, None)?;
        let plan = plan(&promises, &facts);
        let program =
            difference(&State::default(), &plan.wanted, &Marks::new()).map_err(EnforceError::from)?;
        rehearsal.interfaces.push(InterfaceProgram {
            interface: name.clone(),
            rate_bytes_s: facts.link,
            tc: program.before.iter().map(|change| tc::command(name, change)).collect(),
            nft: nft::table(name, Hook::Egress, &program.goal.marks, settings.clears),
        });
        rehearsal.workloads.extend(rows(name, &promises, &plan, &program, &left_out, None));
        rehearsal.notes.extend(plan.notes.iter().map(|note| format!("{name}: {note}")));
    }
    Ok(rehearsal)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::settings::Arguments;

    #[test]
    fn a_rehearsal_is_the_same_each_time_and_names_what_is_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let workload = |name: &str, peer: &str, priority: u8| {
            format!(
                "{{name: {name}, direction: to-server, own: [10.0.0.2], peers: ['{peer}'], priority: {priority}, \
                 buckets: [{{rate: 1000000, burst: 64000}}, {{rate: 100000, burst: 1000000}}]}}"
            )
        };
        let workloads =
            [workload("b", "10.0.1.2", 0), workload("a", "10.0.1.3", 6), workload("c", "fd00::4", 6)];
        fs::write(path("w.yaml"), format!("{{host: h, workloads: [{}]}}", workloads.join(", ")))
            .expect("the folder is ours");
        let settings = Settings::new(Arguments {
            workloads: Some(path("w.yaml")),
            host: Some("h".to_owned()),
            interfaces: vec!["nosuch0".to_owned()],
            rate: Some("200Mbps".to_owned()),
            dry_run: true,
            ..Arguments::default()
        });
        let settings = settings.expect("valid settings");
        let mut rehearsal = rehearse(&settings).expect("valid files");
        assert_eq!(rehearse(&settings).expect("valid files"), rehearsal);
        let states: Vec<_> =
            rehearsal.workloads.iter().map(|row| (row.state, row.class.as_deref())).collect();
        let expected = [("planned", Some("7ee0:13")), ("planned", Some("7ee0:11")), ("left-out", None)];
        assert_eq!(states, expected);
        assert!(!rehearsal.is_complete());
        // The kernel's default qdisc differs between machines.
        rehearsal.interfaces[0].tc.retain(|line| !line.starts_with("qdisc add dev nosuch0 parent"));
        rehearsal.interfaces[0].nft.clear();
        insta::assert_snapshot!(rehearsal.text());
    }
}
