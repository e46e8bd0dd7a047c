//! What an agent is told on its command line, read and found right.

use std::net::SocketAddr;

use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, excerpt, read_text};
use leeward_probe::control::Secret;

use crate::machine::Machine;

/// The shortest interval; shorter ones measure the timer.
const SHORTEST: Nanos = Nanos(10_000_000);

/// What the command line says, as it was typed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Given {
    /// `--controller`.
    pub controller: String,
    /// `--host`; the machine's name.
    pub host: Option<String>,
    /// `--interface`, each time; all that are physical.
    pub interfaces: Vec<String>,
    /// `--interval`; a second.
    pub interval: Option<String>,
    /// `--token`: a file.
    pub token: Option<String>,
    /// `--ca`: a file; the system's authorities.
    pub ca: Option<String>,
    /// `--probe-listen`: where to take part in measurements.
    pub probe_listen: Option<String>,
    /// `--secret`: a file, for measurements.
    pub secret: Option<String>,
}

/// What an agent is to do.
pub struct Settings {
    /// The controller's URL, without a slash at its end.
    pub controller: String,
    /// The host's name in the cluster.
    pub host: String,
    /// Interfaces to watch; all that are physical, if there are none.
    pub interfaces: Vec<String>,
    /// Time between reports.
    pub interval: Nanos,
    /// The file of the token.
    pub token: Option<String>,
    /// The file of the authorities that vouch for the controller.
    pub ca: Option<String>,
    /// Where to take part in measurements, and what the hosts share.
    pub probe: Option<(SocketAddr, Secret)>,
}

/// The first line of a file that has a secret; errors never repeat it.
pub(crate) fn secret(file: &str) -> Result<String, InputError> {
    let text = read_text(file)?;
    let line = text.lines().next().unwrap_or_default().trim();
    if line.is_empty() || !line.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(InputError::new(file, "expected a line of letters, digits and signs, and nothing else"));
    }
    Ok(line.to_owned())
}

impl Settings {
    /// Reads what was given, and the files that it names.
    ///
    /// # Errors
    /// An [`InputError`] with the option or the file.
    pub fn new(given: Given) -> Result<Settings, InputError> {
        let wrong = |option: &str, message: String| InputError::new(option, message);
        let controller = given.controller.trim_end_matches('/').to_owned();
        let rest = controller.strip_prefix("http://").or_else(|| controller.strip_prefix("https://"));
        let named = rest.is_some_and(|rest| {
            let right = |byte: u8| byte.is_ascii_graphic() && !b"@?#\"<>\\".contains(&byte);
            !rest.is_empty() && !rest.starts_with(['/', ':']) && rest.bytes().all(right)
        });
        if !named {
            let expected = "expected a URL such as https://leeward:7600";
            return Err(wrong("--controller", format!("`{}`: {expected}", excerpt(&given.controller))));
        }
        let host = match given.host {
            Some(host) => host,
            None => {
                Machine::name().map_err(|error| wrong("--host", format!("the machine's name: {error}")))?
            }
        };
        if host.is_empty() || host.contains(|letter: char| letter.is_control() || letter == ':') {
            return Err(wrong("--host", format!("`{}`: expected the name of a host", excerpt(&host))));
        }
        let interval = given.interval.as_deref().unwrap_or("1s");
        let interval: Nanos = interval.parse().map_err(|error| wrong("--interval", format!("{error}")))?;
        if interval < SHORTEST {
            return Err(wrong("--interval", "expected 10ms or more".to_owned()));
        }
        if let Some(file) = &given.token {
            secret(file)?;
        }
        let shared = given.secret.as_deref().map(secret).transpose()?;
        let probe = given.probe_listen.as_deref().map(|text| {
            let expected = "expected an address and a port, such as 10.0.0.7:7601";
            let address: SocketAddr = text
                .parse()
                .map_err(|_| wrong("--probe-listen", format!("`{}`: {expected}", excerpt(text))))?;
            if shared.is_none() && !address.ip().is_loopback() {
                let message = "without a secret everyone who reaches it could order measurements; give one with --secret";
                return Err(wrong("--probe-listen", format!("`{}`: {message}", excerpt(text))));
            }
            Ok((address, Secret(shared.clone())))
        });
        let probe = probe.transpose()?;
        if probe.is_none() && given.secret.is_some() {
            return Err(wrong("--secret", "it is for measurements; give --probe-listen too".to_owned()));
        }
        let (interfaces, token, ca) = (given.interfaces, given.token, given.ca);
        Ok(Settings { controller, host, interfaces, interval, token, ca, probe })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_by_its_option_and_secrets_are_not_repeated() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).expect("a file");
            Some(file.display().to_string())
        };
        let right = || Given {
            controller: "https://leeward:7600/".to_owned(),
            host: Some("r0h0".to_owned()),
            ..Given::default()
        };
        let settings = Settings::new(right()).expect("it is right");
        assert_eq!(
            (settings.controller.as_str(), settings.interval),
            ("https://leeward:7600", Nanos::SECOND)
        );
        let (spaced, good) = (file("spaced", "my secret\n"), file("good", "secret\n"));
        let open = || Some("0.0.0.0:7601".to_owned());
        let cases = [
            (Given { controller: "leeward:7600".to_owned(), ..right() }, "--controller"),
            (Given { controller: "http://".to_owned(), ..right() }, "--controller"),
            (Given { controller: "https://a@b\r\n".to_owned(), ..right() }, "--controller"),
            (Given { host: Some("r0:h0".to_owned()), ..right() }, "--host"),
            (Given { interval: Some("1".to_owned()), ..right() }, "--interval"),
            (Given { interval: Some("0s".to_owned()), ..right() }, "--interval"),
            (Given { token: spaced.clone(), ..right() }, spaced.as_deref().expect("a name")),
            (Given { probe_listen: open(), ..right() }, "--probe-listen"),
            (Given { probe_listen: Some("here".to_owned()), ..right() }, "--probe-listen"),
            (Given { secret: good.clone(), ..right() }, "--secret"),
        ];
        for (given, at) in cases {
            let error = Settings::new(given).err().expect("it is wrong");
            assert!(error.file == at && !error.to_string().contains("my secret"), "{at}: {error}");
        }
        assert!(Settings::new(Given { probe_listen: open(), secret: good, ..right() }).is_ok());
    }
}
