//! Readings of classes over netlink. The program `tc` shows them as text whose rates are rounded, and as JSON only in later
//! versions.

use std::collections::BTreeMap;
use std::io;

use netlink_packet_core::{
    DefaultNla, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload, Nla, NlasIterator,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption, TcStats2};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use crate::tc::ClassCounters;
use crate::tree::{Class, HANDLE};

/// Maximum length of a netlink datagram: the kernel fills pages of at most 32 KiB.
const LONGEST: usize = 32 << 10;
/// Attributes of HTB (`linux/pkt_sched.h`).
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
/// Offsets of 32-bit numbers in `struct tc_htb_opt`, and its length.
const RATE: usize = 8;
const CEIL: usize = 20;
const BUFFER: usize = 24;
const CBUFFER: usize = 28;
const LEVEL: usize = 36;
const PRIO: usize = 40;
const LENGTH: usize = 44;
/// Length of a tick of the packet scheduler, in nanoseconds (`PSCHED_SHIFT`).
const TICK: u128 = 64;
const NS_PER_S: u128 = 1_000_000_000;

/// The enforcer's classes on an interface, by their minor numbers, with their counters.
pub(crate) type Classes = BTreeMap<u16, Reading>;

/// What the kernel says of a class.
type Reading = (Class, ClassCounters);

/// Reads the enforcer's classes on the interface with this index, in the network namespace of the calling thread.
///
/// # Errors
/// An error of the kernel, or for a class of HTB that is not understood.
pub(crate) fn read(index: u32) -> io::Result<Classes> {
    let socket = Socket::new(NETLINK_ROUTE)?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let mut message = TcMessage::default();
    message.header.index = i32::try_from(index).map_err(io::Error::other)?;
    let mut request =
        NetlinkMessage::new(header, NetlinkPayload::from(RouteNetlinkMessage::GetTrafficClass(message)));
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let mut classes = Classes::new();
    loop {
        let mut part = Vec::with_capacity(LONGEST);
        match socket.recv(&mut part, 0) {
            Ok(_) => {}
            // A signal, which the enforcer's loop takes.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if take(&part, &mut classes)? {
            return Ok(classes);
        }
    }
}

/// Processes one datagram of a reply; returns true if it was the last.
fn take(mut part: &[u8], classes: &mut Classes) -> io::Result<bool> {
    while let Some((length, _)) = part.split_first_chunk() {
        let length = (u32::from_ne_bytes(*length) as usize).clamp(4, part.len());
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&part[..length]);
        match message.map(|message| message.payload) {
            Ok(NetlinkPayload::Done(_)) => return Ok(true),
            Ok(NetlinkPayload::Error(error)) => return Err(error.to_io()),
            Ok(NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewTrafficClass(message))) => {
                classes.extend(class(&message).map_err(io::Error::other)?);
            }
            // Classes of other kinds may have attributes that the library does not know.
            _ => {}
        }
        // Messages begin at multiples of four bytes.
        part = part.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// A class of the enforcer; `None` for one of another kind or qdisc.
fn class(message: &TcMessage) -> Result<Option<(u16, Reading)>, String> {
    let (mut is_htb, mut options, mut counters) = (false, None, ClassCounters::default());
    for attribute in &message.attributes {
        match attribute {
            TcAttribute::Kind(kind) => is_htb = kind == "htb",
            TcAttribute::Options(list) => {
                options = list.iter().find_map(|option| match option {
                    TcOption::Other(nested) => Some(value(nested)),
                    _ => None,
                });
            }
            TcAttribute::Stats2(statistics) => statistics.iter().for_each(|part| count(part, &mut counters)),
            _ => {}
        }
    }
    let TcHandle { major, minor } = message.header.handle;
    if !is_htb || major != HANDLE || minor == 0 {
        return Ok(None);
    }
    let parent = match message.header.parent {
        TcHandle::ROOT => 0,
        TcHandle { major: HANDLE, minor } => minor,
        TcHandle { major, minor } => return Err(format!("class of another qdisc: {major:x}:{minor:x}")),
    };
    let options = options.ok_or_else(|| format!("class {major:x}:{minor:x} has no options"))?;
    let class =
        read_options(parent, &options).ok_or_else(|| format!("class {major:x}:{minor:x}: broken options"))?;
    Ok(Some((minor, (class, counters))))
}

fn count(part: &TcStats2, counters: &mut ClassCounters) {
    match part {
        TcStats2::Basic(basic) => {
            (counters.bytes, counters.packets) = (basic.bytes, u64::from(basic.packets));
        }
        TcStats2::Queue(queue) => {
            (counters.drops, counters.overlimits) = (u64::from(queue.drops), u64::from(queue.overlimits));
            (counters.backlog, counters.waiting) = (u64::from(queue.backlog), u64::from(queue.qlen));
        }
        _ => {}
    }
}

