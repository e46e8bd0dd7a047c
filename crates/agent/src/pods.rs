//! Kubernetes pods of the machine, from the folder of its processes.
//!
//! The cgroup of a process names its pod, and `PID/net/dev` has the counters of the pod's network. Every user may read
//! both, so the agent needs no privilege, no connection to the kubelet or the API server, and no socket of the container
//! runtime. It learns the UID of a pod and nothing else.
//!
//! A process of a pod can make networks and cgroups of its own. So the first process of the pod counts, which is the
//! sandbox in the network that the pod was given, and the outermost cgroup, which the kubelet made. The number of the
//! file `net/dev` identifies a network: the kernel has one such file for each.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::count::Count;

/// Interface of a pod. The kubelet requires this name.
const INTERFACE: &str = "eth0";
/// Largest number of pods in a report; the controller accepts no more from a host.
const MAX_PODS: usize = 1_024;
/// Largest number of bytes read of a file about a process.
const MAX_BYTES: u64 = 1 << 20;

/// UID of a pod, as a number of 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PodId(pub u128);

impl fmt::Display for PodId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A pod at the time of a reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pod {
    /// UID.
    pub id: PodId,
    /// Number that identifies its network.
    pub network: u64,
    /// Traffic into the pod.
    pub received: Count,
    /// Traffic out of the pod.
    pub sent: Count,
}

/// Pods of a machine at the time of a reading.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pods {
    /// Pods with counters of their own, by UID.
    pub pods: Vec<Pod>,
    /// Pods without counters of their own.
    pub left_out: LeftOut,
}

/// Numbers of pods without counters of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LeftOut {
    /// Pods in the network of the machine.
    pub host_network: usize,
    /// Pods whose network has no interface `eth0`.
    pub no_interface: usize,
    /// Pods beyond the largest number of a report.
    pub beyond: usize,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftOut { host_network, no_interface, beyond } = self;
        write!(
            f,
            "pods in the network of the host: {host_network}; without an interface {INTERFACE}: {no_interface}; beyond \
             {MAX_PODS}: {beyond}"
        )
    }
}

/// Reads the pods of a machine from the folder of its processes. A process that ends meanwhile is left out.
///
/// # Errors
/// Returns a message with the folder or file that cannot be read.
pub fn read(folder: &Path) -> Result<Pods, String> {
    let of_path = |path: &Path| {
        let path = path.display().to_string();
        move |error: io::Error| format!("pods: {path}: {error}")
    };
    // The first process of the machine is in the machine's network.
    let init = folder.join("1/net/dev");
    let host = network(&init).map_err(of_path(&init))?;
    let mut pods = Pods::default();
    for (id, process) in first_processes(folder).map_err(of_path(folder))? {
        let counters = process.join("net/dev");
        let Ok(network) = network(&counters) else { continue };
        if network == host {
            pods.left_out.host_network += 1;
            continue;
        }
        let Ok(text) = text(&counters) else { continue };
        // Another process may have got the number of one that ended.
        if pod_of(&process) != Some(id) {
            continue;
        }
        match counts(&text) {
            None => pods.left_out.no_interface += 1,
            Some(_) if pods.pods.len() == MAX_PODS => pods.left_out.beyond += 1,
            Some([received, sent]) => pods.pods.push(Pod { id, network, received, sent }),
        }
    }
    Ok(pods)
}

/// Folder of the first process of each pod.
fn first_processes(folder: &Path) -> io::Result<BTreeMap<PodId, PathBuf>> {
    let mut first = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let process = entry.path();
        let Some(pod) = pod_of(&process) else { continue };
        let Some(started) = text(&process.join("stat")).ok().and_then(|stat| start(&stat)) else { continue };
        let order = (started, number);
        let known = first.get(&pod);
        if known.is_none_or(|(earliest, _)| order < *earliest) {
            first.insert(pod, (order, process));
        }
    }
    Ok(first.into_iter().map(|(pod, (_, process))| (pod, process)).collect())
}

/// Pod of a process; `None` for other processes, and for one that ended.
fn pod_of(process: &Path) -> Option<PodId> {
    pod_in(&text(&process.join("cgroup")).ok()?)
}

/// Pod in the text of a file `cgroup`.
fn pod_in(cgroups: &str) -> Option<PodId> {
    cgroups.lines().find_map(|line| line.splitn(3, ':').nth(2)?.split('/').find_map(pod_name))
}

/// UID in the name of a pod's cgroup: `podUID`, or `kubepods-burstable-podUID.slice` of systemd, in which the hyphens of
/// the UID are underscores.
fn pod_name(name: &str) -> Option<PodId> {
    let uid = match name.strip_suffix(".slice") {
        Some(slice) => slice.rsplit('-').next()?.strip_prefix("pod")?,
        None => name.strip_prefix("pod")?,
    };
    let digits: String = uid.chars().filter(|digit| !matches!(digit, '-' | '_')).collect();
    let is_uid = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_uid.then(|| u128::from_str_radix(&digits, 16).ok()).flatten().map(PodId)
}

