//! Files that map addresses to places: YAML, CSV, or lines as in `/etc/hosts`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use leeward_fabric::input::{InputError, Spanned, Table, Text, excerpt, read_text, read_yaml};
use serde::Deserialize;

use super::Prefix;

/// Largest number of addresses and prefixes of a mapping.
const MOST: usize = 4_000_000;

/// Names of addresses, and the services.
#[derive(Default, Debug)]
pub struct Mapping {
    file: String,
    addresses: BTreeMap<Prefix, AddressName>,
    /// Lines with a loopback address, by their names.
    loopback: BTreeMap<String, u64>,
    services: Vec<Service>,
}

#[derive(Debug)]
struct AddressName {
    name: String,
    /// The address as written in the file, for errors.
    written: String,
    line: Option<u64>,
}

/// A service of a mapping.
#[derive(Debug)]
pub struct Service {
    /// Name of the service; several entries may belong to one service.
    pub name: String,
    /// Ports of the service; empty for any port.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Addresses of the service; `None` for any address.
    pub at: Option<Vec<Prefix>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MappingFile {
    #[serde(default)]
    addresses: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    services: Vec<ServiceEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceEntry {
    name: Spanned<String>,
    #[serde(default)]
    ports: Vec<Spanned<PortsEntry>>,
    at: Option<Vec<Spanned<String>>>,
}

/// A port, or a range of ports such as `8000-8099`.
#[derive(Deserialize)]
#[serde(untagged)]
enum PortsEntry {
    One(u16),
    Range(String),
}

impl Mapping {
    /// Reads a file according to its extension: YAML, or CSV with the columns `address` and `host`. Any other file has
    /// lines of an address and a name, as in `/etc/hosts`.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, and as [`Mapping::of`] does.
    pub fn read(path: &str) -> Result<Mapping, InputError> {
        Mapping::of(path, &read_text(path)?)
    }

    /// Reads the text of a file with this name.
    ///
    /// # Errors
    ///
    /// Fails at the first invalid line or entry, or if there are too many addresses.
    pub fn of(name: &str, text: &str) -> Result<Mapping, InputError> {
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        match ending.to_ascii_lowercase().as_str() {
            "yaml" | "yml" | "json" => Mapping::of_yaml(name, text),
            "csv" => Mapping::of_csv(name, text),
            _ => Mapping::of_lines(name, text),
        }
    }

    /// Prefixes with their names.
    pub fn addresses(&self) -> impl Iterator<Item = (Prefix, &str)> {
        self.addresses.iter().map(|(prefix, called)| (*prefix, called.name.as_str()))
    }

    /// Names of loopback addresses with their lines. Files in the form of `/etc/hosts` have such lines for the machine
    /// itself, and they are no addresses of the mapping.
    pub fn loopback(&self) -> impl Iterator<Item = (&str, u64)> {
        self.loopback.iter().map(|(name, line)| (name.as_str(), *line))
    }

    /// Services in order of the file.
    pub fn services(&self) -> &[Service] {
        &self.services
    }

    /// Name of the file, for errors.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Checks the names of all addresses with `validate`.
    ///
    /// # Errors
    ///
    /// Fails at the first name that `validate` rejects.
    pub fn check(&self, validate: impl Fn(&str) -> Result<(), String>) -> Result<(), InputError> {
        for called in self.addresses.values() {
            validate(&called.name).map_err(|problem| {
                let error = InputError::new(&self.file, problem).in_field(called.written.as_str());
                called.line.into_iter().fold(error, InputError::at_line)
            })?;
        }
        Ok(())
    }

    fn of_yaml(name: &str, text: &str) -> Result<Mapping, InputError> {
        let file: MappingFile = read_yaml(name, text)?;
        let mut mapping = Mapping { file: name.into(), ..Mapping::default() };
        for (address, called) in &file.addresses {
            let error = |message: String| InputError::new(name, message).in_field("addresses").at(called);
            mapping.add(address, &called.value, Some(called.place.line.into())).map_err(error)?;
        }
        for (number, service) in file.services.iter().enumerate() {
            let field = format!("services[{number}]");
            let error =
                |message: String| InputError::new(name, message).in_field(field.as_str()).at(&service.name);
            let called = valid_name(&service.name.value).map_err(error)?;
            let ports = service.ports.iter().map(|ports| {
                ports
                    .value
                    .range()
                    .map_err(|message| InputError::new(name, message).in_field(field.as_str()).at(ports))
            });
            let ports = ports.collect::<Result<Vec<_>, _>>()?;
            let at = service.at.as_ref().map(|at| {
                let mut prefixes = Vec::new();
                for place in at {
                    let invalid = |message| InputError::new(name, message).in_field(field.as_str()).at(place);
                    prefixes.extend(mapping.prefixes(&place.value).map_err(invalid)?);
                }
                Ok::<_, InputError>(prefixes)
            });
            let at = at.transpose()?;
            if ports.is_empty() && at.is_none() {
                return Err(error("expected `ports`, addresses (`at`), or both".into()));
            }
            mapping.services.push(Service { name: called.to_owned(), ports, at });
        }
        if mapping.addresses.is_empty() && mapping.services.is_empty() {
            return Err(InputError::new(name, "no addresses and no services; expected at least one"));
        }
        Ok(mapping)
    }

    fn of_csv(name: &str, text: &str) -> Result<Mapping, InputError> {
        let mut mapping = Mapping { file: name.into(), ..Mapping::default() };
        let mut table = Table::open(Text::from_bytes(name, text)?, ["address", "host"])?;
        while let Some(row) = table.next_row()? {
            let [address, host] = row.cells;
            mapping
                .add(&address.text(), &host.text(), None)
                .map_err(|message| row.line.error("address", message))?;
        }
        Ok(mapping)
    }

    fn of_lines(name: &str, text: &str) -> Result<Mapping, InputError> {
        let mut mapping = Mapping { file: name.into(), ..Mapping::default() };
        for (line, text) in (1..).zip(text.lines()) {
            let mut words = text.split('#').next().unwrap_or_default().split_whitespace();
            let Some(address) = words.next() else { continue };
            let error = |message: String| InputError::new(name, message).at_line(line);
            let host = words.next().ok_or_else(|| error("expected an address and a name".into()))?;
            // The first name is the host's own name, and the others are aliases. Loopback addresses belong to every
            // machine, so they have no place.
            if address.parse().is_ok_and(|address: IpAddr| address.is_loopback()) {
                mapping.loopback.insert(valid_name(host).map_err(error)?.to_owned(), line);
                continue;
            }
            mapping.add(address, host, Some(line)).map_err(error)?;
        }
        if mapping.addresses.is_empty() {
            return Err(InputError::new(name, "no addresses; expected lines such as `10.0.0.1 r0h0`"));
        }
        Ok(mapping)
    }

    fn add(&mut self, address: &str, name: &str, line: Option<u64>) -> Result<(), String> {
        let prefix: Prefix = address.parse()?;
        let name = valid_name(name)?.to_owned();
        if self.addresses.len() >= MOST {
            return Err(format!("more than {MOST} addresses"));
        }
        let called = AddressName { name, written: excerpt(address), line };
        match self.addresses.insert(prefix, called) {
            Some(before) if before.name != self.addresses[&prefix].name => {
                Err(format!("`{}`: already mapped to `{}`", excerpt(address), excerpt(&before.name)))
            }
            _ => Ok(()),
        }
    }

    /// Prefixes of a mapping entry: an address, a prefix, or the name of known prefixes.
    fn prefixes(&self, place: &str) -> Result<Vec<Prefix>, String> {
        if let Ok(prefix) = place.parse() {
            return Ok(vec![prefix]);
        }
        let of_name = self.addresses.iter().filter(|(_, called)| called.name == place);
        let prefixes: Vec<Prefix> = of_name.map(|(prefix, _)| *prefix).collect();
        if prefixes.is_empty() {
            return Err(format!(
                "`{}`: expected an address, a prefix, or a name from `addresses`",
                excerpt(place)
            ));
        }
        Ok(prefixes)
    }
}

impl PortsEntry {
    fn range(&self) -> Result<RangeInclusive<u16>, String> {
        let (from, to) = match self {
            PortsEntry::One(port) => return Ok(*port..=*port),
            PortsEntry::Range(text) => {
                let message = || format!("`{}`: expected a port or a range such as 8000-8099", excerpt(text));
                let (from, to) = text.split_once('-').ok_or_else(message)?;
                let port = |text: &str| text.trim().parse::<u16>().map_err(|_| message());
                (port(from)?, port(to)?)
            }
        };
        if from > to { Err(format!("{from}-{to}: the first port is above the last")) } else { Ok(from..=to) }
    }
}

impl FromStr for Prefix {
    type Err = String;

    /// The prefix that a text such as `10.0.1.0/24` or `10.0.1.7` names.
    fn from_str(text: &str) -> Result<Prefix, String> {
        let message = || format!("`{}`: expected an address or a prefix such as 10.0.1.0/24", excerpt(text));
        let (address, length) = match text.trim().split_once('/') {
            None => return text.trim().parse().map(Prefix::whole).map_err(|_| message()),
            Some((address, length)) => (address, length),
        };
        let address: IpAddr = address.parse().map_err(|_| message())?;
        length.parse().ok().and_then(|length| Prefix::new(address, length)).ok_or_else(message)
    }
}

/// A name that is valid in lists and matrices.
fn valid_name(name: &str) -> Result<&str, String> {
    let name = name.trim();
    let valid = !name.is_empty()
        && name.len() <= 200
        && !name.contains([',', '"'])
        && !name.contains(char::is_control);
    if valid {
        Ok(name)
    } else {
        Err(format!("`{}`: expected a name without commas and quotes", excerpt(name)))
    }
}
