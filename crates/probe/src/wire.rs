//! Header of a train's packet: session, burst and number.
//!
//! Numbers are in network byte order. Padding follows the header.
//!
//! ```text
//!  0         4    5          8           16        20        24
//!  "LWpt"    1    0 0 0      session     burst     number    padding ...
//! ```

/// Length of the header in bytes.
pub const HEADER: usize = 24;
const MAGIC: [u8; 4] = *b"LWpt";
const VERSION: u8 = 1;

/// Header of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Session of the train, drawn by its receiver.
    pub session: u64,
    /// Burst, from 0.
    pub burst: u32,
    /// Packet of the burst, from 0.
    pub number: u32,
}

impl Head {
    /// Writes the header to the beginning of a packet.
    pub fn write(&self, packet: &mut [u8; HEADER]) {
        packet[..4].copy_from_slice(&MAGIC);
        packet[4..8].copy_from_slice(&[VERSION, 0, 0, 0]);
        packet[8..16].copy_from_slice(&self.session.to_be_bytes());
        packet[16..20].copy_from_slice(&self.burst.to_be_bytes());
        packet[20..24].copy_from_slice(&self.number.to_be_bytes());
    }

    /// Reads the header of a packet; `None` if the packet belongs to no train.
    pub fn read(packet: &[u8]) -> Option<Head> {
        let (magic, rest) = packet.split_first_chunk::<4>()?;
        let (version, rest) = rest.split_first_chunk::<4>()?;
        let (session, rest) = rest.split_first_chunk::<8>()?;
        let (burst, rest) = rest.split_first_chunk::<4>()?;
        let (number, _) = rest.split_first_chunk::<4>()?;
        (*magic == MAGIC && *version == [VERSION, 0, 0, 0]).then_some(Head {
            session: u64::from_be_bytes(*session),
            burst: u32::from_be_bytes(*burst),
            number: u32::from_be_bytes(*number),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn written_headers_are_read_back(session: u64, burst: u32, number: u32, padding in 0..100_usize) {
            let head = Head { session, burst, number };
            let mut packet = [0; HEADER];
            head.write(&mut packet);
            let mut long = packet.to_vec();
            long.resize(HEADER + padding, 7);
            prop_assert_eq!(Head::read(&long), Some(head));
            prop_assert_eq!(Head::read(&long[..HEADER - 1]), None);
        }

        #[test]
        fn any_bytes_are_parsed_or_rejected_as_a_header(bytes: Vec<u8>) {
            if let Some(head) = Head::read(&bytes) {
                let mut packet = [0; HEADER];
                head.write(&mut packet);
                prop_assert_eq!(&packet[..], &bytes[..HEADER]);
            }
        }
    }
}
