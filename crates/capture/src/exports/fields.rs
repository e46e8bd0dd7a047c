//! Fields of NetFlow 9 and IPFIX records, and the times in them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use leeward_fabric::Dscp;

/// Seconds from the start of NTP's era in 1900 to 1970.
const NTP_S: i64 = 2_208_988_800;
/// Nanoseconds of a microsecond.
const MICRO: i64 = 1_000;
/// Nanoseconds of a millisecond.
pub const MILLI: i64 = 1_000_000;
/// Nanoseconds of a second.
pub const SECOND: i64 = 1_000_000_000;
/// Enterprise of fields that describe the opposite direction of a connection (RFC 5103).
pub const REVERSE: u32 = 29_305;

/// Field numbers (RFC 7012 and IANA; NetFlow 9 has the same numbers, RFC 3954).
pub mod field {
    pub const OCTETS: u16 = 1;
    pub const PACKETS: u16 = 2;
    pub const PROTOCOL: u16 = 4;
    pub const TRAFFIC_CLASS: u16 = 5;
    pub const SOURCE_PORT: u16 = 7;
    pub const SOURCE_IPV4: u16 = 8;
    pub const IN_INTERFACE: u16 = 10;
    pub const DESTINATION_PORT: u16 = 11;
    pub const DESTINATION_IPV4: u16 = 12;
    pub const OUT_INTERFACE: u16 = 14;
    pub const END_UPTIME: u16 = 21;
    pub const START_UPTIME: u16 = 22;
    pub const SOURCE_IPV6: u16 = 27;
    pub const DESTINATION_IPV6: u16 = 28;
    pub const SAMPLING_INTERVAL: u16 = 34;
    pub const SAMPLER: u16 = 48;
    pub const SAMPLER_INTERVAL: u16 = 50;
    pub const DIRECTION: u16 = 61;
    pub const TOTAL_OCTETS: u16 = 85;
    pub const TOTAL_PACKETS: u16 = 86;
    pub const FORWARDING: u16 = 89;
    pub const LAYER_2_OFFSET: u16 = 102;
    pub const LAYER_2_SECTION: u16 = 104;
    pub const TEMPLATE: u16 = 145;
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
    pub const DURATION_MS: u16 = 161;
    pub const DURATION_US: u16 = 162;
    pub const DSCP: u16 = 195;
    pub const IP_LENGTH: u16 = 224;
    pub const INITIATOR_OCTETS: u16 = 231;
    pub const RESPONDER_OCTETS: u16 = 232;
    pub const FIREWALL_EVENT: u16 = 233;
    pub const INITIATOR_PACKETS: u16 = 298;
    pub const RESPONDER_PACKETS: u16 = 299;
    pub const SELECTOR: u16 = 302;
    pub const PACKET_INTERVAL: u16 = 305;
    pub const PACKET_SPACE: u16 = 306;
    pub const SAMPLE_SIZE: u16 = 309;
    pub const SAMPLE_POPULATION: u16 = 310;
    pub const PROBABILITY: u16 = 311;
    pub const FRAME_SIZE: u16 = 312;
    pub const IP_SECTION: u16 = 313;
    pub const FRAME_SECTION: u16 = 315;
    pub const OBSERVED_S: u16 = 322;
    pub const OBSERVED_MS: u16 = 323;
    pub const OBSERVED_US: u16 = 324;
    pub const OBSERVED_NS: u16 = 325;
    pub const LAYER_2_OCTETS: u16 = 352;
    pub const FRAME_TYPE: u16 = 408;
    pub const SECTION_OFFSET: u16 = 409;
    pub const SECTION_OCTETS: u16 = 410;
}

/// A field of a record.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    /// Enterprise that the number belongs to; 0 for the numbers in [`field`].
    pub enterprise: u32,
    pub number: u16,
    pub bytes: &'a [u8],
}

/// The fields of a record, in their order.
#[derive(Default)]
pub struct Fields<'a>(Vec<Field<'a>>);

impl<'a> Fields<'a> {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn push(&mut self, field: Field<'a>) {
        self.0.push(field);
    }

