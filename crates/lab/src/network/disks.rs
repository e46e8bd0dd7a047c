//! Disks of hosts: for each device of the cluster file a file system on a loop device, throttled by the control group of
//! the host.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use leeward_fabric::{Bytes, Cluster};

use super::options::NetworkOptions;
use crate::error::LabError;
use crate::groups::Groups;
use crate::machine::Machine;
use crate::names::LabName;
use crate::part::{IMAGES, MOUNTS, Part};
use crate::programs::batch;
use crate::state::State;

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
            add(Part::Cgroup(groups.folder(&machines[disk.host].namespace)));
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

/// Makes all disks and their limits; calls `proceed` with the number of complete ones. On a machine that cannot mount the
/// first one, there are none: returns the reason.
///
/// # Errors
/// Returns an error if a part cannot be made.
pub(crate) fn make(
    state: &mut State,
    disks: &[Disk],
    groups: Option<&Groups>,
    proceed: &dyn Fn(usize) -> Result<(), LabError>,
) -> Result<Option<String>, LabError> {
    for (at, disk) in disks.iter().enumerate() {
        proceed(at)?;
        match mount(disk) {
            Err(LabError::Program { program, problem }) if at == 0 => {
                return Ok(Some(format!("{}: {problem}", program.split(' ').next().unwrap_or_default())));
            }
            mounted => mounted?,
        }
        let Some(groups) = groups else { continue };
        let group = &state.machines[disk.host].namespace;
        if !groups.folder(group).exists() {
            groups.make(group)?;
        }
        let metadata =
            fs::metadata(&disk.folder).map_err(LabError::system(disk.folder.display().to_string()))?;
        let device = format!("{}:{}", rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
        let mut limits = groups.limits(group, &device, disk.read, disk.write);
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
