//! Caps of the command line, which replace those of a device file one by one.

use leeward_fabric::Bytes;
use leeward_fabric::input::{InputError, excerpt};
use leeward_shaping::{Batch, Caps, StartCaps};
use leeward_traces::device::Device;

use super::{Arguments, quantity, size};

/// Value of an option that removes a cap.
const NO_CAP: &str = "none";
/// Largest number of requests of a cap on starts.
const MOST_REQUESTS: u32 = 1_000_000;

/// Caps that the command line states.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GivenCaps {
    outstanding: Option<u32>,
    reads: Option<u32>,
    writes: Option<u32>,
    read_bytes: Option<u64>,
    write_bytes: Option<u64>,
    behind: Option<Option<StartCaps>>,
    batch: Option<Option<Batch>>,
}

impl GivenCaps {
    /// Validates the options.
    ///
    /// # Errors
    /// Returns an [`InputError`] with the invalid option.
    pub fn new(given: &Arguments) -> Result<GivenCaps, InputError> {
        let requests = [
            ("--outstanding", given.outstanding),
            ("--outstanding-reads", given.outstanding_reads),
            ("--outstanding-writes", given.outstanding_writes),
        ];
        if let Some((option, _)) = requests.into_iter().find(|&(_, number)| number == Some(0)) {
            return Err(InputError::new(option, "0: expected at least 1"));
        }
        let bytes = |option: &str, text: &Option<String>| match text.as_deref() {
            None => Ok(None),
            Some(NO_CAP) => Ok(Some(u64::MAX)),
            Some(text) => size(option, Some(text), u64::MAX).map(Some),
        };
        Ok(GivenCaps {
            outstanding: given.outstanding,
            reads: given.outstanding_reads,
            writes: given.outstanding_writes,
            read_bytes: bytes("--outstanding-read-bytes", &given.outstanding_read_bytes)?,
            write_bytes: bytes("--outstanding-write-bytes", &given.outstanding_write_bytes)?,
            behind: given.behind.as_deref().map(behind).transpose()?,
            batch: given.write_batch.as_deref().map(write_batch).transpose()?,
        })
    }

    /// True if a number of requests at once is given.
    pub fn has_outstanding(&self) -> bool {
        self.outstanding.is_some()
    }

    /// Caps at a device: those of its file, except for the given ones. `usual` is the number of requests at once if
    /// neither states one.
    pub fn of(&self, device: Option<&Device>, usual: u32) -> Caps {
        let profiled = device.and_then(|device| device.outstanding.requests());
        let outstanding = self.outstanding.or(profiled).unwrap_or(usual);
        let stated = match device {
            Some(device) => Caps::of_profile(&device.outstanding, outstanding),
            None => Caps { outstanding, ..Caps::NONE },
        };
        Caps {
            outstanding,
            reads: self.reads.unwrap_or(stated.reads),
            writes: self.writes.unwrap_or(stated.writes),
            read_bytes: self.read_bytes.unwrap_or(stated.read_bytes),
            write_bytes: self.write_bytes.unwrap_or(stated.write_bytes),
            behind: self.behind.unwrap_or(stated.behind),
            batch: self.batch.unwrap_or(stated.batch),
        }
    }
}

/// Requests and bytes of `--behind`: `8,1MiB`, or one of the two.
fn behind(text: &str) -> Result<Option<StartCaps>, InputError> {
    const OPTION: &str = "--behind";
    if text == NO_CAP {
        return Ok(None);
    }
    let (requests, bytes) = match text.split_once(',') {
        Some((requests, bytes)) => (Some(requests), Some(bytes)),
        None if text.bytes().all(|byte| byte.is_ascii_digit()) => (Some(text), None),
        None => (None, Some(text)),
    };
    let requests = requests.map(|requests| {
        let expected = format!("expected a number of requests, 0 to {MOST_REQUESTS}");
        let number = requests.trim().parse().ok().filter(|&number: &u32| number <= MOST_REQUESTS);
        number.ok_or_else(|| InputError::new(OPTION, format!("`{}`: {expected}", excerpt(requests))))
    });
    let bytes = bytes.map(|bytes| quantity::<Bytes>(OPTION, bytes.trim()));
    Ok(Some(StartCaps {
        requests: requests.transpose()?.unwrap_or(u32::MAX),
        bytes: bytes.transpose()?.map_or(u64::MAX, |Bytes(bytes)| bytes),
    }))
}

