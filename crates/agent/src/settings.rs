//! Settings of an agent, read from its command line and validated.

use std::net::SocketAddr;
use std::path::PathBuf;

use leeward_client::Access;
use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, excerpt, read_secret};
use leeward_probe::control::Secret;
use serde::Deserialize;

use crate::enforcers::EnforcerCommand;
use crate::machine::Machine;

/// Shortest interval; at shorter intervals the timer's error dominates.
const SHORTEST: Nanos = Nanos(10_000_000);

/// Arguments of the command line, of `leeward-agent` and of `leeward agent`, which passes them as JSON.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// URL of a controller, http or https; give each controller that shares a store.
    #[arg(long = "controller", value_name = "URL", required = true)]
    pub controllers: Vec<String>,
    /// Name of the host in the cluster [default: the machine's name].
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Interface to watch; may be given several times [default: all physical ones].
    #[arg(long = "interface", value_name = "NAME")]
    pub interfaces: Vec<String>,
    /// Disk to report, and its name in the cluster if that differs; may be given several times [default: all physical
    /// ones].
    #[arg(long = "disk", alias = "device", value_name = "DISK[=NAME]")]
    pub devices: Vec<String>,
    /// Folder of a volume, whose file system counts as the host's storage; may be given several times.
    #[arg(long = "volume", value_name = "PATH")]
    pub volumes: Vec<String>,
    /// Folder of processes, such as /proc: report the traffic of Kubernetes pods.
    #[arg(long, value_name = "PATH")]
    pub pods: Option<String>,
    /// Time between reports; use the controller's interval [default: 1s].
    #[arg(long, value_name = "TIME")]
    pub interval: Option<String>,
    /// File with a token of role report.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<String>,
    /// File with the certificate authorities of the controller [default: the system's].
    #[arg(long, value_name = "FILE")]
    pub ca: Option<String>,
    /// DSCP of packets to controllers: a name, such as cs6, or 0 to 63.
    #[arg(long, value_name = "DSCP")]
    pub dscp: Option<String>,
    /// Address on which to take part in measurements.
    #[arg(long, value_name = "HOST:PORT")]
    pub probe_listen: Option<String>,
    /// File with the hosts' shared secret for measurements.
    #[arg(long, value_name = "FILE")]
    pub secret: Option<String>,
    /// Enforcer to run beside: net or nfs, and its options as in a shell, such as `nfs --export 127.0.0.1:/vol`; may be given
    /// several times. It has the controllers, the token and the host of the agent.
    #[arg(long = "enforce", value_name = "KIND [OPTIONS]")]
    #[serde(default)]
    pub enforce: Vec<String>,
    /// Program and arguments that run enforcers of any kind; empty for the programs of the kinds.
    #[arg(skip)]
    #[serde(default)]
    pub enforcer_program: Vec<String>,
}

/// Settings of an agent.
pub struct Settings {
    /// Controllers; each one gets reports.
    pub access: Access,
    /// Name of the host in the cluster.
    pub host: String,
    /// Interfaces to watch; empty for all physical ones.
    pub interfaces: Vec<String>,
    /// Disks to report and their names in the cluster; empty for all physical ones.
    pub devices: Vec<(String, String)>,
    /// Folders whose file systems store the host's data; empty for none.
    pub volumes: Vec<PathBuf>,
    /// Folder of the machine's processes, from which pods are read; `None` without pods.
    pub pods: Option<PathBuf>,
    /// Time between reports.
    pub interval: Nanos,
    /// Address for measurements, and the hosts' shared secret.
    pub probe: Option<(SocketAddr, Secret)>,
    /// Enforcers to run.
    pub enforcers: Vec<EnforcerCommand>,
}

