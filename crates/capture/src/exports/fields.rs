//! Fields of NetFlow 9 and IPFIX records, and the times in them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use netflow_parser::variable_versions::field_value::DurationValue;
use netflow_parser::variable_versions::ipfix::lookup::IPFixField;
use netflow_parser::{DataNumber, FieldValue, IpfixFieldPair, V9FieldPair};

/// Seconds from the start of NTP's era in 1900 to 1970.
const NTP_S: i64 = 2_208_988_800;
/// Nanoseconds of a millisecond.
pub const MILLI: i64 = 1_000_000;
/// Nanoseconds of a second.
pub const SECOND: i64 = 1_000_000_000;

/// Field numbers (RFC 7012 and IANA; NetFlow 9 has the same numbers, RFC 3954).
pub mod field {
    pub const OCTETS: u16 = 1;
    pub const PACKETS: u16 = 2;
    pub const SOURCE_PORT: u16 = 7;
    pub const SOURCE_IPV4: u16 = 8;
    pub const DESTINATION_PORT: u16 = 11;
    pub const DESTINATION_IPV4: u16 = 12;
    pub const END_UPTIME: u16 = 21;
    pub const START_UPTIME: u16 = 22;
    pub const SOURCE_IPV6: u16 = 27;
    pub const DESTINATION_IPV6: u16 = 28;
    pub const SAMPLING_INTERVAL: u16 = 34;
    pub const SAMPLER: u16 = 48;
    pub const SAMPLER_INTERVAL: u16 = 50;
    pub const START_S: u16 = 150;
    pub const END_S: u16 = 151;
    pub const START_MS: u16 = 152;
    pub const END_MS: u16 = 153;
    pub const START_US: u16 = 154;
    pub const END_US: u16 = 155;
    pub const START_NS: u16 = 156;
    pub const END_NS: u16 = 157;
    pub const START_DELTA_US: u16 = 158;
    pub const END_DELTA_US: u16 = 159;
    pub const BOOT_MS: u16 = 160;
    pub const INITIATOR_OCTETS: u16 = 231;
    pub const RESPONDER_OCTETS: u16 = 232;
    pub const INITIATOR_PACKETS: u16 = 298;
    pub const RESPONDER_PACKETS: u16 = 299;
    pub const SELECTOR: u16 = 302;
    pub const PACKET_INTERVAL: u16 = 305;
    pub const PACKET_SPACE: u16 = 306;
    pub const SAMPLE_SIZE: u16 = 309;
    pub const SAMPLE_POPULATION: u16 = 310;
    pub const PROBABILITY: u16 = 311;
    pub const LAYER_2_OCTETS: u16 = 352;
}

/// The fields of a record, by number. Enterprise-specific fields are left out.
pub struct Fields<'a>(Vec<(u16, &'a FieldValue)>);

