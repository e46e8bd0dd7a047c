//! Parts of a lab without a usable state file: everything on the machine that has its name.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::failures::Failure;
use super::{FILES, State, files_of};
use crate::cgroup;
use crate::groups::Groups;
use crate::names::LabName;
use crate::part::{IMAGES, MOUNTS, NAMESPACES, Part};

/// State of a lab with all parts that have its name, in the order in which they are made.
pub(super) fn find(name: &LabName) -> State {
    let groups = Groups::detect();
    let write_back = groups.as_ref().and_then(Groups::write_back);
    let mut parts = vec![Part::File(Failure::path(name))];
    let images = Path::new(IMAGES).join(name.as_str());
    parts.push(Part::Folder(images.clone()));
    parts.extend(entries(&images).into_iter().map(Part::File));
    // Files of a lab with circuits, or a folder of disks for each host.
    let folder = Path::new(MOUNTS).join(name.as_str());
    parts.push(Part::Folder(folder.clone()));
    for entry in entries(&folder) {
        if !entry.is_dir() {
            parts.push(Part::File(entry));
            continue;
        }
        parts.push(Part::Folder(entry.clone()));
        for disk in entries(&entry) {
            let throttle = write_back.clone().zip(device_of(&disk));
            parts.extend([Part::Folder(disk.clone()), Part::Mount(disk)]);
            parts.extend(throttle.map(|(file, device)| Part::Throttle { file, device }));
        }
    }
    let groups = groups.map(|(Groups::One(root) | Groups::Two(root))| root);
    let programs = cgroup::root().ok().filter(|root| groups.as_ref() != Some(root));
    for root in groups.into_iter().chain(programs) {
        parts.extend(of_lab(name, &root).into_iter().map(|group| Part::Cgroup(root.join(group))));
    }
    parts.extend(of_lab(name, Path::new(FILES)).iter().flat_map(|namespace| files_of(namespace)));
    parts.extend(of_lab(name, Path::new(NAMESPACES)).into_iter().map(Part::Namespace));
    parts.retain(Part::exists);
    State { name: name.to_string(), owner: None, parts, machines: Vec::new() }
}

/// Paths of everything in a folder, in order.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Numbers of the device that is mounted on a folder.
fn device_of(folder: &Path) -> Option<String> {
    let device = |path: &Path| fs::metadata(path).map(|file| file.dev()).ok();
    let mounted = device(folder).filter(|mounted| Some(*mounted) != folder.parent().and_then(device))?;
    Some(format!("{}:{}", rustix::fs::major(mounted), rustix::fs::minor(mounted)))
}

/// Names in a folder that belong to machines of a lab, in order.
fn of_lab(name: &LabName, folder: &Path) -> Vec<String> {
    let names = entries(folder).into_iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned));
    names.filter(|entry| name.machine(entry).is_some()).collect()
}