impl Settings {
    /// Validates the arguments and reads the files that they name.
    ///
    /// # Errors
    /// Returns an [`InputError`] with the invalid option or file.
    pub fn new(given: Arguments) -> Result<Settings, InputError> {
        let invalid = |option: &str, message: String| InputError::new(option, message);
        let access = Access::new(&given.controllers, given.token_file, given.ca, given.dscp.as_deref())?;
        let host = match given.host {
            Some(host) => host,
            None => {
                Machine::name().map_err(|error| invalid("--host", format!("the machine's name: {error}")))?
            }
        };
        if host.is_empty() || host.contains(|letter: char| letter.is_control() || letter == ':') {
            return Err(invalid("--host", format!("`{}`: expected the name of a host", excerpt(&host))));
        }
        let interval = given.interval.as_deref().unwrap_or("1s");
        let interval: Nanos = interval.parse().map_err(|error| invalid("--interval", format!("{error}")))?;
        if interval < SHORTEST {
            return Err(invalid("--interval", "expected 10ms or more".to_owned()));
        }
        let (devices, volumes) = (devices(&given.devices)?, volumes(&given.volumes)?);
        let pods = given.pods.as_deref().map(|text| folder("--pods", text, "/proc")).transpose()?;
        let shared = given.secret.as_deref().map(read_secret).transpose()?;
        let probe = given.probe_listen.as_deref().map(|text| {
            let expected = "expected an address and a port, such as 10.0.0.7:7601";
            let address: SocketAddr = text
                .parse()
                .map_err(|_| invalid("--probe-listen", format!("`{}`: {expected}", excerpt(text))))?;
            if shared.is_none() && !address.ip().is_loopback() {
                let message = "without a secret, any host that reaches this address could request measurements; \
                     give one with --secret";
                return Err(invalid("--probe-listen", format!("`{}`: {message}", excerpt(text))));
            }
            Ok((address, Secret(shared.clone())))
        });
        let probe = probe.transpose()?;
        if probe.is_none() && given.secret.is_some() {
            return Err(invalid("--secret", "only for measurements; give --probe-listen too".to_owned()));
        }
        let enforcers = given.enforce.iter().map(|text| {
            EnforcerCommand::read(text, &given.enforcer_program, &access, &host, &given.interfaces)
        });
        let enforcers = enforcers.collect::<Result<_, _>>()?;
        let interfaces = given.interfaces;
        Ok(Settings { access, host, interfaces, devices, volumes, pods, interval, probe, enforcers })
    }
}

/// Parses disks and their names in the cluster: `DISK=NAME`, or `DISK` if both are equal.
fn devices(given: &[String]) -> Result<Vec<(String, String)>, InputError> {
    let mut devices: Vec<(String, String)> = Vec::new();
    for text in given {
        let invalid = |message: &str| InputError::new("--disk", format!("`{}`: {message}", excerpt(text)));
        let (disk, name) = text.split_once('=').unwrap_or((text, text));
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if disk.is_empty() || disk.contains(|letter: char| letter == '/' || !letter.is_ascii_graphic()) {
            return Err(invalid("expected a disk as listed in /sys/block, such as sda or nvme0n1"));
        }
        if name.is_empty() || !name.bytes().all(allowed) {
            return Err(invalid("expected DISK=NAME with the name of a device in the cluster file"));
        }
        if devices.iter().any(|(other, device)| other == disk || device == name) {
            return Err(invalid("disk or device given twice; expected one device per disk"));
        }
        devices.push((disk.to_owned(), name.to_owned()));
    }
    Ok(devices)
}

/// Validates the path of a folder.
fn folder(option: &str, text: &str, example: &str) -> Result<PathBuf, InputError> {
    let path = PathBuf::from(text);
    if !path.is_absolute() || text.contains(|letter: char| letter.is_control()) {
        let expected = format!("expected an absolute path of a folder, such as {example}");
        return Err(InputError::new(option, format!("`{}`: {expected}", excerpt(text))));
    }
    Ok(path)
}

