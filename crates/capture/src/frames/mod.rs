//! Files as frames: pcap and pcapng, recognised by their first bytes, and files of IPFIX messages (RFC 5655).

mod ipfix;
mod pcap;
mod pcapng;
mod window;

use std::io::{self, Read};

pub use window::Window;

use crate::discards::{Discards, Reason};

/// A record of a file.
pub enum Record<'a> {
    /// A frame.
    Frame(Frame<'a>),
    /// An IPFIX message.
    Message(&'a [u8]),
}

/// A captured frame.
pub struct Frame<'a> {
    /// Time of the capture, in nanoseconds since 1970.
    pub time_ns: i64,
    /// Type of the first header, as numbered by tcpdump.org.
    pub link_type: u32,
    /// Captured bytes of the frame.
    pub data: &'a [u8],
    /// Length of the frame on the wire.
    pub length: u64,
}

/// The records of a file.
pub struct Frames {
    window: Window,
    format: Format,
}

enum Format {
    Pcap(pcap::Pcap),
    PcapNg(pcapng::PcapNg),
    Ipfix,
}

/// Reason why a file cannot be read at all.
pub enum OpenError {
    Broken(io::Error),
    Empty,
    /// The file ends inside the pcap header.
    CutOff,
    /// A version of a format that is not known: its name, and the major and minor number.
    Version(&'static str, u16, u16),
    /// Unknown first bytes.
    Unknown([u8; 4]),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> OpenError {
        OpenError::Broken(error)
    }
}

impl Frames {
    /// Opens a file, plain or gzip, by its content.
    pub fn open(reader: impl Read + 'static) -> Result<Frames, OpenError> {
        let mut window = Window::open(reader)?;
        if !window.reach(4)? {
            return Err(if window.bytes().is_empty() {
                OpenError::Empty
            } else {
                OpenError::Unknown(first(&window))
            });
        }
        let magic = first(&window);
        let format = match magic {
            pcapng::MAGIC => {
                let version = if window.reach(16)? { pcapng::version(window.bytes()) } else { (1, 0) };
                if version.0 != 1 {
                    return Err(OpenError::Version("pcapng", version.0, version.1));
                }
                Format::PcapNg(pcapng::PcapNg::default())
            }
            [0, 10, ..] => Format::Ipfix,
            _ if window.reach(pcap::HEADER)? => {
                let (header, version) = pcap::Pcap::open(window.bytes()).ok_or(OpenError::Unknown(magic))?;
                if !pcap::VERSIONS.contains(&version) {
                    return Err(OpenError::Version("pcap", version.0, version.1));
                }
                window.pass(pcap::HEADER);
                Format::Pcap(header)
            }
            _ if pcap::MAGICS.contains(&u32::from_le_bytes(magic)) => return Err(OpenError::CutOff),
            _ => return Err(OpenError::Unknown(magic)),
        };
        Ok(Frames { window, format })
    }

    /// True if the file contains IPFIX messages rather than frames.
    pub fn are_messages(&self) -> bool {
        matches!(self.format, Format::Ipfix)
    }

    /// Bytes of the file read so far.
    pub fn bytes_read(&self) -> u64 {
        self.window.bytes_read()
    }

    /// Counts the bytes that are left after the last record. There are none, unless a reader stops too early.
    pub fn close(&mut self, discards: &mut Discards) -> io::Result<()> {
        if self.window.reach(1)? {
            broken(&mut self.window, discards, || "the rest of the file was not read".into())?;
        }
        Ok(())
    }

    /// The next record, or `None` after the last.
    pub fn next(&mut self, discards: &mut Discards) -> io::Result<Option<Record<'_>>> {
        let window = &mut self.window;
        match &mut self.format {
            Format::Pcap(pcap) => Ok(pcap.next(window, discards)?.map(Record::Frame)),
            Format::PcapNg(pcapng) => Ok(pcapng.next(window, discards)?.map(Record::Frame)),
            Format::Ipfix => Ok(ipfix::next(window, discards)?.map(Record::Message)),
        }
    }
}

/// The content that first bytes announce, if it is of another kind than captures.
pub fn other_content(first: [u8; 4]) -> Option<&'static str> {
    Some(match &first {
        [0, 1, ..] => "messages of NetFlow 1",
        [0, 5, ..] => "messages of NetFlow 5",
        [0, 7, ..] => "messages of NetFlow 7",
        [0, 8, ..] => "messages of NetFlow 8",
        [0, 9, ..] => "messages of NetFlow 9",
        [0, 0, 0, 5] => "messages of sFlow 5",
        [0x0c, 0xa5, ..] | [0xa5, 0x0c, ..] => "a file of nfdump",
        b"snoo" => "a file of snoop",
        b"GMBU" | b"RTSS" => "a file of Network Monitor",
        [0x28, 0xb5, 0x2f, 0xfd] => "zstd",
        [0xfd, b'7', b'z', b'X'] => "xz",
        [b'B', b'Z', b'h', b'1'..=b'9'] => "bzip2",
        text if text.iter().all(|&byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) => "text",
        _ => return None,
    })
}

fn first(window: &Window) -> [u8; 4] {
    let mut first = [0; 4];
    for (to, from) in first.iter_mut().zip(window.bytes()) {
        *to = *from;
    }
    first
}

/// Counts the rest of a file that ends inside a record, and skips it.
fn cut_off(window: &mut Window, discards: &mut Discards) {
    let (at, left) = (window.bytes_read(), window.bytes().len());
    if left > 0 || window.is_cut_off() {
        discards.count(Reason::CutOffRecord, "", left as u64, || format!("byte {at}: {left} bytes are left"));
        window.pass(left);
    }
}

/// Counts an invalid record, and skips the rest of the file: the start of the next record is unknown.
fn broken(window: &mut Window, discards: &mut Discards, why: impl FnOnce() -> String) -> io::Result<()> {
    let at = window.bytes_read();
    while window.reach(1)? {
        window.pass(window.bytes().len());
    }
    let lost = window.bytes_read() - at;
    discards.count(Reason::BrokenRecord, "", lost, || format!("byte {at}: {}; {lost} bytes are lost", why()));
    Ok(())
}
