//! Traffic that was not counted, or was counted under an assumption, by reason. Nothing is dropped without an entry
//! here.

use std::collections::BTreeMap;

macro_rules! reasons {
    ($($reason:ident, $name:literal, $kept:literal, $meaning:literal;)*) => {
        /// Reason why traffic was not counted, or was counted under an assumption.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Reason {
            $(#[doc = $meaning] $reason,)*
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &[Reason] = &[$(Reason::$reason),*];

            /// Name of the reason in reports.
            pub fn name(self) -> &'static str {
                match self { $(Reason::$reason => $name,)* }
            }

            /// True if the traffic was counted nevertheless.
            pub fn kept(self) -> bool {
                match self { $(Reason::$reason => $kept,)* }
            }

            /// Explanation of the reason, on one line.
            pub fn meaning(self) -> &'static str {
                match self { $(Reason::$reason => $meaning,)* }
            }
        }
    };
}

reasons! {
    CutOffRecord, "cut-off-record", false, "the file ends inside a record: the capture was truncated";
    BrokenRecord, "broken-record", false, "an invalid record; the rest of the file was skipped";
    BrokenBlock, "broken-block", false, "an inconsistent block of a pcapng file";
    NoInterface, "no-interface", false, "a packet of an interface that the pcapng file does not describe";
    NoTime, "no-time", false, "a packet without a usable time";
    UnknownLinkType, "unknown-link-type", false, "packets of an unsupported link layer";
    CutOffHeader, "cut-off-header", false, "truncated packets without their addresses";
    NotIp, "not-ip", false, "frames of other protocols than IP, by their EtherType";
    BrokenIp, "broken-ip", false, "an inconsistent IP header";
    Export, "export", false, "datagrams of sFlow, NetFlow or IPFIX to a collector, which are not traffic: --content exports reads their records";
    NotAnExport, "not-an-export", false, "packets other than exported datagrams";
    Fragment, "fragment", false, "a fragment of an exported datagram, or a fragment without ports where services depend on ports";
    CutOffDatagram, "cut-off-datagram", false, "an exported datagram that was not captured whole";
    BrokenDatagram, "broken-datagram", false, "an inconsistent exported datagram, or the rest of one";
    UnknownVersion, "unknown-version", false, "a datagram of an unsupported version or protocol; supported are sFlow 5, NetFlow 5 and 9, and IPFIX";
    UnknownSample, "unknown-sample", false, "sFlow samples and records of an unsupported kind";
    NoHeader, "no-header", false, "sFlow samples without a packet header or addresses";
    NoTemplate, "no-template", false, "sets of records whose template never arrived";
    NoAddresses, "no-addresses", false, "exported records without the addresses of both ends";
    NoBytes, "no-bytes", false, "exported records without counts of bytes and packets for their duration";
    DiscardedPacket, "discarded-packet", false, "packets that the switch discarded, which are not traffic";
    OtherDirection, "other-direction", false, "packets and records of the direction that was not chosen";
    NotPlausible, "not-plausible", false, "records with implausibly many bytes or an implausible duration";
    TooManyExporters, "too-many-exporters", false, "datagrams of exporters beyond the limit";
    NoPlace, "no-place", false, "traffic of addresses without a host, rack or service in the mapping";
    NoClass, "no-class", false, "traffic whose code point (DSCP) belongs to no class, or is not stated";
    RecognizedExport, "recognized-export", true, "exported datagrams to other ports than those of exports, read because of their content";
    LengthMismatch, "length-mismatch", true, "packets whose frame length contradicts the length in their IP header: a frame counts as at least its IP packet";
    BothDirections, "both-directions", true, "packets that may count twice, because a switch reports them where they enter and where they leave: --direction ingress or egress takes one";
    NoDirection, "no-direction", true, "packets and records without a direction: counted, although one direction was chosen";
    NoRate, "no-rate", true, "exported records without a known sampling rate: counted as if every packet had been sampled";
    LateRate, "late-rate", true, "exported records beyond the number that can wait for their sampling rate: counted without it";
    TotalCounts, "total-counts", true, "exported records that count since the start of their flow: a flow in several records counts too often";
    LostExports, "lost-exports", true, "records or datagrams that are not in the files, by the sequence numbers of their exporter";
    CaptureDrops, "capture-drops", true, "packets that the capturing system dropped, by its own count in the file";
    NoFlowTime, "no-flow-time", true, "exported records without usable times: counted at the time of export";
}