    /// The value of a field of an enterprise; a field without bytes has no value.
    pub fn of(&self, enterprise: u32, number: u16) -> Option<&'a [u8]> {
        let found = |field: &&Field<'_>| {
            (field.number, field.enterprise) == (number, enterprise) && !field.bytes.is_empty()
        };
        self.0.iter().find(found).map(|field| field.bytes)
    }

    pub fn get(&self, number: u16) -> Option<&'a [u8]> {
        self.of(0, number)
    }

    /// A whole number. Exporters choose its length (RFC 7011 section 6.2).
    pub fn number(&self, number: u16) -> Option<u64> {
        to_number(self.get(number)?)
    }

    /// The code point of the packets.
    pub fn dscp(&self) -> Option<Dscp> {
        code_point(self.get(field::DSCP), self.get(field::TRAFFIC_CLASS))
    }

    /// The code point of the opposite direction.
    pub fn reverse_dscp(&self) -> Option<Dscp> {
        code_point(self.of(REVERSE, field::DSCP), self.of(REVERSE, field::TRAFFIC_CLASS))
    }

    /// The number of the opposite direction.
    pub fn reverse(&self, number: u16) -> Option<u64> {
        to_number(self.of(REVERSE, number)?)
    }

    pub fn float(&self, number: u16) -> Option<f64> {
        match *self.get(number)? {
            [a, b, c, d] => Some(f32::from_be_bytes([a, b, c, d]).into()),
            [a, b, c, d, e, f, g, h] => Some(f64::from_be_bytes([a, b, c, d, e, f, g, h])),
            _ => None,
        }
    }

    pub fn address(&self, ipv4: u16, ipv6: u16) -> Option<IpAddr> {
        let four = self.get(ipv4).and_then(|bytes| Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)));
        let six = self.get(ipv6).and_then(|bytes| Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)));
        let (four, six) = (four.map(IpAddr::from), six.map(IpAddr::from));
        // A record with fields for both address families sets the unused field to 0.
        four.filter(|address| !address.is_unspecified())
            .or(six.filter(|a| !a.is_unspecified()))
            .or(four)
            .or(six)
    }

    /// A time since 1970 in nanoseconds, from a number of units.
    pub fn time(&self, number: u16, unit_ns: i64) -> Option<i64> {
        i64::try_from(self.number(number)?).ok()?.checked_mul(unit_ns)
    }

    /// A time since 1970 in nanoseconds, from a time in the format of NTP: seconds since 1900 and their fraction.
    pub fn ntp(&self, number: u16) -> Option<i64> {
        let bytes = <[u8; 8]>::try_from(self.get(number)?).ok()?;
        let time = u64::from_be_bytes(bytes);
        let fraction = ((time & 0xffff_ffff) * SECOND as u64) >> 32;
        Some(((time >> 32) as i64 - NTP_S) * SECOND + fraction as i64)
    }
}

/// A code point from its own field, or from the field of the byte that has it.
fn code_point(point: Option<&[u8]>, class: Option<&[u8]>) -> Option<Dscp> {
    let byte = |bytes: &[u8]| to_number(bytes).and_then(|number| u8::try_from(number).ok());
    point.and_then(byte).and_then(Dscp::new).or(class.and_then(byte).map(Dscp::of_traffic_class))
}

/// A whole number from its bytes; `None` if it does not fit 64 bits.
pub fn to_number(bytes: &[u8]) -> Option<u64> {
    let zeros = bytes.len().saturating_sub(8);
    let (leading, rest) = bytes.split_at(zeros);
    let number = rest.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    leading.iter().all(|&byte| byte == 0).then_some(number)
}

/// Time after which an uptime of 32 bits in milliseconds wraps around, in nanoseconds.
const UPTIME_WRAP: i64 = (1 << 32) * MILLI;

/// The clock of an exporter, from a datagram's header.
#[derive(Clone, Copy)]
pub struct Clock {
    /// Time of sending, in nanoseconds since 1970.
    pub sent_ns: i64,
    /// Uptime of the exporter, in milliseconds; IPFIX does not state it.
    pub uptime_ms: Option<u32>,
}