impl<'a> Fields<'a> {
    pub fn of_v9(pairs: &'a [V9FieldPair]) -> Fields<'a> {
        Fields(pairs.iter().map(|(field, value)| (u16::from(*field), value)).collect())
    }

    pub fn of_ipfix(pairs: &'a [IpfixFieldPair]) -> Fields<'a> {
        let number = |field: &IPFixField| match field {
            IPFixField::IANA(field) => Some(number_of(*field)),
            _ => None,
        };
        Fields(pairs.iter().filter_map(|(field, value)| Some((number(field)?, value))).collect())
    }

    pub fn get(&self, number: u16) -> Option<&'a FieldValue> {
        self.0.iter().find(|(found, _)| *found == number).map(|(_, value)| *value)
    }

    pub fn number(&self, number: u16) -> Option<u64> {
        match self.get(number)? {
            // The value has a length for which the library has no type. Exporters may choose such lengths (RFC 7011
            // section 6.2).
            FieldValue::DataNumber(DataNumber::Vec(bytes)) | FieldValue::Vec(bytes) if bytes.len() <= 8 => {
                Some(bytes.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
            }
            value => value.as_u64(),
        }
    }

    pub fn float(&self, number: u16) -> Option<f64> {
        match self.get(number)? {
            FieldValue::Float64(value) => Some(*value),
            _ => None,
        }
    }

    pub fn address(&self, ipv4: u16, ipv6: u16) -> Option<IpAddr> {
        let found = |number| match self.get(number)? {
            FieldValue::Ip4Addr(address) => Some(IpAddr::from(*address)),
            FieldValue::Ip6Addr(address) => Some(IpAddr::from(*address)),
            _ => None,
        };
        // A record with fields for both address families sets the unused field to 0.
        let (four, six) = (found(ipv4), found(ipv6));
        four.filter(|address| !address.is_unspecified())
            .or(six.filter(|a| !a.is_unspecified()))
            .or(four)
            .or(six)
    }

    /// A time since 1970 in nanoseconds.
    pub fn time(&self, number: u16, unit_ns: i64) -> Option<i64> {
        match self.get(number)? {
            FieldValue::Duration(
                DurationValue::MicrosNtp { seconds, fraction }
                | DurationValue::NanosNtp { seconds, fraction },
            ) => {
                let fraction = (u64::from(*fraction) * SECOND as u64) >> 32;
                Some((i64::from(*seconds) - NTP_S) * SECOND + fraction as i64)
            }
            // The library gives durations in milliseconds.
            FieldValue::Duration(_) => i64::try_from(self.number(number)?).ok()?.checked_mul(MILLI),
            _ => i64::try_from(self.number(number)?).ok()?.checked_mul(unit_ns),
        }
    }
}

/// Number of a field, which the library gives by name.
fn number_of(field: netflow_parser::variable_versions::ipfix::lookup::IANAIPFixField) -> u16 {
    use netflow_parser::variable_versions::ipfix::lookup::IANAIPFixField as Iana;
    use std::sync::LazyLock;
    static NUMBERS: LazyLock<BTreeMap<Iana, u16>> =
        LazyLock::new(|| (0..=600).map(|number| (Iana::from(number), number)).collect());
    match field {
        Iana::Unknown(number) => number,
        known => NUMBERS.get(&known).copied().unwrap_or(u16::MAX),
    }
}

/// The clock of an exporter, from a datagram's header.
#[derive(Clone, Copy)]
pub struct Clock {
    /// Time of sending, in nanoseconds since 1970.
    pub sent_ns: i64,
    /// Uptime of the exporter, in milliseconds; IPFIX does not state it.
    pub uptime_ms: Option<u32>,
    /// Start of the exporter, in nanoseconds since 1970; IPFIX may state it in options.
    pub boot_ns: Option<i64>,
}

impl Clock {
    /// The time when the exporter had this uptime in milliseconds. The uptime wraps around after 49.7 days.
    pub fn at_uptime(self, uptime_ms: u64) -> Option<i64> {
        if let Some(boot) = self.boot_ns {
            return boot.checked_add(i64::try_from(uptime_ms).ok()?.checked_mul(MILLI)?);
        }
        let age = self.uptime_ms?.wrapping_sub(u32::try_from(uptime_ms).ok()?);
        Some(self.sent_ns - i64::from(age) * MILLI)
    }
}

/// Start of a record.
pub fn start(fields: &Fields<'_>, clock: Clock) -> Option<i64> {
    let absolute =
        [(field::START_MS, MILLI), (field::START_S, SECOND), (field::START_US, 0), (field::START_NS, 0)];
    moment(fields, clock, absolute, field::START_UPTIME, field::START_DELTA_US)
}

/// End of a record.
pub fn end(fields: &Fields<'_>, clock: Clock) -> Option<i64> {
    let absolute = [(field::END_MS, MILLI), (field::END_S, SECOND), (field::END_US, 0), (field::END_NS, 0)];
    moment(fields, clock, absolute, field::END_UPTIME, field::END_DELTA_US)
}

/// A time from several alternative fields.
fn moment(fields: &Fields<'_>, clock: Clock, absolute: [(u16, i64); 4], up: u16, before: u16) -> Option<i64> {
    if let Some(time) = absolute.into_iter().find_map(|(number, unit)| fields.time(number, unit)) {
        return Some(time);
    }
    if let Some(uptime) = fields.number(up) {
        let boot_ns = fields.time(field::BOOT_MS, MILLI).or(clock.boot_ns);
        return Clock { boot_ns, ..clock }.at_uptime(uptime);
    }
    let before = i64::try_from(fields.number(before)?).ok()?.checked_mul(1_000)?;
    clock.sent_ns.checked_sub(before)
}
