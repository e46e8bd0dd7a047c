//! Whose an address is: hosts, racks or services, from a mapping of addresses and prefixes.
//!
//! The longest prefix decides, an address being the longest of all.

mod file;
mod services;

use std::collections::HashMap;
use std::net::IpAddr;

use foldhash::fast::FixedState;

pub use file::Mapping;
use services::Services;

/// What a matrix is by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// Addresses themselves; needs no mapping.
    Address,
    /// What the mapping calls them: hosts, as a rule.
    Host,
    /// Racks: what the mapping calls them, or the rack of the host that it names.
    Rack,
    /// Services, by port and by where they are.
    Service,
}

impl By {
    /// All of them.
    pub const ALL: [By; 4] = [By::Address, By::Host, By::Rack, By::Service];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            By::Address => "address",
            By::Host => "host",
            By::Rack => "rack",
            By::Service => "service",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<By> {
        By::ALL.into_iter().find(|by| by.name() == name)
    }
}

/// The name of clients of services, whatever their address.
pub const OTHERS: &str = "others";

/// Places are numbered in order of their first appearance.
pub type PlaceId = u32;

/// Addresses as numbers, with how many of the first bits count; IPv4 and IPv6 apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Prefix {
    v6: bool,
    bits: u128,
    length: u8,
}

impl Prefix {
    /// The prefix of `length` bits that `address` is in; `None` if the address has not so many.
    pub fn new(address: IpAddr, length: u8) -> Option<Prefix> {
        let (v6, bits, most) = numbered(address);
        (length <= most).then(|| Prefix { v6, bits: bits & mask(length), length })
    }

    /// The prefix of one address.
    pub fn whole(address: IpAddr) -> Prefix {
        let (v6, bits, length) = numbered(address);
        Prefix { v6, bits, length }
    }
}

/// The first bits of an address stand first in the number; an IPv4 address within IPv6 is one of IPv4.
fn numbered(address: IpAddr) -> (bool, u128, u8) {
    match address.to_canonical() {
        IpAddr::V4(address) => (false, u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (true, address.to_bits(), 128),
    }
}

fn mask(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

/// Prefixes with what belongs to each.
#[derive(Default)]
pub struct Prefixes<T> {
    by_prefix: HashMap<Prefix, T, FixedState>,
    /// Lengths that there are of each kind, the longest first.
    lengths: [Vec<u8>; 2],
}

impl<T> Prefixes<T> {
    /// Adds a prefix; gives back what it had before.
    pub fn insert(&mut self, prefix: Prefix, what: T) -> Option<T> {
        let lengths = &mut self.lengths[usize::from(prefix.v6)];
        if let Err(at) = lengths.binary_search_by(|length| prefix.length.cmp(length)) {
            lengths.insert(at, prefix.length);
        }
        self.by_prefix.insert(prefix, what)
    }

    /// What belongs to the longest prefix that the address is in.
    pub fn find(&self, address: IpAddr) -> Option<&T> {
        let (v6, bits, _) = numbered(address);
        let prefix = |length: u8| Prefix { v6, bits: bits & mask(length), length };
        self.lengths[usize::from(v6)].iter().find_map(|&length| self.by_prefix.get(&prefix(length)))
    }
}

/// Addresses that were looked up and are remembered.
const MOST_REMEMBERED: usize = 1 << 18;

/// Turns the ends of a flow into places.
pub struct Places {
    names: Vec<String>,
    numbers: HashMap<String, PlaceId>,
    kind: Kind,
    remembered: HashMap<IpAddr, Option<PlaceId>, FixedState>,
}

enum Kind {
    Addresses,
    /// Nothing is for addresses whose name is no place of this kind: a shorter prefix must not claim them.
    Mapped(Prefixes<Option<PlaceId>>),
    Services(Services),
}

impl Places {
    /// Each address is a place of its own.
    pub fn addresses() -> Places {
        Places::new(Kind::Addresses)
    }

    /// Places by what a mapping calls addresses, once `name` has turned that into the name of a place; addresses that it
    /// turns into nothing belong nowhere.
    pub fn mapped(mapping: &Mapping, name: impl Fn(&str) -> Option<String>) -> Places {
        let mut places = Places::new(Kind::Addresses);
        let mut prefixes = Prefixes::default();
        for (prefix, called) in mapping.addresses() {
            prefixes.insert(prefix, name(called).map(|name| places.number(&name)));
        }
        places.kind = Kind::Mapped(prefixes);
        places
    }

    /// Places by the services of a mapping.
    pub fn services(mapping: &Mapping) -> Places {
        let mut places = Places::new(Kind::Addresses);
        places.number(OTHERS);
        let services = Services::new(mapping, |name| places.number(name));
        places.kind = Kind::Services(services);
        places
    }

    fn new(kind: Kind) -> Places {
        Places { names: Vec::new(), numbers: HashMap::new(), kind, remembered: HashMap::default() }
    }

    /// The names of all places.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether ports tell places apart.
    pub fn need_ports(&self) -> bool {
        matches!(self.kind, Kind::Services(_))
    }

    /// The places of the ends of a flow; nothing for an end that belongs nowhere.
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
        if let Some(&place) = self.remembered.get(&address) {
            return place;
        }
        let place = match &self.kind {
            Kind::Addresses => Some(self.number(&address.to_canonical().to_string())),
            Kind::Mapped(prefixes) => prefixes.find(address).copied().flatten(),
            Kind::Services(_) => None,
        };
        if self.remembered.len() >= MOST_REMEMBERED {
            self.remembered.clear();
        }
        self.remembered.insert(address, place);
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
