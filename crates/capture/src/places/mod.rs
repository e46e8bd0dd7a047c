//! Maps addresses to places: hosts, racks or services, from a mapping of addresses and prefixes.
//!
//! The longest matching prefix decides; a single address is the longest possible prefix.

mod file;
mod services;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use foldhash::fast::FixedState;

pub use file::Mapping;
use services::Services;

/// Kind of the places of a matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlaceKind {
    /// Single addresses; needs no mapping.
    Address,
    /// Names of the mapping: usually hosts.
    Host,
    /// Racks: names of the mapping, or the racks of the hosts it names.
    Rack,
    /// Services, by port and by address.
    Service,
}

impl PlaceKind {
    /// All kinds.
    pub const ALL: [PlaceKind; 4] =
        [PlaceKind::Address, PlaceKind::Host, PlaceKind::Rack, PlaceKind::Service];

    /// Name of the kind in settings.
    pub fn name(self) -> &'static str {
        match self {
            PlaceKind::Address => "address",
            PlaceKind::Host => "host",
            PlaceKind::Rack => "rack",
            PlaceKind::Service => "service",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<PlaceKind> {
        PlaceKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Name of all clients of services, regardless of their addresses.
pub const OTHERS: &str = "others";

/// Number of a place, in order of first appearance.
pub type PlaceId = u32;

/// Address prefix: the leading bits of an address, and their number. IPv4 and IPv6 are separate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Prefix {
    v6: bool,
    bits: u128,
    length: u8,
}

impl Prefix {
    /// The prefix of `length` bits of `address`; `None` if the address has fewer bits.
    pub fn new(address: IpAddr, length: u8) -> Option<Prefix> {
        let (v6, bits, most) = to_bits(address);
        (length <= most).then(|| Prefix { v6, bits: bits & mask(length), length })
    }

    /// The prefix of a single address.
    pub fn whole(address: IpAddr) -> Prefix {
        let (v6, bits, length) = to_bits(address);
        Prefix { v6, bits, length }
    }

    /// The address, if the prefix has only one.
    pub fn single(self) -> Option<IpAddr> {
        match (self.v6, self.length) {
            (false, 32) => Some(IpAddr::V4(Ipv4Addr::from_bits((self.bits >> 96) as u32))),
            (true, 128) => Some(IpAddr::V6(Ipv6Addr::from_bits(self.bits))),
            _ => None,
        }
    }
}

/// Converts an address to its family (true for IPv6), its bits aligned to the highest bit of the number, and their
/// count. An IPv4 address mapped into IPv6 is an IPv4 address.
fn to_bits(address: IpAddr) -> (bool, u128, u8) {
    match address.to_canonical() {
        IpAddr::V4(address) => (false, u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (true, address.to_bits(), 128),
    }
}

fn mask(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

/// Prefixes with their values.
#[derive(Default)]
pub struct Prefixes<T> {
    by_prefix: HashMap<Prefix, T, FixedState>,
    /// Existing lengths for IPv4 and IPv6, the longest first.
    lengths: [Vec<u8>; 2],
}

impl<T> Prefixes<T> {
    /// Adds a prefix; returns its previous value.
    pub fn insert(&mut self, prefix: Prefix, value: T) -> Option<T> {
        let lengths = &mut self.lengths[usize::from(prefix.v6)];
        if let Err(index) = lengths.binary_search_by(|length| prefix.length.cmp(length)) {
            lengths.insert(index, prefix.length);
        }
        self.by_prefix.insert(prefix, value)
    }

    /// The value of the longest prefix that contains the address.
    pub fn find(&self, address: IpAddr) -> Option<&T> {
        let (v6, bits, _) = to_bits(address);
        let prefix = |length: u8| Prefix { v6, bits: bits & mask(length), length };
        self.lengths[usize::from(v6)].iter().find_map(|&length| self.by_prefix.get(&prefix(length)))
    }
}

/// Largest number of addresses in the look-up cache.
const MOST_CACHED: usize = 1 << 18;

/// Maps the endpoints of a flow to places.
pub struct Places {
    names: Vec<String>,
    numbers: HashMap<String, PlaceId>,
    kind: Kind,
    cache: HashMap<IpAddr, Option<PlaceId>, FixedState>,
}

enum Kind {
    Addresses,
    /// `None` for prefixes whose name is not a place of this kind. Such a prefix still hides shorter prefixes, which
    /// must not match instead.
    Mapped(Prefixes<Option<PlaceId>>),
    Services(Services),
}

impl Places {
    /// Creates places that are single addresses.
    pub fn addresses() -> Places {
        Places::new(Kind::Addresses)
    }

    /// Takes places from the names of a mapping. `name` converts each name to the name of a place. Addresses for which
    /// it returns `None` have no place.
    pub fn mapped(mapping: &Mapping, name: impl Fn(&str) -> Option<String>) -> Places {
        let mut places = Places::new(Kind::Addresses);
        let mut prefixes = Prefixes::default();
        for (prefix, called) in mapping.addresses() {
            prefixes.insert(prefix, name(called).map(|name| places.number(&name)));
        }
        places.kind = Kind::Mapped(prefixes);
        places
    }

    /// Takes places from the services of a mapping.
    pub fn services(mapping: &Mapping) -> Places {
        let mut places = Places::new(Kind::Addresses);
        places.number(OTHERS);
        let services = Services::new(mapping, |name| places.number(name));
        places.kind = Kind::Services(services);
        places
    }

    fn new(kind: Kind) -> Places {
        Places { names: Vec::new(), numbers: HashMap::new(), kind, cache: HashMap::default() }
    }

    /// Names of all places.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// True if places depend on ports.
    pub fn needs_ports(&self) -> bool {
        matches!(self.kind, Kind::Services(_))
    }

    /// Places of the endpoints of a flow; `None` for an endpoint without a place.
    #[inline]
    pub fn of(
        &mut self,
        ends: (IpAddr, IpAddr),
        ports: Option<(u16, u16)>,
    ) -> (Option<PlaceId>, Option<PlaceId>) {
        if let Kind::Services(services) = &self.kind {
            return services.of(ends, ports);
        }
        (self.place(ends.0), self.place(ends.1))
    }

    #[inline]
    fn place(&mut self, address: IpAddr) -> Option<PlaceId> {
        if let Some(&place) = self.cache.get(&address) {
            return place;
        }
        let place = match &self.kind {
            Kind::Addresses => Some(self.number(&address.to_canonical().to_string())),
            Kind::Mapped(prefixes) => prefixes.find(address).copied().flatten(),
            Kind::Services(_) => None,
        };
        if self.cache.len() >= MOST_CACHED {
            self.cache.clear();
        }
        self.cache.insert(address, place);
        place
    }

    fn number(&mut self, name: &str) -> PlaceId {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len() as PlaceId;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }
}