/// Start of a process in ticks since boot, from its file `stat`. The name of the program may contain any character.
fn start(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Counts of the interface of a pod, received and sent, from the file `net/dev`.
fn counts(text: &str) -> Option<[Count; 2]> {
    let fields = text.lines().find_map(|line| {
        let (name, fields) = line.split_once(':')?;
        (name.trim() == INTERFACE).then_some(fields)
    })?;
    let fields: Vec<u64> = fields.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let count = |first: usize| Some(Count { bytes: *fields.get(first)?, packets: *fields.get(first + 1)? });
    Some([count(0)?, count(8)?])
}

/// Number that identifies the network of a process, from its file `net/dev`.
fn network(counters: &Path) -> io::Result<u64> {
    fs::metadata(counters).map(|file| file.ino())
}

/// Text of a file, up to the largest number of bytes.
fn text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UID: &str = "5f0c9b9e-1d3a-4f43-9a53-9b0c2f1b7d5e";
    const NUMBER: PodId = PodId(0x5f0c_9b9e_1d3a_4f43_9a53_9b0c_2f1b_7d5e);

    #[test]
    fn cgroups_of_each_driver_and_version_name_their_pod() {
        let (slice, digits) = (UID.replace('-', "_"), UID.replace('-', ""));
        for cgroups in [
            format!("0::/kubepods/burstable/pod{UID}/0123abcd\n"),
            format!(
                "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{slice}.slice/cri-0.scope\n"
            ),
            format!("0::/kubepods.slice/kubepods-pod{slice}.slice/crio-0.scope"),
            format!(
                "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort-pod{slice}.slice/x"
            ),
            format!("12:cpu:/\n11:memory:/kubepods/pod{UID}/0\n0::/\n"),
            // The pod of a static manifest.
            format!("0::/kubepods/pod{digits}/0"),
            // From a cgroup namespace, as in a container.
            format!("0::/../../pod{UID}/0"),
            // A process of the pod made cgroups with the name of another pod.
            format!("0::/kubepods/pod{UID}/0/kubepods/pod{}", UID.replace('5', "6")),
        ] {
            assert_eq!(pod_in(&cgroups), Some(NUMBER), "{cgroups}");
        }
        for other in [
            "",
            "0::/",
            "0::/init.scope",
            "0::/system.slice/kubelet.service",
            "0::/machine.slice/libpod-pod5f0c9b9e.slice",
            "0::/kubepods/podweb-0",
            &format!("0::/kubepods/pod{UID}0/0"),
            &format!("0::/kubepods/{UID}/0"),
        ] {
            assert_eq!(pod_in(other), None, "{other}");
        }
    }

    #[test]
    fn counters_of_eth0_are_read_and_other_interfaces_are_skipped() {
        let header = "Inter-|   Receive |  Transmit\n face |bytes packets\n";
        let text = format!(
            "{header}    lo: 1 2 0 0 0 0 0 0 1 2 0 0 0 0 0 0\n  eth0: 30 4 0 0 0 0 0 0 {} 6 0 0 0 0 0 0\n  eth01: 7 7\n",
            u64::MAX
        );
        let [received, sent] = counts(&text).expect("an interface");
        assert_eq!(
            (received, sent),
            (Count { bytes: 30, packets: 4 }, Count { bytes: u64::MAX, packets: 6 })
        );
        for text in [header, "", "eth0:", "eth0: 1 2 3 4 5 6 7 8 9", "eth0: -1 2 0 0 0 0 0 0 1 2"] {
            assert_eq!(counts(text), None, "{text}");
        }
    }

    #[test]
    fn the_name_of_a_program_does_not_hide_its_start() {
        let stat = |name: &str| format!("7 ({name}) S 1{} 4711 0\n", " 0".repeat(17));
        for name in ["pause", "a) S 1 2 3", ") (", ""] {
            assert_eq!(start(&stat(name)), Some(4_711), "{name}");
        }
        assert_eq!(start("7 (pause) S 1"), None);
    }

    #[test]
    fn an_unreadable_folder_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = read(folder.path()).expect_err("there is no process");
        assert!(error.contains("1/net/dev: No such file"), "{error}");
    }

    #[test]
    fn processes_of_this_machine_are_readable() {
        let pods = read(Path::new("/proc")).expect("/proc is available on Linux");
        assert!(pods.pods.len() <= MAX_PODS);
    }

    proptest! {
        #[test]
        fn no_text_of_the_kernel_panics(text in "\\PC{0,200}") {
            pod_in(&text);
            pod_name(&text);
            start(&text);
            counts(&text);
        }
    }
}
