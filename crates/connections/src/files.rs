//! Number of connections that a cluster needs, and that the limit on open files allows. Each agent keeps one connection
//! open, and a connection is an open file.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{ADMIN_CONNECTIONS, DEFAULT_CONNECTIONS, RESERVE_CONNECTIONS};

/// Connections of clients other than agents: schedulers, dashboards, scrapers.
const OTHERS: usize = 256;
/// Files other than connections: the store and its log, sockets, the polled Prometheus, certificates.
const OTHER_FILES: usize = 64 + ADMIN_CONNECTIONS + RESERVE_CONNECTIONS;

/// Raises the soft limit on open files to the hard one. Returns the limit in force; `None` without a limit.
pub fn raise_file_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    if current != maximum && setrlimit(Resource::Nofile, raised).is_ok() { maximum } else { current }
}

/// Largest number of connections with this limit on open files.
fn most(files: Option<u64>) -> usize {
    let files = files.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX);
    files.saturating_sub(OTHER_FILES).max(1)
}

/// Limit on the connections of a listener.
#[derive(Clone, Copy, Default, Debug)]
pub struct ConnectionLimit {
    /// The number that the settings name.
    pub setting: Option<usize>,
    /// Limit on open files; `None` without a limit.
    pub files: Option<u64>,
}

impl ConnectionLimit {
    /// A limit that no cluster changes.
    pub fn fixed(connections: usize) -> ConnectionLimit {
        ConnectionLimit { setting: Some(connections), files: None }
    }

    /// Number of connections for a cluster: that of the settings, or else enough for the agents of all hosts and for
    /// others, as far as the limit on open files allows.
    pub fn for_hosts(&self, hosts: usize) -> usize {
        let needed = DEFAULT_CONNECTIONS.max(hosts.saturating_add(OTHERS));
        self.setting.unwrap_or_else(|| needed.min(most(self.files)))
    }

    /// Warnings about a cluster: its connections are beyond the limit on open files, or too few for the agents of all
    /// hosts.
    fn warnings(&self, hosts: usize) -> Vec<String> {
        let mut warnings = Vec::new();
        let (connections, most) = (self.for_hosts(hosts), most(self.files));
        if connections > most {
            warnings.push(format!(
                "limits.connections is {connections}, but the limit on open files allows {most} connections: raise \
                 that limit (LimitNOFILE in the unit)"
            ));
        }
        if connections <= hosts {
            let remedy = if most > hosts.saturating_add(OTHERS) {
                "raise limits.connections"
            } else {
                "raise the limit on open files (LimitNOFILE in the unit) and limits.connections"
            };
            warnings.push(format!(
                "connections are too few for the cluster: {connections} for {hosts} hosts, whose agents keep a \
                 connection each, and for other clients; {remedy}, unless telemetry comes without agents"
            ));
        }
        warnings
    }

    /// Logs the warnings about a cluster.
    pub fn warn(&self, hosts: usize) {
        for warning in self.warnings(hosts) {
            tracing::warn!("{warning}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_fits_the_cluster_and_the_limit_on_open_files() {
        for (hosts, files, connections) in [
            (6, Some(1_048_576), 512),
            (10_000, Some(65_536), 10_256),
            (10_000, None, 10_256),
            (10_000, Some(1_024), 936),
            (6, Some(100), 12),
            (6, Some(3), 1),
        ] {
            let limit = ConnectionLimit { setting: None, files };
            assert_eq!(limit.for_hosts(hosts), connections, "{hosts} hosts, {files:?} files");
        }
    }

    #[test]
    fn too_few_connections_and_too_few_files_give_a_warning_with_the_remedy() {
        let limit = |setting, files| ConnectionLimit { setting, files };
        assert!(limit(None, Some(1_024)).warnings(6).is_empty());
        assert!(limit(None, None).warnings(10_000).is_empty());
        let few = limit(Some(512), Some(65_536)).warnings(10_000);
        assert!(
            few[0].contains("512 for 10000 hosts") && few[0].contains("; raise limits.connections,"),
            "{few:?}"
        );
        let files = limit(Some(4_096), Some(1_024)).warnings(10_000);
        assert!(files[0].contains("allows 936 connections") && files[1].contains("LimitNOFILE"), "{files:?}");
        assert_eq!(files.len(), 2);
    }

    #[test]
    fn the_soft_limit_on_open_files_rises_to_the_hard_one() {
        let limit = raise_file_limit();
        assert_eq!(limit, getrlimit(Resource::Nofile).current);
        assert_eq!(limit, getrlimit(Resource::Nofile).maximum);
    }
}
