//! A service from its settings: what both `leewardd` and `leeward serve` begin with.

use std::env;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use leeward_engine::Policies;
use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, read_text};
use leeward_ledger::LedgerSettings;
use leeward_placement::volumes::{admit, limits};
use leeward_placement::{PolicyError, PolicySpec, moves, replicas, tasks};
use rustls::ServerConfig;

use crate::access::{Access, Tokens, certified};
use crate::desk::{Labels, Promising};
use crate::log;
use crate::office::NewCluster;
use crate::reload::Reload;
use crate::service::{RunError, Service};
use crate::settings::{Flags, Settings};
use crate::store::{Database, Postgres, Sqlite, Store};

/// Everything that a service needs, read and found right; nothing was begun yet.
pub struct Ready {
    flags: Flags,
    settings: Settings,
    address: SocketAddr,
    cluster: NewCluster,
    policies: [PolicySpec; 2],
    moves: Option<PolicySpec>,
    promising: Promising,
    access: Arc<Access>,
    tls: Option<Arc<ArcSwap<ServerConfig>>>,
    store: Place,
    demo: bool,
}

/// Where decisions are kept.
enum Place {
    Memory,
    File(PathBuf),
    Database(Box<Database>),
}

impl Place {
    /// Its path, or the URL without a password; `None` for memory.
    fn shown(&self) -> Option<&Path> {
        match self {
            Place::Memory => None,
            Place::File(file) => Some(file),
            Place::Database(database) => Some(Path::new(database.shown())),
        }
    }
}

/// Why a service ended that nobody told to.
#[derive(Debug)]
pub enum StartError<E> {
    /// Something that was given is wrong.
    Input(InputError),
    /// Who was to be told where it listens did not take it.
    Told(E),
    /// The process or the system is in the way, or the engine has stopped.
    Broken(std::io::Error),
}

impl<E> From<InputError> for StartError<E> {
    fn from(error: InputError) -> Self {
        StartError::Input(error)
    }
}

impl Ready {
    /// Reads all that the settings name.
    ///
    /// # Errors
    /// An [`InputError`] with file, line and field, or the flag.
    pub fn new(flags: Flags) -> Result<Ready, InputError> {
        let settings = flags.settings()?;
        let file = settings.cluster.as_deref();
        let file = file.ok_or_else(|| flags.wrong("cluster", "missing; expected a cluster file"))?;
        let cluster = NewCluster::read(file, &read_text(file)?)?;
        let policies = [
            policy(&flags, "policies.replicas", &settings.policies.replicas, |name, settings| {
                replicas::make(name, settings).map(drop)
            })?,
            policy(&flags, "policies.tasks", &settings.policies.tasks, |name, settings| {
                tasks::make(name, settings).map(drop)
            })?,
        ];
        let moves = settings.policies.moves.as_ref().map(|given| {
            let make = |name: &str, settings: &str| moves::make(name, settings).map(drop);
            policy(&flags, "policies.moves", given, make)
        });
        let moves = moves.transpose()?;
        let promising = Promising {
            admission: policy(&flags, "policies.workload", &settings.policies.workload, admitting)?,
            volumes: policy(&flags, "policies.volumes", &settings.policies.volumes, |name, settings| {
                Ok(limits::make(name, settings).map(drop)?)
            })?,
        };
        let checked = LedgerSettings { interval: settings.interval, ..LedgerSettings::default() }.check();
        checked.map_err(|error| {
            let message = error.to_string();
            flags.wrong("interval", message.trim_start_matches("interval: "))
        })?;
        let address = resolved(&settings.listen).map_err(|message| flags.wrong("listen", message))?;
        let tokens = settings.tokens.as_ref();
        let tokens = tokens.map(|file| Tokens::from_text(file, &read_text(file)?)).transpose()?;
        if tokens.is_none() && !address.ip().is_loopback() {
            return Err(flags.wrong("listen", open_to_all(&settings.listen)));
        }
        let tls = settings.tls.as_ref().map(certified).transpose()?;
        let store = kept_in(settings.store.as_deref(), cluster.cluster.fabric.name())
            .map_err(|message| flags.wrong("store", message))?;
        if let Some(url) = settings.advertise.as_deref().filter(|url| !is_http(url)) {
            let message = format!("`{url}`: expected a URL, such as http://leeward-1.example:7600");
            return Err(flags.wrong("advertise", message));
        }
        if settings.advertise.is_none()
            && address.ip().is_unspecified()
            && matches!(store, Place::Database(_))
        {
            let message = "missing; expected the URL at which others reach this service, since it listens everywhere \
                           and shares its store";
            return Err(flags.wrong("advertise", message));
        }
        let access = Arc::new(Access::new(tokens, settings.limits.requests_per_s));
        let tls = tls.map(|tls| Arc::new(ArcSwap::new(tls)));
        Ok(Ready {
            flags,
            settings,
            address,
            cluster,
            policies,
            moves,
            promising,
            access,
            tls,
            store,
            demo: false,
        })
    }