/// Content of an attribute.
fn value(attribute: &DefaultNla) -> Vec<u8> {
    let mut value = vec![0; attribute.value_len()];
    attribute.emit_value(&mut value);
    value
}

/// Options of a class of HTB; `None` if they are not understood.
fn read_options(parent: u16, options: &[u8]) -> Option<Class> {
    let (mut parameters, mut rate, mut ceil) = (None, None, None);
    for attribute in NlasIterator::new(options) {
        let attribute = attribute.ok()?;
        let long = || <[u8; 8]>::try_from(attribute.value()).ok().map(u64::from_ne_bytes);
        match attribute.kind() {
            TCA_HTB_PARMS => parameters = Some(attribute.value().to_vec()),
            TCA_HTB_RATE64 => rate = long(),
            TCA_HTB_CEIL64 => ceil = long(),
            _ => {}
        }
    }
    let parameters = parameters.filter(|parameters| parameters.len() >= LENGTH)?;
    let number = |offset: usize| {
        let bytes = parameters.get(offset..offset + 4)?;
        <[u8; 4]>::try_from(bytes).ok().map(u32::from_ne_bytes)
    };
    // Rates of 4 GiB/s and more have attributes of their own.
    let rate = rate.unwrap_or(u64::from(number(RATE)?));
    let ceil = ceil.unwrap_or(u64::from(number(CEIL)?));
    // The kernel keeps a burst as the time that it takes.
    let burst = |rate: u64, ticks: u32| {
        u32::try_from(u128::from(rate) * u128::from(ticks) * TICK / NS_PER_S).unwrap_or(u32::MAX)
    };
    // The priority of a class around others has no effect.
    let prio = if number(LEVEL)? == 0 { u8::try_from(number(PRIO)?).unwrap_or(u8::MAX) } else { 0 };
    Some(Class {
        parent,
        rate,
        burst: burst(rate, number(BUFFER)?),
        ceil,
        cburst: burst(ceil, number(CBUFFER)?),
        prio,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Content of the options of a class.
    fn options(rate: u32, ceil: u32, ticks: [u32; 2], level: u32, prio: u32, long: Option<u64>) -> Vec<u8> {
        let mut parameters = vec![0; LENGTH];
        for (offset, number) in [
            (RATE, rate),
            (CEIL, ceil),
            (BUFFER, ticks[0]),
            (CBUFFER, ticks[1]),
            (LEVEL, level),
            (PRIO, prio),
        ] {
            parameters[offset..offset + 4].copy_from_slice(&number.to_ne_bytes());
        }
        let attribute = |kind: u16, value: &[u8]| {
            let length = 4 + value.len() as u16;
            [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat()
        };
        let mut all = attribute(TCA_HTB_PARMS, &parameters);
        all.extend(long.map(|long| attribute(TCA_HTB_CEIL64, &long.to_ne_bytes())).unwrap_or_default());
        all
    }

    #[test]
    fn classes_have_exact_rates_and_bursts_in_bytes() {
        // 64,000 bytes at 1,000,001 bytes/s are 63,999,936 us, and 999,999 ticks of 64 ns.
        let read = read_options(1, &options(1, 1_000_001, [15_625_000, 999_999], 0, 3, None));
        let expected = Class { parent: 1, rate: 1, burst: 1, ceil: 1_000_001, cburst: 63_999, prio: 3 };
        assert_eq!(read, Some(expected));
        let inner = read_options(1, &options(1, 1_000_001, [15_625_000, 999_999], 1, 3, None));
        assert_eq!(inner, Some(Class { prio: 0, ..expected }));
        let fast = read_options(1, &options(1, u32::MAX, [15_625_000, 1000], 0, 3, Some(12_500_000_000)));
        assert_eq!(fast, Some(Class { ceil: 12_500_000_000, cburst: 800_000, ..expected }));
        assert_eq!(read_options(1, &options(1, 1, [1, 1], 0, 0, None)[..40]), None);
        assert_eq!(read_options(1, &[]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_rejected(bytes: Vec<u8>, length in 0_u32..64) {
            let _ = take(&bytes, &mut Classes::new());
            let framed = [&length.to_ne_bytes()[..], &40_u16.to_ne_bytes(), &bytes].concat();
            let _ = take(&framed, &mut Classes::new());
            let _ = read_options(1, &bytes);
        }
    }
}
