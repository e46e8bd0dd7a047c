//! The NFS server behind a proxy: its address, its ports, and the check that it has the export.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

use leeward_fabric::input::{InputError, excerpt};

use crate::caller::{CallError, Caller};
use crate::calls;
use crate::mount::{self, MOUNT, PORTMAP};
use crate::outgoing::Source;

/// Port of the port mapper.
const PORTMAP_PORT: u16 = 111;
/// Longest time of a call before the proxy starts.
const PATIENCE: Duration = Duration::from_secs(5);

/// Name of this machine.
pub fn machine_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// An export by its name: `server:/path`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExportName {
    /// Name or address of the server.
    pub server: String,
    /// Path at the server.
    pub path: String,
}

impl FromStr for ExportName {
    type Err = String;

    fn from_str(text: &str) -> Result<ExportName, String> {
        let invalid = || format!("`{}`: expected a server and a path, such as nas:/vol", excerpt(text));
        // An address of IPv6 has colons of its own, and brackets around it.
        let (server, path) = text.split_once(":/").ok_or_else(invalid)?;
        let server = server.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(server);
        let is_valid = !server.is_empty()
            && !server.contains(['/', '[', ']'])
            && !text.contains(|letter: char| letter.is_control() || letter.is_whitespace());
        if !is_valid || path.split('/').any(|part| part == "..") {
            return Err(invalid());
        }
        Ok(ExportName { server: server.to_owned(), path: format!("/{path}") })
    }
}

impl fmt::Display for ExportName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ExportName { server, path } = self;
        if server.contains(':') { write!(f, "[{server}]:{path}") } else { write!(f, "{server}:{path}") }
    }
}

/// Ports of a server, as far as they are given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ports {
    /// Port of NFS; 2049 by default.
    pub nfs: Option<u16>,
    /// Port of MOUNT; the server's port mapper names it by default.
    pub mount: Option<u16>,
}

/// A server that has an export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Server {
    /// The export.
    pub export: ExportName,
    /// Address of NFS.
    pub nfs: SocketAddr,
    /// Address of MOUNT.
    pub mount: SocketAddr,
}

impl Server {
    /// Finds the ports of a server, and checks that it serves NFS and has the export.
    ///
    /// # Errors
    /// Fails with the export and the reason: an unknown name, a server that does not answer, or an export that is not
    /// there or not for this host.
    pub fn find(
        export: &ExportName,
        ports: Ports,
        source: Source,
        machine: &str,
    ) -> Result<Server, InputError> {
        let invalid = |message: String| InputError::new("--export", format!("{export}: {message}"));
        let addresses = (export.server.as_str(), 0).to_socket_addrs();
        let addresses = addresses.map_err(|error| invalid(format!("unknown server: {error}")))?;
        let mut failure = invalid("the server has no address".to_owned());
        // A name may have an address at which the server does not listen.
        for address in addresses {
            let finder = Finder { export, address: address.ip(), source, machine };
            match finder.find(ports) {
                Ok(server) => return Ok(server),
                Err(message) => failure = invalid(message),
            }
        }
        Err(failure)
    }
}

/// Search for the ports of a server at one of its addresses.
struct Finder<'a> {
    export: &'a ExportName,
    address: IpAddr,
    source: Source,
    machine: &'a str,
}

impl Finder<'_> {
    fn find(&self, ports: Ports) -> Result<Server, String> {
        let nfs = SocketAddr::new(self.address, ports.nfs.unwrap_or(2049));
        self.call(nfs, [calls::NFS, calls::VERSION, 0], &[])
            .map_err(|error| format!("no NFS version 3 at {nfs}: {error}"))?;
        let mount = match ports.mount {
            Some(port) => SocketAddr::new(self.address, port),
            None => self.mount_address()?,
        };
        let arguments = mount::path_arguments(&self.export.path);
        let results = self
            .call(mount, [MOUNT, mount::VERSION, mount::MNT], &arguments)
            .map_err(|error| format!("no MOUNT version 3 at {mount}: {error}"))?;
        mount::root(&results).map_err(|error| error.to_string())?;
        // The list of mounts at the server is for information only.
        drop(self.call(mount, [MOUNT, mount::VERSION, mount::UMNT], &arguments));
        Ok(Server { export: self.export.clone(), nfs, mount })
    }

    fn mount_address(&self) -> Result<SocketAddr, String> {
        let mapper = SocketAddr::new(self.address, PORTMAP_PORT);
        let numbers = [PORTMAP, mount::PORTMAP_VERSION, mount::GETPORT];
        let advice = "give the port of MOUNT with --mountport";
        let results = self
            .call(mapper, numbers, &mount::port_arguments(MOUNT, mount::VERSION))
            .map_err(|error| format!("port mapper at {mapper} unavailable: {error}; {advice}"))?;
        match mount::port(&results) {
            Ok(Some(port)) => Ok(SocketAddr::new(self.address, port)),
            Ok(None) => Err(format!("the port mapper at {mapper} has no MOUNT version 3 over TCP; {advice}")),
            Err(error) => Err(format!("port mapper at {mapper}: a broken answer: {error}; {advice}")),
        }
    }

    /// Calls a procedure over a connection of its own, and returns the results.
    fn call(&self, to: SocketAddr, numbers: [u32; 3], arguments: &[u8]) -> Result<Vec<u8>, CallError> {
        Caller::connect(to, self.source, self.machine, PATIENCE)?.call(numbers, arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_is_a_server_and_a_path() {
        let export = |text: &str| text.parse::<ExportName>();
        for (text, server, path) in [
            ("nas:/vol", "nas", "/vol"),
            ("10.0.0.1:/", "10.0.0.1", "/"),
            ("[2001:db8::1]:/vol/a", "2001:db8::1", "/vol/a"),
        ] {
            let expected = ExportName { server: server.to_owned(), path: path.to_owned() };
            assert_eq!(export(text), Ok(expected.clone()));
            assert_eq!(expected.to_string(), text);
        }
        for text in
            ["", "nas", "nas:vol", ":/vol", "/vol", "nas:/vol/../x", "nas: /vol", "nas:/a\nb", "a/b:/c"]
        {
            let error = export(text).unwrap_err();
            assert!(error.ends_with("expected a server and a path, such as nas:/vol"), "{error}");
        }
    }
}
