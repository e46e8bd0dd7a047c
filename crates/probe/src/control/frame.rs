//! Message framing on a connection: four length bytes in network byte order, then JSON.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::excerpt;

/// Maximum length of a message. The report of a one-minute transfer over 16 connections is shorter.
pub const MOST_BYTES: u32 = 4 << 20;
/// Maximum length of a message from an unauthenticated peer. With this limit, many such messages together take little
/// memory.
pub const FIRST_BYTES: u32 = 16 << 10;
/// Number of bytes read at a time, so that an announced length alone reserves no memory.
const PIECE: u64 = 64 << 10;

/// Writes a message.
///
/// # Errors
///
/// Returns the system's error, or [`io::ErrorKind::InvalidData`] if the message is too long.
pub fn write(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = u32::try_from(bytes.len() - 4).ok().filter(|&length| length <= MOST_BYTES);
    let length = length.ok_or_else(|| invalid("the message is too long".to_owned()))?;
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    to.write_all(&bytes)?;
    to.flush()
}

/// Reads a message of at most [`MOST_BYTES`].
///
/// # Errors
///
/// Returns the system's error, or [`io::ErrorKind::InvalidData`] for a message that is too long or malformed.
pub fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    read_at_most(from, MOST_BYTES)
}

/// Reads a message of at most `most` bytes.
///
/// # Errors
///
/// Fails as [`read`] does.
pub fn read_at_most<T: DeserializeOwned>(from: &mut impl Read, most: u32) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > most {
        return Err(invalid(format!("a message of {length} bytes: expected at most {most}")));
    }
    let mut bytes = Vec::new();
    while bytes.len() < length as usize {
        let piece = PIECE.min(u64::from(length) - bytes.len() as u64);
        if from.by_ref().take(piece).read_to_end(&mut bytes)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    serde_json::from_slice(&bytes).map_err(|error| invalid(excerpt(&error.to_string())))
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::control::{Order, Reply, Request};
    use crate::train::{Train, Transfer};

    /// Any request.
    fn requests() -> impl Strategy<Value = Request> {
        let train = any::<[u32; 3]>().prop_flat_map(|[bursts, packets, bytes]| {
            any::<u64>().prop_map(move |gap_ns| Train { bursts, packets, bytes, gap_ns })
        });
        let transfer = any::<(u64, u32)>().prop_map(|(duration_ns, connections)| Transfer {
            duration_ns,
            connections,
            congestion: None,
        });
        let order = prop_oneof![
            train.clone().prop_map(|train| Order::Train { train }),
            transfer.clone().prop_map(|transfer| Order::Transfer { transfer }),
            Just(Order::Hops {}),
        ];
        prop_oneof![
            any::<(u32, Option<String>)>().prop_map(|(version, secret)| Request::Hello { version, secret }),
            Just(Request::Ping {}),
            Just(Request::Ended {}),
            any::<u64>().prop_map(|session| Request::Data { session }),
            train.prop_map(|train| Request::ReceiveTrain { train }),
            transfer.prop_map(|transfer| Request::ReceiveTransfer { transfer }),
            (any::<String>(), order).prop_map(|(to, order)| Request::Measure { to, order }),
        ]
    }

    #[test]
    fn unauthenticated_messages_are_limited_to_the_length_of_a_greeting() {
        let mut sent = (FIRST_BYTES + 1).to_be_bytes().to_vec();
        sent.extend(b" ".repeat(FIRST_BYTES as usize - 6));
        sent.extend(br#"{"ping"#);
        let error = read_at_most::<Request>(&mut &sent[..], FIRST_BYTES).expect_err("an error");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        let error = read::<Request>(&mut &sent[..]).expect_err("an error");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{error}");
    }

    proptest! {
        #[test]
        fn messages_are_read_in_order_and_truncated_ones_are_not(
            requests in prop::collection::vec(requests(), 0..8),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = Vec::new();
            requests.iter().for_each(|request| write(&mut bytes, request).unwrap());
            let mut from = &bytes[..];
            for request in &requests {
                prop_assert_eq!(&read::<Request>(&mut from).unwrap(), request);
            }
            prop_assert!(from.is_empty());
            let mut from = &bytes[..cut.index(bytes.len() + 1)];
            let messages: Vec<Request> = std::iter::from_fn(|| read(&mut from).ok()).collect();
            prop_assert_eq!(&messages[..], &requests[..messages.len()]);
        }

        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes: Vec<u8>) {
            let _ = read::<Request>(&mut &bytes[..]);
            let mut framed = (bytes.len() as u32).to_be_bytes().to_vec();
            framed.extend(&bytes);
            let _ = read::<Reply>(&mut &framed[..]);
        }

        #[test]
        fn json_of_any_form_is_a_message_or_an_error(text in r#"\{"(ask|answer)":"[a-z_]{1,12}"(,"[a-z]{1,8}":[0-9{}\[\]a-z"]{0,9})?\}"#) {
            let mut framed = (text.len() as u32).to_be_bytes().to_vec();
            framed.extend(text.as_bytes());
            let _ = read::<Request>(&mut &framed[..]);
            let _ = read::<Reply>(&mut &framed[..]);
        }
    }

    #[test]
    fn malformed_messages_give_a_short_error() {
        let text = format!(r#"{{"ask":"{}\n"}}"#, "x".repeat(100_000));
        let mut framed = (text.len() as u32).to_be_bytes().to_vec();
        framed.extend(text.as_bytes());
        let error = read::<Request>(&mut &framed[..]).unwrap_err().to_string();
        assert!(error.len() < 300 && !error.contains('\n'), "{error}");
    }

    #[test]
    fn a_length_without_content_is_an_error() {
        let error = read::<Request>(&mut &[0xff_u8; 8][..]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let error = read::<Request>(&mut &[0, 1, 0, 0, b'{'][..]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
