//! Disks of hosts: for each device of the cluster file a file system on a loop device, throttled by the control group of
//! the host.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use leeward_fabric::{Bytes, Cluster};

use super::plan::NetworkOptions;
use crate::error::LabError;
use crate::machine::Machine;
use crate::names::LabName;
use crate::part::{MOUNTS, Part};
use crate::programs::batch;
use crate::state::State;

/// Folder of the files in which disks are stored. It is on a disk of the machine, unlike `/run`.
pub(crate) const IMAGES: &str = "/var/tmp/leeward-labs";
/// Smallest size of a disk: the file system and its journal need some of it.
const LEAST: u64 = 16 << 20;
const NS_PER_S: f64 = 1e9;

/// A disk of a host.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Disk {
    /// Number of the host.
    pub host: usize,
    /// Folder of its file system.
    pub folder: PathBuf,
    /// File in which it is stored.
    pub image: PathBuf,
    /// Bytes of this file, which is sparse.
    pub size: u64,
    /// Rates in bytes per second.
    pub read: u64,
    pub write: u64,
}

/// Disks of all hosts. Kernels limit reads and writes each by themselves, and not the sum of both.
///
/// # Errors
/// Returns an error for a device whose size or name a file system cannot have.
pub(crate) fn plan(
    name: &LabName,
    cluster: &Cluster,
    machines: &[Machine],
    options: NetworkOptions,
) -> Result<Vec<Disk>, LabError> {
    let fabric = &cluster.fabric;
    let mut disks = Vec::new();
    for host in fabric.all_hosts() {
        for device in fabric.devices(host) {
            let place = &machines[host.index()].place;
            let size =
                device.capacity.map_or(options.disk_size.0, |capacity| capacity.0.min(options.disk_size.0));
            let problem = match () {
                () if size < LEAST => format!("disk of {size} B: must have at least {}", Bytes(LEAST)),
                () if device.name.starts_with('.') => {
                    "a disk of a lab is a folder: its name must not begin with `.`".to_owned()
                }
                () => String::new(),
            };
            if !problem.is_empty() {
                let problem = format!("`{}:{}`: {problem}", fabric.host_name(host), device.name);
                return Err(LabError::Unsupported { field: "devices", problem });
            }
            let rate = |ns_per_byte: f64| ((NS_PER_S / ns_per_byte) as u64 / u64::from(options.scale)).max(1);
            disks.push(Disk {
                host: host.index(),
                folder: Path::new(MOUNTS).join(name.as_str()).join(place).join(&*device.name),
                image: Path::new(IMAGES).join(name.as_str()).join(format!("{place}-{}", device.name)),
                size,
                read: rate(device.read_ns_per_byte),
                write: rate(device.write_ns_per_byte),
            });
        }
    }
    Ok(disks)
}

/// Control groups that throttle disks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Groups {
    /// The controller `blkio` of version 1, by its folder.
    One(PathBuf),
    /// The controller `io` of version 2, by the folder of the hierarchy.
    Two(PathBuf),
}

impl Groups {
    /// Finds the control groups of this machine; `None` if it cannot throttle disks.
    pub fn detect() -> Option<Groups> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        Groups::of(&mounts, |folder| {
            fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default()
        })
    }

    /// Finds the control groups in a list of mounts; `controllers` reads those of a hierarchy of version 2.
    fn of(mounts: &str, controllers: impl Fn(&Path) -> String) -> Option<Groups> {
        let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let mut two = None;
        for mount in fields {
            let [_, folder, kind, options, ..] = mount[..] else { continue };
            let folder = PathBuf::from(folder);
            match kind {
                "cgroup" if options.split(',').any(|option| option == "blkio") => {
                    return Some(Groups::One(folder));
                }
                "cgroup2" if controllers(&folder).split_whitespace().any(|name| name == "io") => {
                    two = Some(Groups::Two(folder));
                }
                _ => {}
            }
        }
        two
    }

    /// Folder of the control group of a host.
    pub fn folder(&self, machine: &Machine) -> PathBuf {
        let (Groups::One(root) | Groups::Two(root)) = self;
        root.join(&machine.namespace)
    }

    /// Limits of a device in the group of its host: files and their texts.
    fn limits(&self, machine: &Machine, device: &str, disk: &Disk) -> Vec<(PathBuf, String)> {
        let folder = self.folder(machine);
        match self {
            Groups::One(_) => {
                let [read, write] =
                    ["read", "write"].map(|way| folder.join(format!("blkio.throttle.{way}_bps_device")));
                vec![(read, format!("{device} {}", disk.read)), (write, format!("{device} {}", disk.write))]
            }
            Groups::Two(_) => {
                vec![(folder.join("io.max"), format!("{device} rbps={} wbps={}", disk.read, disk.write))]
            }
        }
    }

    /// File that limits what the kernel writes later on behalf of programs. Version 1 counts it for the group of the
    /// kernel, but only for the disk's own device; version 2 counts it for the group of the program.
    fn write_back(&self) -> Option<PathBuf> {
        match self {
            Groups::One(root) => Some(root.join("blkio.throttle.write_bps_device")),
            Groups::Two(_) => None,
        }
    }

    /// Makes the control group of a host.
    fn make(&self, machine: &Machine) -> Result<(), LabError> {
        if let Groups::Two(root) = self {
            for controller in ["+io", "+memory"] {
                // The kernel counts what it writes later only with the controller of memory; some machines have none.
                let enabled = fs::write(root.join("cgroup.subtree_control"), controller);
                if controller == "+io" {
                    enabled.map_err(LabError::system("cgroup.subtree_control"))?;
                }
            }
        }
        let folder = self.folder(machine);
        fs::create_dir(&folder).map_err(LabError::system(folder.display().to_string()))
    }
}