impl Clock {
    /// The time when the exporter had this uptime in milliseconds. The uptime wraps around after 49.7 days.
    pub fn at_uptime(self, uptime_ms: u64) -> Option<i64> {
        let age = self.uptime_ms?.wrapping_sub(u32::try_from(uptime_ms).ok()?);
        Some(self.sent_ns - i64::from(age) * MILLI)
    }
}

/// One end of a record's duration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// The record does not state it.
    Unknown,
    /// A time in nanoseconds since 1970.
    At(i64),
    /// Uptime of the exporter in milliseconds. Its start may be stated later, in options.
    Uptime(u64),
}

impl Moment {
    /// The time in nanoseconds since 1970, for an exporter that started at `boot_ns` and sent the record at `sent_ns`.
    pub fn time(self, boot_ns: Option<i64>, sent_ns: i64) -> Option<i64> {
        match self {
            Moment::Unknown => None,
            Moment::At(time) => Some(time),
            Moment::Uptime(uptime) => {
                let time = boot_ns?.checked_add(i64::try_from(uptime).ok()?.checked_mul(MILLI)?)?;
                if uptime > u64::from(u32::MAX) {
                    return Some(time);
                }
                // An uptime of 32 bits wraps around: of all times, the nearest to the time of sending.
                let behind = sent_ns.checked_sub(time)?;
                let wraps = behind.checked_add(behind.signum() * (UPTIME_WRAP / 2))? / UPTIME_WRAP;
                time.checked_add(wraps * UPTIME_WRAP)
            }
        }
    }
}

/// Start and end of a record.
pub fn moments(fields: &Fields<'_>, clock: Clock) -> (Moment, Moment) {
    let start = [field::START_MS, field::START_S, field::START_US, field::START_NS];
    let start = moment(fields, clock, start, field::START_UPTIME, field::START_DELTA_US);
    let end = [field::END_MS, field::END_S, field::END_US, field::END_NS];
    let end = moment(fields, clock, end, field::END_UPTIME, field::END_DELTA_US);
    match (start, end) {
        (Moment::At(from), Moment::Unknown) => {
            let lasted = fields.time(field::DURATION_MS, MILLI);
            let lasted = lasted.or_else(|| fields.time(field::DURATION_US, MICRO));
            let end = lasted.and_then(|lasted| from.checked_add(lasted));
            (start, end.map_or(Moment::Unknown, Moment::At))
        }
        // Sampled packets have one time.
        (Moment::Unknown, Moment::Unknown) => {
            let seen = [field::OBSERVED_MS, field::OBSERVED_S, field::OBSERVED_US, field::OBSERVED_NS];
            (absolute(fields, seen).map_or(Moment::Unknown, Moment::At), Moment::Unknown)
        }
        stated => stated,
    }
}

/// A time from several alternative fields: absolute ones, an uptime, and microseconds before the time of sending.
fn moment(fields: &Fields<'_>, clock: Clock, times: [u16; 4], up: u16, before: u16) -> Moment {
    if let Some(time) = absolute(fields, times) {
        return Moment::At(time);
    }
    if let Some(uptime) = fields.number(up) {
        let stated = Moment::Uptime(uptime).time(fields.time(field::BOOT_MS, MILLI), clock.sent_ns);
        return stated.or_else(|| clock.at_uptime(uptime)).map_or(Moment::Uptime(uptime), Moment::At);
    }
    let before = fields.time(before, MICRO).and_then(|before| clock.sent_ns.checked_sub(before));
    before.map_or(Moment::Unknown, Moment::At)
}

/// A time in milliseconds, in seconds, or in either of two fields in the format of NTP.
fn absolute(fields: &Fields<'_>, [ms, s, us, ns]: [u16; 4]) -> Option<i64> {
    let whole = fields.time(ms, MILLI).or_else(|| fields.time(s, SECOND));
    whole.or_else(|| fields.ntp(us)).or_else(|| fields.ntp(ns))
}
