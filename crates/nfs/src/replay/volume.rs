//! The file of a replay: found or made at the root of the export, with bytes up to its size.

use std::net::SocketAddr;
use std::time::Duration;

use leeward_fabric::input::{InputError, excerpt};

use super::{ReplaySettings, ReplayStop};
use crate::caller::{CallError, Caller};
use crate::calls::{COMMIT, NFS, VERSION, WRITE};
use crate::mount::{self, MNT, MOUNT, MountError};
use crate::server::Server;
use crate::xdr::{Reader, Writer, XdrError};

/// Procedures of NFS version 3 (RFC 1813, sections 3.3.1, 3.3.3, 3.3.8 and 3.3.12).
const GETATTR: u32 = 1;
const LOOKUP: u32 = 3;
const CREATE: u32 = 8;
const REMOVE: u32 = 12;
/// Ways to make a file: one that is there already is opened, or is an error.
const UNCHECKED: u32 = 0;
const GUARDED: u32 = 1;
/// States of a call.
const OK: u32 = 0;
const NO_ENTRY: u32 = 2;
/// Longest file handle, in bytes.
const MOST_HANDLE: u32 = 64;
/// Type of a regular file.
const REGULAR: u32 = 1;
/// Numbers of four bytes in the attributes of a file, before its size, and in all.
const BEFORE_SIZE: usize = 5;
const ATTRIBUTES: usize = 21;
/// The same in the attributes that a file had before a call.
const FORMER_ATTRIBUTES: usize = 6;
/// Bytes of a write that fills the file.
const STEP: u64 = 1 << 20;
/// Byte of a new file. With zeros, a file system could leave the file out.
const FILL: u8 = 0x5a;
/// Longest time of a call that opens or fills the file: a server may stand still while its disk takes writes.
const PATIENCE: Duration = Duration::from_secs(60);

/// An open file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Volume {
    /// Address of the server's NFS.
    pub server: SocketAddr,
    /// Handle of the file.
    pub handle: Vec<u8>,
    /// True if the file was not there before.
    pub is_made: bool,
}