/// Validates the folders of volumes. A folder that does not exist may be mounted later.
fn volumes(given: &[String]) -> Result<Vec<PathBuf>, InputError> {
    let mut volumes: Vec<PathBuf> = Vec::new();
    for text in given {
        let path = folder("--volume", text, "/data/1")?;
        if volumes.contains(&path) {
            return Err(InputError::new("--volume", format!("`{}`: given twice", excerpt(text))));
        }
        volumes.push(path);
    }
    Ok(volumes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_their_option_and_never_quote_secrets() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).expect("a file");
            Some(file.display().to_string())
        };
        let valid = || Arguments {
            controllers: vec!["https://leeward:7600/".to_owned(), "http://other:7600".to_owned()],
            host: Some("r0h0".to_owned()),
            ..Arguments::default()
        };
        let settings = Settings::new(valid()).expect("valid settings");
        assert_eq!(settings.access.controllers, ["https://leeward:7600", "http://other:7600"]);
        assert_eq!(settings.interval, Nanos::SECOND);
        let (spaced, empty) = (file("spaced", "my secret\n"), file("empty", " \n"));
        let open = || Some("0.0.0.0:7601".to_owned());
        let several = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        let cases = [
            (Arguments { controllers: several(&[]), ..valid() }, "--controller"),
            (Arguments { controllers: several(&["leeward:7600"]), ..valid() }, "--controller"),
            (Arguments { controllers: several(&["http://"]), ..valid() }, "--controller"),
            (Arguments { controllers: several(&["https://a@b\r\n"]), ..valid() }, "--controller"),
            (Arguments { controllers: several(&["http://a", "http://a/"]), ..valid() }, "--controller"),
            (Arguments { devices: several(&["/dev/sda"]), ..valid() }, "--disk"),
            (Arguments { devices: several(&["sda="]), ..valid() }, "--disk"),
            (Arguments { devices: several(&["sda=a b"]), ..valid() }, "--disk"),
            (Arguments { devices: several(&["sda=disk0", "sdb=disk0"]), ..valid() }, "--disk"),
            (Arguments { volumes: several(&["data/1"]), ..valid() }, "--volume"),
            (Arguments { volumes: several(&[""]), ..valid() }, "--volume"),
            (Arguments { volumes: several(&["/data/1", "/data/1/"]), ..valid() }, "--volume"),
            (Arguments { pods: Some("proc".to_owned()), ..valid() }, "--pods"),
            (Arguments { dscp: Some("64".to_owned()), ..valid() }, "--dscp"),
            (Arguments { dscp: Some("fast".to_owned()), ..valid() }, "--dscp"),
            (Arguments { host: Some("r0:h0".to_owned()), ..valid() }, "--host"),
            (Arguments { interval: Some("1".to_owned()), ..valid() }, "--interval"),
            (Arguments { interval: Some("0s".to_owned()), ..valid() }, "--interval"),
            (Arguments { token_file: spaced.clone(), ..valid() }, spaced.as_deref().expect("a name")),
            (Arguments { enforce: several(&["disk"]), ..valid() }, "--enforce"),
            (Arguments { probe_listen: open(), ..valid() }, "--probe-listen"),
            (Arguments { probe_listen: Some("here".to_owned()), ..valid() }, "--probe-listen"),
            (Arguments { secret: spaced.clone(), ..valid() }, "--secret"),
            (
                Arguments { probe_listen: open(), secret: empty.clone(), ..valid() },
                empty.as_deref().expect("a name"),
            ),
        ];
        for (arguments, file) in cases {
            let error = Settings::new(arguments).err().expect("an error");
            assert!(error.file == file && !error.to_string().contains("my secret"), "{file}: {error}");
        }
        assert!(Settings::new(Arguments { probe_listen: open(), secret: spaced, ..valid() }).is_ok());
        let devices = Settings::new(Arguments { devices: several(&["sda=disk0", "nvme0n1"]), ..valid() });
        let devices = devices.map(|settings| settings.devices).expect("valid values");
        assert_eq!(
            devices,
            [("sda", "disk0"), ("nvme0n1", "nvme0n1")].map(|(a, b)| (a.to_owned(), b.to_owned()))
        );
    }
}