    /// The same as a demo: it shows what somebody puts there.
    pub fn demo(self, demo: bool) -> Ready {
        Ready { demo, ..self }
    }

    /// Where decisions are kept, a file or the URL of a database without its password; `None` for memory.
    pub fn store(&self) -> Option<&Path> {
        self.store.shown()
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Serves until the process is told to stop. `listening` is told the URL and where decisions are kept.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn run<E>(
        self,
        listening: impl FnOnce(&str, Option<&Path>) -> Result<(), E>,
    ) -> Result<(), StartError<E>> {
        let Ready {
            flags,
            settings,
            address,
            cluster,
            policies,
            moves,
            promising,
            access,
            tls,
            store: place,
            demo,
        } = self;
        let store = opened(&place, &settings).map_err(|message| flags.wrong("store", message))?;
        let [blocks, apps] = policies;
        let labels = Labels {
            replicas: blocks.label.as_str().into(),
            tasks: apps.label.as_str().into(),
            moves: moves.as_ref().map(|moves| moves.label.as_str().into()),
        };
        // A task that was moved stays for ten intervals (Hotspots section 5.2).
        let cooldown = Nanos(settings.interval.0.saturating_mul(10));
        let make = move || Policies {
            replicas: replicas::make(&blocks.name, &blocks.settings).ok(),
            tasks: tasks::make(&apps.name, &apps.settings).ok(),
            moves: moves.as_ref().and_then(|moves| moves::make(&moves.name, &moves.settings).ok()),
            cooldown,
            ..Policies::default()
        };
        let ledger = LedgerSettings { interval: settings.interval, ..LedgerSettings::default() };
        let service = Service::new(cluster, make, labels, ledger, settings.seed, store);
        let mut service = service.map_err(|error| flags.wrong("interval", error.to_string()))?;
        let limits = &settings.limits;
        service.patience = std::time::Duration::from_nanos(limits.patience.0);
        service.connections = limits.connections as usize;
        service.streams = limits.streams as usize;
        service.promising = promising;
        service.body = usize::try_from(limits.body.0).unwrap_or(usize::MAX);
        (service.access, service.tls) = (access.clone(), tls.clone());
        let reload = Reload { flags: flags.clone(), started: settings.clone(), access: access.clone(), tls };
        service.reload = Some(Arc::new(reload));
        service.demo = demo;
        service.advertise.clone_from(&settings.advertise);
        log::begin(settings.log);
        let scheme = if settings.tls.is_some() { "https" } else { "http" };
        let served = service.run(address, |address| {
            let url = format!("{scheme}://{address}");
            listening(&url, place.shown())?;
            tracing::info!(version = env!("CARGO_PKG_VERSION"), url, "started");
            match (access.is_closed(), settings.tls.is_some()) {
                (false, _) => tracing::warn!(
                    "anyone on this machine may ask, and change everything; see tokens in the guide `Operate it`"
                ),
                (true, false) if !address.ip().is_loopback() => {
                    tracing::warn!("tokens cross the network readable; see tls in the guide `Operate it`");
                }
                _ => {}
            }
            Ok(())
        });
        served.map_err(|error| match error {
            RunError::Listen(error) => {
                flags.wrong("listen", format!("`{}`: {}", settings.listen, plain(&error))).into()
            }
            RunError::Told(error) => StartError::Told(error),
            RunError::Broken(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                let shown = place.shown().unwrap_or(Path::new("memory")).display();
                let go_on =
                    if matches!(place, Place::File(_)) { "; put a copy of it in its place" } else { "" };
                flags.wrong("store", format!("{shown}: {error}{go_on}")).into()
            }
            RunError::Broken(error) => StartError::Broken(error),
        })
    }
}

fn policy(
    flags: &Flags,
    field: &str,
    text: &str,
    make: impl Fn(&str, &str) -> Result<(), PolicyError>,
) -> Result<PolicySpec, InputError> {
    let spec: PolicySpec = text.parse().map_err(|message: String| flags.wrong(field, message))?;
    make(&spec.name, &spec.settings).map_err(|error| flags.wrong(field, told(&spec.name, error)))?;
    Ok(spec)
}

/// What is wrong with a policy: of its settings the name, since the line is one of the command line's text.
fn told(name: &str, error: PolicyError) -> String {
    match error {
        PolicyError::Settings(InputError { field: Some(field), message, .. }) => {
            format!("{name}.{field}: {message}")
        }
        error => error.to_string(),
    }
}

/// That a policy for admission can be made, and goes by bounds.
fn admitting(name: &str, settings: &str) -> Result<(), PolicyError> {
    admit::make(name, settings)?;
    if admit::paces(name) {
        let message = format!(
            "`{name}` gives networks rates of its own, which nothing here enforces; expected snc, dnc, best or none"
        );
        return Err(InputError::new("policy", message).into());
    }
    Ok(())
}

/// An address with a port, where a name was given too; one of IPv4, if it has any.
fn resolved(listen: &str) -> Result<SocketAddr, String> {
    let port = listen.rsplit_once(':').filter(|(name, _)| !name.is_empty()).map(|(_, port)| port);
    if port.and_then(|port| port.parse::<u16>().ok()).is_none() {
        return Err(format!("`{listen}`: expected an address and a port, such as 127.0.0.1:7600"));
    }
    let found = listen.to_socket_addrs().map_err(|error| format!("`{listen}`: {}", plain(&error)))?;
    found.min_by_key(|address| !address.is_ipv4()).ok_or_else(|| format!("`{listen}`: it has no address"))
}

/// What the system says of an error, without its number.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Why an address that others reach is refused without tokens, and how to go on.
fn open_to_all(listen: &str) -> String {
    format!(
        "`{listen}`: without tokens everyone who reaches it could place and change everything; make one \
         (`leeward token new --role admin --name NAME --tokens FILE`) and give the file with --tokens, \
         or listen at 127.0.0.1"
    )
}

fn is_http(url: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| url.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()))
}

