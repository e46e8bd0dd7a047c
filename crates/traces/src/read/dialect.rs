//! Dialects of trace files, and their detection.

use std::fmt;

use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, Line, excerpt};

use super::{
    Parse, ParsedLine, ReadSettings, Rest, alibaba, azure, blktrace, compactor, fio_iolog, fio_log, leeward,
    msr, parse_checked, spc, systor, tencent, twitter,
};

/// Format of the lines of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// Leeward's own dialect: CSV with the header `seconds,kind,size,offset`.
    Leeward,
    /// `nanoseconds,hexadecimal size,Get|Put|DiskRead|DiskWrite`, as released with SNC-Meister and WorkloadCompactor.
    Compactor,
    /// The block traces of MSR Cambridge: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
    Msr,
    /// The format of the Storage Performance Council: `ASU,LBA,Size,Opcode,Timestamp`.
    Spc,
    /// The output of blkparse for a block trace.
    Blktrace,
    /// The block traces of Alibaba Cloud: `device_id,opcode,offset,length,timestamp`.
    Alibaba,
    /// The block traces of Tencent's cloud block storage: `Timestamp,Offset,Size,IOType,VolumeID`.
    Tencent,
    /// The traces of virtual desktops of SYSTOR 2017: `Timestamp,Response,IOType,LUN,Offset,Size`.
    Systor,
    /// Logs of latencies by fio.
    FioLog,
    /// Logs of input and output by fio, versions 2 and 3.
    FioIolog,
    /// Twitter's cache traces.
    Twitter,
    /// The blob accesses of Azure Functions.
    Azure,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Dialect; 12] = [
        Dialect::Leeward,
        Dialect::Compactor,
        Dialect::Msr,
        Dialect::Spc,
        Dialect::Blktrace,
        Dialect::Alibaba,
        Dialect::Tencent,
        Dialect::Systor,
        Dialect::FioLog,
        Dialect::FioIolog,
        Dialect::Twitter,
        Dialect::Azure,
    ];

    /// Name of the dialect, for users.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Leeward => "leeward",
            Dialect::Compactor => "compactor",
            Dialect::Msr => "msr",
            Dialect::Spc => "spc",
            Dialect::Blktrace => "blktrace",
            Dialect::Alibaba => "alibaba",
            Dialect::Tencent => "tencent",
            Dialect::Systor => "systor",
            Dialect::FioLog => "fio-log",
            Dialect::FioIolog => "fio-iolog",
            Dialect::Twitter => "twitter",
            Dialect::Azure => "azure",
        }
    }

    /// The dialect with this name.
    pub fn from_name(name: &str) -> Option<Dialect> {
        Dialect::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// Time of 1970 on the clock of the dialect. `None` if times count from the start of each recording, or from a moment
    /// that its files share but do not state.
    pub fn epoch(self) -> Option<Nanos> {
        match self {
            // Ticks since 1601, which is 134,774 days earlier.
            Dialect::Msr => Some(Nanos(134_774 * 86_400 * Nanos::SECOND.0)),
            Dialect::Alibaba | Dialect::Tencent | Dialect::Systor | Dialect::Azure => Some(Nanos(0)),
            Dialect::Leeward
            | Dialect::Compactor
            | Dialect::Spc
            | Dialect::Blktrace
            | Dialect::FioLog
            | Dialect::FioIolog
            | Dialect::Twitter => None,
        }
    }

    /// An example of a line.
    fn example(self) -> &'static str {
        match self {
            Dialect::Leeward => "a header with seconds,kind,size",
            Dialect::Compactor => "564037000,0x1000,DiskWrite",
            Dialect::Msr => "128166372003061629,usr,0,Read,7014609920,24576,41286",
            Dialect::Spc => "0,20941264,8192,W,0.551706",
            Dialect::Blktrace => "8,0 3 1 0.000000000 697 Q W 223490 + 8 [cp]",
            Dialect::Alibaba => "419,W,8192,4096,1577808000000046",
            Dialect::Tencent => "1538323200,12910952,128,0,1063",
            Dialect::Systor => "1455592511.078887,0.000235,R,4,81920,4096",
            Dialect::FioLog => "12, 206322, 0, 4096, 61440, 0",
            Dialect::FioIolog => "fio version 3 iolog",
            Dialect::Twitter => "0,q:q:1,26,4096,33,get,0",
            Dialect::Azure => "a header with Timestamp,AnonRegion,...,BlobBytes,Read,Write",
        }
    }

    /// Word of this dialect for a volume, for errors.
    pub(super) fn volumes(self) -> &'static str {
        match self {
            Dialect::Msr => "its HOST.DISK, such as usr.0",
            Dialect::Spc => "its ASUs, such as 0",
            Dialect::Blktrace => "its devices, such as 8,0",
            Dialect::Alibaba => "its devices, such as 419",
            Dialect::Tencent => "its volumes, such as 1063",
            Dialect::Systor => "its LUNs, such as 4",
            Dialect::FioIolog => "its files, such as /dev/sda",
            _ => "none",
        }
    }

    pub(super) fn names_volumes(self) -> bool {
        self.volumes() != "none"
    }

    /// The dialect that matches this line.
    pub(super) fn detect(line: &Line<'_>) -> Result<Dialect, InputError> {
        let matches = |dialect: &Dialect| match dialect {
            Dialect::Leeward => leeward::matches(line.text),
            Dialect::Compactor => compactor::matches(line.text),
            Dialect::Msr => msr::matches(line.text),
            Dialect::Spc => spc::matches(line.text),
            Dialect::Blktrace => blktrace::matches(line.text),
            Dialect::Alibaba => alibaba::matches(line.text),
            Dialect::Tencent => tencent::matches(line.text),
            Dialect::Systor => systor::matches(line.text),
            Dialect::FioLog => fio_log::matches(line.text),
            Dialect::FioIolog => fio_iolog::matches(line.text),
            Dialect::Twitter => twitter::matches(line.text),
            Dialect::Azure => azure::matches(line.text),
        };
        Dialect::ALL.into_iter().find(matches).ok_or_else(|| {
            let known = Dialect::ALL.map(|dialect| format!("{dialect} ({})", dialect.example()));
            let message = format!(
                "`{}`: a line of no known dialect; expected one of {}",
                excerpt(line.text),
                known.join("; ")
            );
            line.error("dialect", message)
        })
    }

    /// A parser for lines of this dialect, and the result for the first line.
    pub(super) fn parser(
        self,
        first: &Line<'_>,
        settings: &ReadSettings,
    ) -> Result<(Box<dyn Parse>, ParsedLine), InputError> {
        let volume = settings.volume.clone();
        let mut parser: Box<dyn Parse> = match self {
            Dialect::Leeward => {
                return Ok((Box::new(leeward::Parser::open(first)?), ParsedLine::Rest(Rest::Heading)));
            }
            Dialect::Compactor => Box::new(compactor::Parser),
            Dialect::Msr => Box::new(msr::Parser { volume }),
            Dialect::Spc => Box::new(spc::Parser { volume }),
            Dialect::Blktrace => {
                Box::new(blktrace::Parser { event: settings.event, volume, in_sums: false, lost: 0 })
            }
            Dialect::Alibaba => Box::new(alibaba::Parser { volume }),
            Dialect::Tencent => Box::new(tencent::Parser { volume }),
            Dialect::Systor => Box::new(systor::Parser { volume }),
            Dialect::FioLog => Box::new(fio_log::Parser),
            Dialect::FioIolog => {
                Box::new(fio_iolog::Parser { volume, has_times: false, now: None, count: 0 })
            }
            Dialect::Twitter => Box::new(twitter::Parser),
            Dialect::Azure => Box::new(azure::Parser),
        };
        let parsed = parse_checked(&mut *parser, first, None, settings.largest)?;
        Ok((parser, parsed))
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
