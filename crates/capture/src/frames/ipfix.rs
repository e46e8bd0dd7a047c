//! Files of consecutive IPFIX messages (RFC 5655).

use std::io;

use super::{Window, broken, cut_off};
use crate::discards::Discards;

/// Bytes of a message header.
const HEADER: usize = 16;

pub fn next<'a>(window: &'a mut Window, discards: &mut Discards) -> io::Result<Option<&'a [u8]>> {
    if !window.reach(HEADER)? {
        cut_off(window, discards);
        return Ok(None);
    }
    let head = window.bytes();
    let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
    if head[..2] != [0, 10] || length < HEADER {
        broken(window, discards, || "no IPFIX message begins here".into())?;
        return Ok(None);
    }
    if !window.reach(length)? {
        cut_off(window, discards);
        return Ok(None);
    }
    Ok(Some(window.pass(length)))
}