/// Parts of disks, in the order in which they are made.
pub(crate) fn parts(disks: &[Disk], machines: &[Machine], groups: Option<&Groups>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut add = |part: Part| {
        if !parts.contains(&part) {
            parts.push(part);
        }
    };
    for disk in disks {
        let folders = disk.folder.ancestors().take(3).chain(disk.image.parent());
        let mut folders: Vec<PathBuf> = folders.map(Path::to_owned).collect();
        folders.sort();
        folders.into_iter().for_each(|folder| add(Part::Folder(folder)));
        add(Part::File(disk.image.clone()));
        add(Part::Mount(disk.folder.clone()));
        if let Some(groups) = groups {
            add(Part::Cgroup(groups.folder(&machines[disk.host])));
        }
    }
    parts
}

/// Makes a file system and mounts it.
fn mount(disk: &Disk) -> Result<(), LabError> {
    let text = |path: &Path| path.display().to_string();
    File::create_new(&disk.image)
        .and_then(|file| file.set_len(disk.size))
        .map_err(LabError::system(text(&disk.image)))?;
    let (image, folder) = (text(&disk.image), text(&disk.folder));
    batch("mkfs.ext4", &["-q", "-F", "-m", "0", "-J", "size=4", "-E", "nodiscard", &image], "")?;
    batch("mount", &["-o", "loop,noatime,noinit_itable", &image, &folder], "").map(drop)
}

/// Makes all disks and their limits. On a machine that cannot mount the first one, there are none: returns the reason.
///
/// # Errors
/// Returns an error if a part cannot be made.
pub(crate) fn make(
    state: &mut State,
    disks: &[Disk],
    groups: Option<&Groups>,
    proceed: &dyn Fn() -> Result<(), LabError>,
) -> Result<Option<String>, LabError> {
    for (at, disk) in disks.iter().enumerate() {
        proceed()?;
        match mount(disk) {
            Err(LabError::Program { program, problem }) if at == 0 => {
                return Ok(Some(format!("{}: {problem}", program.split(' ').next().unwrap_or_default())));
            }
            mounted => mounted?,
        }
        let Some(groups) = groups else { continue };
        let machine = &state.machines[disk.host];
        if !groups.folder(machine).exists() {
            groups.make(machine)?;
        }
        let metadata =
            fs::metadata(&disk.folder).map_err(LabError::system(disk.folder.display().to_string()))?;
        let device = format!("{}:{}", rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
        let mut limits = groups.limits(machine, &device, disk);
        if let Some(file) = groups.write_back() {
            limits.push((file.clone(), format!("{device} {}", disk.write)));
            state.add(Part::Throttle { file, device })?;
        }
        for (file, limit) in limits {
            fs::write(&file, limit).map_err(LabError::system(file.display().to_string()))?;
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_comes_first_and_version_2_needs_its_controller() {
        let one = "cgroup /sys/fs/cgroup/blkio cgroup rw,relatime,blkio 0 0\n";
        let two = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";
        let (with, without) = (|_: &Path| "cpu io memory\n".to_owned(), |_: &Path| String::new());
        let blkio = Some(Groups::One("/sys/fs/cgroup/blkio".into()));
        let io = Some(Groups::Two("/sys/fs/cgroup/unified".into()));
        assert_eq!(Groups::of(&format!("{two}{one}"), with), blkio);
        assert_eq!(Groups::of(two, with), io);
        assert_eq!(Groups::of(two, without), None);
        assert_eq!(Groups::of("tmpfs / tmpfs rw 0 0\n", with), None);
    }
}
