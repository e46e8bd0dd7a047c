//! Differentiated services code points (RFC 2474): the mark by which switches put packets into queues.

use std::fmt;
use std::str::FromStr;

/// Code points with names: RFC 2474 (CS), 2597 (AF), 3246 (EF), 5865 (VOICE-ADMIT), 8622 (LE).
const NAMES: [(&str, u8); 24] = [
    ("default", 0),
    ("cs0", 0),
    ("le", 1),
    ("cs1", 8),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("cs2", 16),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("cs3", 24),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("cs4", 32),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("cs5", 40),
    ("voice-admit", 44),
    ("ef", 46),
    ("cs6", 48),
    ("cs7", 56),
];
/// Largest code point: the field has six bits.
const LARGEST: u8 = 63;

/// A code point, from 0 to 63.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Dscp(u8);

impl Dscp {
    /// All code points, in order.
    pub fn all() -> impl ExactSizeIterator<Item = Dscp> {
        (0..=LARGEST).map(Dscp)
    }

    /// The code point with this number; `None` above 63.
    pub fn new(code: u8) -> Option<Dscp> {
        (code <= LARGEST).then_some(Dscp(code))
    }

    /// The code point in the byte of an IP header that also has the two bits of ECN.
    pub fn of_traffic_class(byte: u8) -> Dscp {
        Dscp(byte >> 2)
    }

    /// Number of the code point.
    pub fn code(self) -> u8 {
        self.0
    }

    /// Value of the byte in the IP header (`IP_TOS`, `IPV6_TCLASS`): the code point above the two bits of ECN, which
    /// belong to TCP.
    pub fn traffic_class(self) -> u8 {
        self.0 << 2
    }

    /// Name of the code point, such as `ef`; its number if it has no name.
    pub fn name(self) -> String {
        let named = NAMES.iter().find(|&&(_, code)| code == self.0);
        named.map_or_else(|| self.0.to_string(), |(name, _)| (*name).to_owned())
    }
}

impl FromStr for Dscp {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Dscp, &'static str> {
        let named = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|&(_, code)| code);
        let number = || text.parse().ok().filter(|&code: &u8| code <= LARGEST && !text.starts_with('+'));
        let code = named.or_else(number);
        code.map(Dscp).ok_or("expected a code point from 0 to 63 or its name, such as cs6, af41 or ef")
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_from_0_to_63_are_code_points_and_nothing_else_is() {
        for code in 0..=LARGEST {
            assert_eq!(code.to_string().parse(), Ok(Dscp(code)));
            assert_eq!(Dscp(code).traffic_class() & 3, 0, "the bits of ECN stay free");
            for ecn in 0..=3 {
                assert_eq!(Dscp::of_traffic_class(Dscp(code).traffic_class() | ecn), Dscp(code));
            }
            assert_eq!(Dscp(code).name().parse(), Ok(Dscp(code)));
            assert_eq!(Dscp::new(code), Some(Dscp(code)));
        }
        for (name, code) in NAMES {
            assert_eq!(name.parse(), Ok(Dscp(code)));
            assert_eq!(name.to_uppercase().parse(), Ok(Dscp(code)));
        }
        // AFxy is 8x + 2y (RFC 2597), CSx is 8x (RFC 2474).
        for (class, drop) in (1..=4).flat_map(|class| (1..=3).map(move |drop| (class, drop))) {
            assert_eq!(format!("af{class}{drop}").parse(), Ok(Dscp(8 * class + 2 * drop)));
        }
        for class in 0..=7 {
            assert_eq!(format!("cs{class}").parse(), Ok(Dscp(8 * class)));
        }
        assert_eq!(Dscp::new(64), None);
        assert_eq!(Dscp::all().len(), 64);
        for invalid in ["64", "-1", "+1", "0x2e", "af44", "cs8", "", " ef", "300", "ef\n"] {
            assert!(invalid.parse::<Dscp>().is_err(), "`{invalid}`");
        }
    }
}
