//! Messages on a connection: four bytes with the length, in network byte order, then JSON.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest message. A minute's transfer over 16 connections is told in less.
pub const MOST_BYTES: u32 = 4 << 20;
/// What is read at once, so that a length alone makes nobody set memory aside.
const PIECE: u64 = 64 << 10;

/// Writes a message.
///
/// # Errors
///
/// What the system says; [`io::ErrorKind::InvalidData`] if the message is too long.
pub fn write(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = u32::try_from(bytes.len() - 4).ok().filter(|&length| length <= MOST_BYTES);
    let length = length.ok_or_else(|| invalid("the message is too long".to_owned()))?;
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    to.write_all(&bytes)?;
    to.flush()
}

/// Reads a message.
///
/// # Errors
///
/// What the system says; [`io::ErrorKind::InvalidData`] if it is too long or no such message.
pub fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > MOST_BYTES {
        return Err(invalid(format!("a message of {length} bytes: expected at most {MOST_BYTES}")));
    }
    let mut bytes = Vec::new();
    while bytes.len() < length as usize {
        let piece = PIECE.min(u64::from(length) - bytes.len() as u64);
        if from.by_ref().take(piece).read_to_end(&mut bytes)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::control::{Answer, Ask};

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes: Vec<u8>) {
            let _ = read::<Ask>(&mut &bytes[..]);
            let mut framed = (bytes.len() as u32).to_be_bytes().to_vec();
            framed.extend(&bytes);
            let _ = read::<Answer>(&mut &framed[..]);
        }

        #[test]
        fn json_of_any_form_is_a_message_or_an_error(text in r#"\{"(ask|answer)":"[a-z_]{1,12}"(,"[a-z]{1,8}":[0-9{}\[\]a-z"]{0,9})?\}"#) {
            let mut framed = (text.len() as u32).to_be_bytes().to_vec();
            framed.extend(text.as_bytes());
            let _ = read::<Ask>(&mut &framed[..]);
            let _ = read::<Answer>(&mut &framed[..]);
        }
    }

    #[test]
    fn a_length_alone_is_refused_or_waited_for_in_vain() {
        let error = read::<Ask>(&mut &[0xff_u8; 8][..]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let error = read::<Ask>(&mut &[0, 1, 0, 0, b'{'][..]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = Vec::new();
        let ask = Ask::Hello { version: 3, secret: None };
        write(&mut bytes, &ask).unwrap();
        assert_eq!(read::<Ask>(&mut &bytes[..]).unwrap(), ask);
    }
}