/// Reason why the file cannot be opened.
#[derive(Debug, thiserror::Error)]
enum VolumeError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Call(#[from] CallError),
    #[error("a broken answer: {0}")]
    Xdr(#[from] XdrError),
    #[error("{0}")]
    Mount(#[from] MountError),
    #[error("{}", status_name(*.0))]
    Status(u32),
    #[error("not a regular file")]
    NotAFile,
}

/// Name of the state of a failed call (RFC 1813, section 2.6).
pub(super) fn status_name(status: u32) -> String {
    let name = match status {
        1 => "not owner",
        NO_ENTRY => "no such file",
        5 => "I/O error at the server",
        13 => "permission denied",
        17 => "the file exists",
        20 => "not a directory",
        21 => "is a directory",
        22 => "invalid argument",
        27 => "file too large",
        28 => "no space left at the server",
        30 => "read-only file system",
        69 => "quota exceeded",
        70 => "stale file handle",
        10_008 => "the server is busy",
        _ => return format!("failure {status} at the server"),
    };
    name.to_owned()
}

impl Volume {
    /// Opens the file, which is made if it is not there, and writes to its end until it has its size. `tick` is called
    /// between writes, and may stop.
    ///
    /// # Errors
    /// Fails with the export and the reason.
    pub fn open<E>(
        settings: &ReplaySettings,
        machine: &str,
        mut tick: impl FnMut() -> Result<(), E>,
    ) -> Result<Volume, ReplayStop<E>> {
        let (found, root) = mounted(settings, machine)?;
        let invalid = |error: VolumeError| invalid(settings, error);
        let mut caller = connect(settings, found.nfs, machine).map_err(invalid)?;
        let opened = match settings.is_new {
            true => create(&mut caller, &root, &settings.file, GUARDED).map(|handle| (handle, true)),
            false => open(&mut caller, &root, &settings.file),
        };
        let (handle, is_made) = opened.map_err(invalid)?;
        let volume = Volume { server: found.nfs, handle, is_made };
        match volume.fill(&mut caller, settings, &mut tick) {
            Ok(()) => Ok(volume),
            Err(stop) => {
                volume.clean_up(settings, machine).map_err(ReplayStop::Input)?;
                Err(stop)
            }
        }
    }

    /// Writes to the end of the file until it has its size.
    fn fill<E>(
        &self,
        caller: &mut Caller<'_>,
        settings: &ReplaySettings,
        tick: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<(), ReplayStop<E>> {
        let (handle, invalid) = (&self.handle, |error: VolumeError| invalid(settings, error));
        let mut size = size(caller, handle).map_err(invalid)?;
        let is_filled = size < settings.size;
        while size < settings.size {
            tick().map_err(ReplayStop::Stopped)?;
            let step = STEP.min(settings.size - size) as u32;
            size += u64::from(fill(caller, handle, size, step).map_err(invalid)?);
        }
        if is_filled {
            let arguments = Writer::new().opaque(handle).u64(0).u32(0).into_bytes();
            ended(caller, COMMIT, &arguments).map_err(invalid)?;
        }
        Ok(())
    }

    /// Removes the file if the replay made it, unless it has to stay.
    ///
    /// # Errors
    /// As [`Volume::remove`].
    pub fn clean_up(&self, settings: &ReplaySettings, machine: &str) -> Result<(), InputError> {
        if self.is_made && !settings.keep { Volume::remove(settings, machine) } else { Ok(()) }
    }

    /// Removes the file. One that has gone already is no error.
    ///
    /// # Errors
    /// Fails with the export and the reason.
    pub fn remove(settings: &ReplaySettings, machine: &str) -> Result<(), InputError> {
        let (found, root) = mounted(settings, machine)?;
        let place = place(&root, &settings.file);
        let removed = connect(settings, found.nfs, machine)
            .and_then(|mut caller| ended(&mut caller, REMOVE, &place).map(drop));
        match removed {
            Ok(()) | Err(VolumeError::Status(NO_ENTRY)) => Ok(()),
            Err(error) => Err(invalid(settings, error)),
        }
    }
}

/// The error for an export and a file.
fn invalid(settings: &ReplaySettings, error: VolumeError) -> InputError {
    let message = format!("{}: `{}`: {error}", settings.export, excerpt(&settings.file));
    InputError::new("--nfs", message)
}

fn connect<'a>(
    settings: &ReplaySettings,
    to: SocketAddr,
    machine: &'a str,
) -> Result<Caller<'a>, VolumeError> {
    Ok(Caller::connect(to, settings.source, machine, PATIENCE)?)
}

/// The server of the export, and the handle of its root.
fn mounted(settings: &ReplaySettings, machine: &str) -> Result<(Server, Vec<u8>), InputError> {
    let found = Server::find(&settings.export, settings.ports, settings.source, machine);
    // The search names the option of the proxy.
    let found = found.map_err(|error| InputError { file: "--nfs".to_owned(), ..error })?;
    let root = connect(settings, found.mount, machine).and_then(|mut caller| {
        let arguments = mount::path_arguments(&settings.export.path);
        let results = caller.call([MOUNT, mount::VERSION, MNT], &arguments)?;
        Ok(mount::root(&results)?.to_vec())
    });
    let root = root.map_err(|error| invalid(settings, error))?;
    Ok((found, root))
}

/// Calls a procedure of NFS. Returns its results after the state.
fn ended(caller: &mut Caller<'_>, procedure: u32, arguments: &[u8]) -> Result<Vec<u8>, VolumeError> {
    let mut results = caller.call([NFS, VERSION, procedure], arguments)?;
    match Reader::new(&results).u32()? {
        OK => Ok(results.split_off(4)),
        status => Err(VolumeError::Status(status)),
    }
}

/// Arguments that name a file of the root.
fn place(root: &[u8], name: &str) -> Vec<u8> {
    Writer::new().opaque(root).opaque(name.as_bytes()).into_bytes()
}

/// Handle of a file of the root, which is made if it is not there; true if it was made.
fn open(caller: &mut Caller<'_>, root: &[u8], name: &str) -> Result<(Vec<u8>, bool), VolumeError> {
    match lookup(caller, root, name) {
        Err(VolumeError::Status(NO_ENTRY)) => {
            create(caller, root, name, UNCHECKED).map(|handle| (handle, true))
        }
        found => found.map(|handle| (handle, false)),
    }
}

/// Handle of a file of the root.
fn lookup(caller: &mut Caller<'_>, root: &[u8], name: &str) -> Result<Vec<u8>, VolumeError> {
    let results = ended(caller, LOOKUP, &place(root, name))?;
    Ok(Reader::new(&results).opaque(MOST_HANDLE)?.to_vec())
}

/// Handle of a new file of the root. `way` is [`UNCHECKED`] or [`GUARDED`].
fn create(caller: &mut Caller<'_>, root: &[u8], name: &str, way: u32) -> Result<Vec<u8>, VolumeError> {
    // With a mode, and without an owner, a size and times.
    let how = Writer::new().u32(way).u32(1).u32(0o644).u32(0).u32(0).u32(0).u32(0).u32(0).into_bytes();
    let results = ended(caller, CREATE, &Writer::new().raw(&place(root, name)).raw(&how).into_bytes())?;
    let mut reader = Reader::new(&results);
    match reader.u32()? {
        0 => lookup(caller, root, name),
        _ => Ok(reader.opaque(MOST_HANDLE)?.to_vec()),
    }
}

/// Size of a regular file, in bytes.
fn size(caller: &mut Caller<'_>, handle: &[u8]) -> Result<u64, VolumeError> {
    let results = ended(caller, GETATTR, &Writer::new().opaque(handle).into_bytes())?;
    let mut reader = Reader::new(&results);
    if reader.u32()? != REGULAR {
        return Err(VolumeError::NotAFile);
    }
    skip(&mut reader, BEFORE_SIZE - 1)?;
    Ok(reader.u64()?)
}

/// Writes bytes into a file. Returns their number, at least 1.
fn fill(caller: &mut Caller<'_>, handle: &[u8], at: u64, step: u32) -> Result<u32, VolumeError> {
    // Unstable: a COMMIT follows.
    let arguments = Writer::new().opaque(handle).u64(at).u32(step).u32(0).opaque(&vec![FILL; step as usize]);
    let results = ended(caller, WRITE, &arguments.into_bytes())?;
    let mut reader = Reader::new(&results);
    for numbers in [FORMER_ATTRIBUTES, ATTRIBUTES] {
        if reader.u32()? != 0 {
            skip(&mut reader, numbers)?;
        }
    }
    match reader.u32()? {
        0 => Err(VolumeError::Status(28)),
        written => Ok(written.min(step)),
    }
}

/// Number of bytes in the results of a READ after its state.
pub(super) fn read_count(reader: &mut Reader<'_>) -> Result<u32, XdrError> {
    if reader.u32()? != 0 {
        skip(reader, ATTRIBUTES)?;
    }
    reader.u32()
}

fn skip(reader: &mut Reader<'_>, numbers: usize) -> Result<(), XdrError> {
    (0..numbers).try_for_each(|_| reader.u32().map(drop))
}