/// Where decisions are kept. By default that is a file in the folder that systemd gives, or that of the user's state.
fn kept_in(store: Option<&str>, name: &str) -> Result<Place, String> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    match store {
        Some("memory") => Ok(Place::Memory),
        Some(url) if Database::is_url(url) => {
            let password = env::var("PGPASSWORD").ok().filter(|password| !password.is_empty());
            Ok(Place::Database(Box::new(Database::read(url, password.as_deref())?)))
        }
        Some(file) => Ok(Place::File(PathBuf::from(file))),
        None => {
            let user = || set("HOME").map(|home| home.join(".local").join("state"));
            let folder = set("STATE_DIRECTORY")
                .or_else(|| set("XDG_STATE_HOME").or_else(user).map(|state| state.join("leeward")))
                .ok_or("there is no home folder; give a file, or `memory`")?;
            Ok(Place::File(folder.join(format!("{name}.db"))))
        }
    }
}

fn opened(place: &Place, settings: &Settings) -> Result<Box<dyn Store>, String> {
    let told = |error| {
        let shown = place.shown().unwrap_or(Path::new("memory"));
        format!("{}: {error}", shown.display())
    };
    let (durability, keep) = (settings.durability, settings.keep);
    Ok(match place {
        Place::Memory => Box::new(Sqlite::in_memory().map_err(told)?),
        Place::File(file) => {
            if settings.store.is_none()
                && let Some(folder) = file.parent()
            {
                std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            }
            Box::new(Sqlite::open(file, durability, keep).map_err(told)?)
        }
        Place::Database(database) => {
            Box::new(Postgres::open((**database).clone(), durability, keep).map_err(told)?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(listen: &str) -> (tempfile::TempDir, Flags) {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("c.yaml");
        std::fs::write(&file, "{racks: 2, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 1}")
            .expect("a file");
        let cluster = Some(file.display().to_string());
        let flags = Flags { cluster, listen: Some(listen.to_owned()), ..Flags::default() };
        (folder, flags)
    }

    fn wrong(flags: Flags) -> InputError {
        Ready::new(flags).err().expect("it is wrong")
    }

    #[test]
    fn without_tokens_only_this_machine_is_listened_to() {
        let (folder, mut flags) = flags("0.0.0.0:7600");
        let error = wrong(flags.clone());
        assert_eq!(error.file, "--listen");
        assert!(error.message.contains("leeward token new"), "{error}");
        let tokens = folder.path().join("tokens");
        std::fs::write(&tokens, "").expect("a file");
        flags.tokens = Some(tokens.display().to_string());
        assert!(Ready::new(flags.clone()).is_ok());
        flags.tokens = None;
        for listen in ["127.0.0.1:0", "[::1]:0", "127.8.8.8:1"] {
            let flags = Flags { listen: Some(listen.to_owned()), ..flags.clone() };
            assert!(Ready::new(flags).is_ok(), "{listen}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_by_where_it_was_given() {
        let (folder, flags) = flags("127.0.0.1:0");
        for (listen, part) in
            [("7600", "an address and a port"), ("127.0.0.1:70000", "an address and a port")]
        {
            let error = wrong(Flags { listen: Some(listen.to_owned()), ..flags.clone() });
            assert!(error.file == "--listen" && error.message.contains(part), "{error}");
        }
        assert_eq!(wrong(Flags { policy: Some("best".to_owned()), ..flags.clone() }).file, "--policy");
        assert_eq!(wrong(Flags { cluster: None, ..flags.clone() }).file, "--cluster");
        let config = folder.path().join("leeward.toml");
        std::fs::write(&config, "[policies]\ntasks = 'best'\n").expect("a file");
        let config = config.display().to_string();
        let error = wrong(Flags { config: Some(config.clone()), ..flags });
        assert_eq!((error.file, error.field.as_deref()), (config, Some("policies.tasks")));
    }

    #[test]
    fn a_service_that_shares_its_store_says_where_it_is_reached() {
        let (folder, mut flags) = flags("0.0.0.0:0");
        let file = |name: &str, text: &str| {
            let file = folder.path().join(name).display().to_string();
            std::fs::write(&file, text).expect("a file");
            Some(file)
        };
        flags.tokens = file("tokens", "");
        flags.store = Some("postgres://lee:secret@127.0.0.1/leeward".to_owned());
        flags.config = file("a.yaml", "{}");
        let error = wrong(flags.clone());
        assert_eq!(error.field.as_deref(), Some("advertise"), "{error}");
        flags.config = file("b.yaml", "advertise: here");
        assert_eq!(wrong(flags.clone()).field.as_deref(), Some("advertise"));
        flags.config = file("d.yaml", "advertise: https://here:7600");
        let Ok(ready) = Ready::new(flags.clone()) else { panic!("it is right") };
        assert_eq!(ready.store(), Some(Path::new("postgres://lee@127.0.0.1:5432/leeward")));
        flags.store = Some("postgres://lee:secret@127.0.0.1:many/leeward".to_owned());
        let error = wrong(flags);
        assert!(error.file == "--store" && !error.to_string().contains("secret"), "{error}");
    }
}