/// Bytes and gap of `--write-batch`: `1MiB,64KiB`, or the bytes alone.
fn write_batch(text: &str) -> Result<Option<Batch>, InputError> {
    const OPTION: &str = "--write-batch";
    if text == NO_CAP {
        return Ok(None);
    }
    let (bytes, gap) = text.split_once(',').map_or((text, None), |(bytes, gap)| (bytes, Some(gap)));
    let gap = gap.map(|gap| quantity::<Bytes>(OPTION, gap.trim())).transpose()?;
    Ok(Some(Batch { bytes: size(OPTION, Some(bytes.trim()), 0)?, gap: gap.map_or(0, |Bytes(gap)| gap) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(set: impl FnOnce(&mut Arguments)) -> Result<GivenCaps, String> {
        let mut arguments = Arguments::default();
        set(&mut arguments);
        GivenCaps::new(&arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn each_option_replaces_the_cap_of_the_device_file() {
        let text = r#"{"table": [{"size_bytes": 4096, "read_iops": 1000, "write_iops": 500}],
            "outstanding": 8, "outstanding_reads": 8, "outstanding_read_bytes": 65536, "behind": {"requests": 3},
            "write_batch": {"bytes": 1000}}"#;
        let device = Device::from_text("ssd.json", text).unwrap();
        let caps = |set: fn(&mut Arguments)| given(set).unwrap().of(Some(&device), 1);
        let stated = Caps::of_profile(&device.outstanding, 8);
        assert_eq!(caps(|_| {}), stated);
        assert_eq!(caps(|given| given.outstanding = Some(2)), Caps { outstanding: 2, ..stated });
        assert_eq!(caps(|given| given.outstanding_reads = Some(2)), Caps { reads: 2, ..stated });
        assert_eq!(caps(|given| given.outstanding_writes = Some(2)), Caps { writes: 2, ..stated });
        let bytes = given(|given| {
            (given.outstanding_read_bytes, given.outstanding_write_bytes) = (one("none"), one("1MiB"));
        });
        let expected = Caps { read_bytes: u64::MAX, write_bytes: 1 << 20, ..stated };
        assert_eq!(bytes.unwrap().of(Some(&device), 1), expected);
        for (text, expected) in [
            ("none", None),
            ("8, 1MiB", Some(StartCaps { requests: 8, bytes: 1 << 20 })),
            ("8", Some(StartCaps { requests: 8, bytes: u64::MAX })),
            ("64KiB", Some(StartCaps { requests: u32::MAX, bytes: 64 << 10 })),
        ] {
            let behind = given(|given| given.behind = one(text)).unwrap().of(Some(&device), 1).behind;
            assert_eq!(behind, expected, "{text}");
        }
        for (text, expected) in [
            ("none", None),
            ("1MiB,64KiB", Some(Batch { bytes: 1 << 20, gap: 64 << 10 })),
            ("1MiB", Some(Batch { bytes: 1 << 20, gap: 0 })),
        ] {
            let batch = given(|given| given.write_batch = one(text)).unwrap().of(Some(&device), 1).batch;
            assert_eq!(batch, expected, "{text}");
        }
        assert_eq!(given(|_| {}).unwrap().of(None, 7), Caps { outstanding: 7, ..Caps::NONE });
    }

    fn one(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn errors_name_their_option() {
        type Change = fn(&mut Arguments);
        let cases: [(Change, &str); 9] = [
            (|given| given.outstanding = Some(0), "--outstanding: 0"),
            (|given| given.outstanding_reads = Some(0), "--outstanding-reads: 0"),
            (|given| given.outstanding_read_bytes = one("0B"), "--outstanding-read-bytes: 0B"),
            (|given| given.behind = one("8,x"), "--behind: "),
            (|given| given.behind = one("x,8"), "--behind: `x`: expected a number"),
            (|given| given.behind = one("1000001"), "--behind: `1000001`: expected a number"),
            (|given| given.behind = one(""), "--behind: "),
            (|given| given.write_batch = one("0B"), "--write-batch: 0B"),
            (|given| given.write_batch = one("1MiB,y"), "--write-batch: "),
        ];
        for (set, expected) in cases {
            let error = given(set).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
