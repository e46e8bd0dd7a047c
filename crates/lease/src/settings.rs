//! Settings of an enforcer that reads its promises from a controller, validated from the options of its command line.

use leeward_client::Access;
use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, excerpt};
use leeward_promises::bodies::{LEASE, LEASES};
use leeward_records::EnforcerKind;
use leeward_records::schema::Name;

use crate::instance::instance;

/// Values of the options about controllers, as a user gives them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Given {
    /// `--controller`.
    pub controllers: Vec<String>,
    /// `--name`.
    pub name: Option<String>,
    /// `--lease`.
    pub lease: Option<String>,
    /// `--token-file`.
    pub token_file: Option<String>,
    /// `--ca`.
    pub ca: Option<String>,
    /// `--dscp`.
    pub dscp: Option<String>,
}

impl Given {
    /// First option that has a value without `--controller`; `None` if none has.
    pub fn without_controller(&self) -> Option<&'static str> {
        let given = [
            ("--name", self.name.is_some()),
            ("--lease", self.lease.is_some()),
            ("--token-file", self.token_file.is_some()),
            ("--ca", self.ca.is_some()),
            ("--dscp", self.dscp.is_some()),
        ];
        given.into_iter().find(|&(_, is_given)| is_given).map(|(option, _)| option)
    }
}

/// An enforcer, and its access to controllers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControllerSettings {
    /// Controllers, which share a store.
    pub access: Access,
    /// Name of the enforcer, unique in the cluster.
    pub name: String,
    /// Tells the enforcer from others of its name, also after a restart.
    pub instance: String,
    /// Kind of the enforcer.
    pub kind: EnforcerKind,
    /// Host whose promises it applies.
    pub host: String,
    /// Device whose volumes it serves; `None` for all volumes of the host.
    pub device: Option<String>,
    /// Length of the lease.
    pub lease: Nanos,
    /// File of addresses.
    pub addresses: Option<String>,
}

impl ControllerSettings {
    /// Validates the options of an enforcer of a kind at a host, or at one of its devices (`HOST:DEVICE`).
    ///
    /// # Errors
    /// An [`InputError`] with the invalid option or file.
    pub fn new(
        kind: EnforcerKind,
        host: &str,
        given: Given,
        addresses: Option<String>,
    ) -> Result<ControllerSettings, InputError> {
        let access = Access::new(&given.controllers, given.token_file, given.ca, given.dscp.as_deref())?;
        let lease = given.lease.as_deref().map_or(Ok(LEASE), |text| {
            let lease: Nanos = text.parse().map_err(|error| InputError::new("--lease", error))?;
            if !(LEASES[0]..=LEASES[1]).contains(&lease) {
                let message = format!("{lease}: expected {} to {}", LEASES[0], LEASES[1]);
                return Err(InputError::new("--lease", message));
            }
            Ok(lease)
        })?;
        let name = given.name.unwrap_or_else(|| format!("{}@{host}", kind.name()));
        if !Name::fits(&name) {
            let message = format!(
                "`{}`: expected a name of 1 to {} characters, none of them a control character",
                excerpt(&name),
                Name::LONGEST
            );
            return Err(InputError::new("--name", message));
        }
        let device = host.contains(':').then(|| host.to_owned());
        let host = host.split(':').next().unwrap_or(host).to_owned();
        Ok(ControllerSettings { access, name, instance: instance(""), kind, host, device, lease, addresses })
    }

    /// The settings of an enforcer of which a machine may have several, each at a place of its own, such as the addresses
    /// that it listens on.
    pub fn at_place(self, place: &str) -> ControllerSettings {
        ControllerSettings { instance: instance(place), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_their_option() {
        let valid = || Given { controllers: vec!["http://leeward:7600".to_owned()], ..Given::default() };
        let new = |host: &str, given: Given| ControllerSettings::new(EnforcerKind::Nfs, host, given, None);
        let settings = new("s0:ssd", valid()).expect("valid settings");
        assert_eq!((settings.name.as_str(), settings.host.as_str()), ("nfs@s0:ssd", "s0"));
        assert_eq!((settings.device.as_deref(), settings.lease), (Some("s0:ssd"), LEASE));
        assert_eq!(new("s0", valid()).expect("valid settings").device, None);
        let place = |place: &str| new("s0", valid()).expect("valid settings").at_place(place).instance;
        assert!(place("a") == place("a") && place("a") != place("b"));
        let one = |text: &str| Some(text.to_owned());
        for (given, option) in [
            (Given::default(), "--controller"),
            (Given { lease: one("15"), ..valid() }, "--lease"),
            (Given { lease: one("0s"), ..valid() }, "--lease"),
            (Given { lease: one("2h"), ..valid() }, "--lease"),
            (Given { name: one(""), ..valid() }, "--name"),
            (Given { name: one("a\nb"), ..valid() }, "--name"),
            (Given { dscp: one("fast"), ..valid() }, "--dscp"),
        ] {
            assert_eq!(new("s0", given).expect_err("invalid").file, option);
        }
        assert_eq!(Given::default().without_controller(), None);
        assert_eq!(Given { lease: one("15s"), ..Given::default() }.without_controller(), Some("--lease"));
    }
}
