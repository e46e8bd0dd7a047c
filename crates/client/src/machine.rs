//! Name of the machine.

use rustix::system::uname;

/// Name of this machine, which is that of its host in the cluster unless a user states another one.
pub fn machine_name() -> String {
    uname().nodename().to_string_lossy().into_owned()
}