impl Reason {
    /// True if the matrix may be wrong because of it. The other reasons concern packets that are no traffic of the
    /// matrix by their kind, or by a choice of the user.
    pub fn is_doubt(self) -> bool {
        use Reason::{
            DiscardedPacket, NoPlace, NotAnExport, NotIp, OtherDirection, RecognizedExport, UnknownSample,
        };
        let others =
            [NotIp, NotAnExport, UnknownSample, DiscardedPacket, OtherDirection, NoPlace, RecognizedExport];
        !others.contains(&self)
    }
}

/// Largest number of kinds of one reason that are counted separately; later kinds are counted together.
const MOST_DETAILS: usize = 64;
/// Number of examples of each kind.
const EXAMPLES: usize = 3;

/// Number and bytes of the discards of one kind, with the first few examples.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Discard {
    /// Number of occurrences.
    pub count: u64,
    /// Bytes of traffic or of the file, as far as known.
    pub bytes: u64,
    /// Positions or endpoints of the first few occurrences.
    pub examples: Vec<String>,
    /// File of each example, by its number.
    files: Vec<usize>,
}

/// All traffic that was not counted, or was counted under an assumption.
#[derive(Clone, Default, Debug)]
pub struct Discards {
    kinds: BTreeMap<(Reason, String), Discard>,
    details: BTreeMap<Reason, usize>,
    /// Names of the files, in the order of their first records.
    files: Vec<String>,
    /// Number of the file that is being read.
    file: usize,
}

impl Discards {
    /// Counts an occurrence. `detail` separates kinds of one reason (an EtherType, a link type) and may be empty.
    pub fn count(&mut self, reason: Reason, detail: &str, bytes: u64, example: impl FnOnce() -> String) {
        let mut key = (reason, detail.to_owned());
        if !self.kinds.contains_key(&key) {
            let details = self.details.entry(reason).or_default();
            if *details >= MOST_DETAILS && !detail.is_empty() {
                key.1 = "others".into();
            } else {
                *details += 1;
            }
        }
        let discard = self.kinds.entry(key).or_default();
        discard.count += 1;
        discard.bytes = discard.bytes.saturating_add(bytes);
        if discard.examples.len() < EXAMPLES {
            discard.examples.push(example());
            discard.files.push(self.file);
        }
    }

    /// Counts several occurrences and their bytes, with one example.
    pub(crate) fn count_all(
        &mut self,
        reason: Reason,
        detail: &str,
        count: u64,
        bytes: u64,
        example: impl FnOnce() -> String,
    ) {
        if count > 0 {
            self.count(reason, detail, bytes, example);
            let discard = self.kinds.entry((reason, detail.to_owned())).or_default();
            discard.count += count - 1;
        }
    }

    /// Number of a file for examples; the file is the one that is being read from now on.
    pub(crate) fn open_file(&mut self, name: &str) -> usize {
        self.files.push(name.to_owned());
        self.file = self.files.len() - 1;
        self.file
    }

    /// Continues with a file.
    pub(crate) fn set_file(&mut self, file: usize) {
        self.file = file;
    }

    /// Puts the names of files before the examples, if there are several files.
    pub(crate) fn name_files(&mut self) {
        if self.files.len() < 2 {
            return;
        }
        for discard in self.kinds.values_mut() {
            for (example, file) in discard.examples.iter_mut().zip(std::mem::take(&mut discard.files)) {
                if let Some(name) = self.files.get(file) {
                    *example = format!("{name}: {example}");
                }
            }
        }
    }

    /// Name of a file.
    pub(crate) fn file_name(&self, file: usize) -> &str {
        self.files.get(file).map_or("others", String::as_str)
    }

    /// Each kind of each reason, in order, with its counts.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, &str, &Discard)> {
        self.kinds.iter().map(|((reason, detail), discard)| (*reason, detail.as_str(), discard))
    }

    /// Number of occurrences of one reason.
    pub fn of(&self, reason: Reason) -> u64 {
        self.iter().filter(|(found, _, _)| *found == reason).map(|(_, _, discard)| discard.count).sum()
    }
}
