//! The proxy between nfs-ganesha and libnfs, both from Debian.

use std::path::Path;
use std::process::Command;

use leeward_testing::require;

/// Programs of the test, with their packages.
const PROGRAMS: [(&str, &str); 7] = [
    ("ganesha.nfsd", "nfs-ganesha"),
    ("rpcbind", "rpcbind"),
    ("nfs-cp", "libnfs-utils"),
    ("nfs-cat", "libnfs-utils"),
    ("mkfs.ext4", "e2fsprogs"),
    ("ip", "iproute2"),
    ("unshare", "util-linux"),
];

fn environment() -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("root is required for namespaces and a file system".to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]).collect();
    let is_there = |program: &str| folders.iter().any(|folder| folder.join(program).exists());
    for (program, package) in PROGRAMS {
        if !is_there(program) {
            return Err(format!("no {program}; `make servers` installs {package}"));
        }
    }
    let is_library = |folder: &str| Path::new(folder).join("libfsalvfs.so").exists();
    if !["/usr/lib/ganesha", "/usr/lib/x86_64-linux-gnu/ganesha", "/usr/lib64/ganesha"]
        .into_iter()
        .any(is_library)
    {
        return Err("no VFS for ganesha; `make servers` installs nfs-ganesha-vfs".to_owned());
    }
    Ok(())
}

#[test]
fn a_real_server_and_real_clients_lose_nothing_when_the_proxy_is_killed() {
    let Some(()) = require("nfs-ganesha and libnfs", environment()) else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/ganesha.sh");
    let path = std::env::var("PATH").unwrap_or_default();
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("sh");
    command
        .env("TMPDIR", folder.path())
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_leeward-nfs"))
        .env("PATH", format!("{path}:/usr/sbin:/sbin"));
    let output = command.output().expect("a shell");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (checks, log) = (text(&output.stdout), text(&output.stderr));
    println!("{checks}");
    assert!(output.status.success(), "{checks}\n{log}");
    assert_eq!(checks.lines().count(), 5, "{checks}");
}
