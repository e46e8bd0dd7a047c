//! Files with the promises and the addresses, which are read again when they change.

use leeward_fabric::input::{InputError, read_text};
use leeward_lease::Addresses;

use crate::promises::{HostPromises, LeftOut};
use crate::promises_file::read_promises;
use crate::received::host_promises;
use crate::settings::{PROGRAM, PromisesSource, Settings};

/// Promises that were read, and the workloads without addresses.
pub(crate) type Read = (HostPromises, Vec<LeftOut>);

/// Files, and their texts when they were last read.
#[derive(Debug)]
pub(crate) struct Sources {
    workloads: String,
    addresses: Option<String>,
    host: String,
    texts: Option<(String, Option<String>)>,
    /// Error of the last reading, so that it is reported once.
    error: Option<InputError>,
}

/// Reads the promises of the settings once, from their file or from a controller.
///
/// # Errors
/// An [`InputError`] with the file and the line, or with the controller that does not answer.
pub(crate) fn read_once(settings: &Settings) -> Result<Read, InputError> {
    match &settings.promises {
        Some(PromisesSource::Controller(controller)) => {
            let mut received = leeward_lease::read_promises(controller, PROGRAM)?;
            let file = controller.addresses.as_deref().unwrap_or_default();
            received.file = received.file.singles(file)?;
            Ok(host_promises(&received))
        }
        Some(PromisesSource::File(file)) => {
            Ok(Sources::new(file, settings).read()?.expect("the first reading is a change"))
        }
        None => Err(InputError::new("--workloads", "missing; expected the file of the promises")),
    }
}

impl Sources {
    /// The file of the promises, and that of addresses.
    pub fn new(workloads: &str, settings: &Settings) -> Sources {
        let (workloads, addresses) = (workloads.to_owned(), settings.addresses.clone());
        Sources { workloads, addresses, host: settings.host.clone(), texts: None, error: None }
    }

    /// Reads the files; `None` if they are as before, or fail as before.
    ///
    /// # Errors
    /// An [`InputError`] with the file and the line.
    pub fn read(&mut self) -> Result<Option<Read>, InputError> {
        let result = self.read_changed();
        match &result {
            Err(error) if self.error.as_ref() == Some(error) => return Ok(None),
            Err(error) => self.error = Some(error.clone()),
            Ok(Some(_)) => self.error = None,
            Ok(None) => {}
        }
        result
    }

    fn read_changed(&mut self) -> Result<Option<Read>, InputError> {
        let workloads = read_text(&self.workloads)?;
        let addresses = self.addresses.as_deref().map(read_text).transpose()?;
        let texts = (workloads, addresses);
        if self.texts.as_ref() == Some(&texts) {
            return Ok(None);
        }
        let (workloads, addresses) = self.texts.insert(texts);
        let named = self.addresses.as_deref().zip(addresses.as_deref());
        let addresses = named.map(|(name, text)| Addresses::of(name, text)?.singles(name));
        let addresses = addresses.transpose()?.unwrap_or_default();
        read_promises(&self.workloads, workloads, &self.host, &addresses).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::settings::Arguments;

    #[test]
    fn files_are_read_when_they_change_and_an_error_is_reported_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let promises = |peer: &str| {
            format!(
                "{{host: h, workloads: [{{name: w, direction: to-server, peers: [{peer}], priority: 0}}]}}"
            )
        };
        let settings = Settings::new(Arguments {
            workloads: Some(path("w.yaml")),
            host: Some("h".to_owned()),
            addresses: Some(path("hosts")),
            ..Arguments::default()
        });
        let mut sources = Sources::new(&path("w.yaml"), &settings.expect("valid settings"));
        assert!(sources.read().is_err(), "no file");
        assert_eq!(sources.read(), Ok(None), "as before");
        fs::write(path("w.yaml"), promises("10.0.1.2")).expect("the folder is ours");
        fs::write(path("hosts"), "10.0.1.2 s\n").expect("the folder is ours");
        let (read, _) = sources.read().expect("valid files").expect("a change");
        assert_eq!(read.workloads.len(), 1);
        assert_eq!(sources.read(), Ok(None));
        fs::write(path("w.yaml"), promises("here")).expect("the folder is ours");
        assert!(sources.read().is_err());
        assert_eq!(sources.read(), Ok(None));
        fs::write(path("w.yaml"), promises("10.0.1.3")).expect("the folder is ours");
        assert!(sources.read().expect("valid files").is_some());
    }
}
