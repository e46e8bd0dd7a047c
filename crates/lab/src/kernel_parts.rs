//! Parts of the lab in C: where they are, and why one is missing.

use std::path::{Path, PathBuf};

use crate::cgroup;

/// Type information that the kernel's BPF programs need.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Folder with the parts that `make -C kernel` builds; some may be missing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelParts {
    folder: Option<PathBuf>,
}

impl KernelParts {
    /// Parts in a folder; without one, all are missing.
    pub fn new(folder: Option<PathBuf>) -> KernelParts {
        KernelParts { folder }
    }

    /// Loader of BPF programs, with their objects beside it.
    ///
    /// # Errors
    /// Returns the reason why this machine has none.
    pub fn loader(&self) -> Result<PathBuf, String> {
        if !Path::new(BTF).exists() {
            return Err(format!("no {BTF}: this kernel loads no BPF programs of congestion controls"));
        }
        cgroup::root().map_err(|error| error.to_string())?;
        self.find("leeward-bpf", "clang libbpf-dev gcc")
    }

    /// Library that dilates the time of programs.
    ///
    /// # Errors
    /// Returns the reason why this machine has none.
    pub fn time(&self) -> Result<PathBuf, String> {
        self.find("libleeward_vt.so", "gcc libc6-dev")
    }

    /// Library that reports what programs write.
    ///
    /// # Errors
    /// Returns the reason why this machine has none.
    pub fn demand(&self) -> Result<PathBuf, String> {
        self.find("libleeward_adu.so", "gcc libc6-dev")
    }

    fn find(&self, name: &str, packages: &str) -> Result<PathBuf, String> {
        let missing = || format!("no {name}: install the packages {packages}, and run `make -C kernel`");
        let path = self.folder.as_ref().ok_or_else(missing)?.join(name);
        if path.exists() { Ok(path) } else { Err(missing()) }
    }
}
