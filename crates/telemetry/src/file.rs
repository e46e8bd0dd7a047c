//! The file: written in pieces, compressed and with a checksum, and replaced at once.

use std::convert::Infallible;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, IntoInnerError, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use leeward_fabric::Nanos;
use leeward_ledger::LedgerSettings;

use leeward_service::{Handle, ReadTelemetry, TelemetryState, in_background};

use super::rows::Rows;

/// Shortest time between two writes.
const PERIOD: Duration = Duration::from_secs(10);
/// Resources in a piece of the state. The coordinator copies a piece in about 0.1 ms.
const PIECE: u32 = 4_096;
/// Largest file, and largest content. The content for 100,000 hosts has 60 MB.
const MOST: u64 = 256 << 20;

/// A file with telemetry.
#[derive(Clone, Debug)]
pub struct TelemetryFile {
    path: Arc<Path>,
}

/// Reason why a telemetry file was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryFileError {
    /// The system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The path names a folder, a pipe or a device.
    #[error("not a regular file")]
    NotAFile,
    /// The file has more than the limit.
    #[error("more than {} MiB", MOST >> 20)]
    TooLarge,
    /// The content is no telemetry.
    #[error("invalid content: {0}")]
    Invalid(#[from] serde_json::Error),
    /// Another version wrote the file.
    #[error("format {0}, which this version does not know")]
    Format(u32),
    /// The service changed its cluster or stopped meanwhile.
    #[error("the coordinator is not available")]
    Unavailable,
}

impl TelemetryFile {
    /// The file at a path; nothing is read yet.
    pub fn new(path: PathBuf) -> TelemetryFile {
        TelemetryFile { path: path.into() }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the telemetry that is fresh at the time `now`. A file that does not exist has none.
    ///
    /// # Errors
    /// A [`TelemetryFileError`] if the file cannot be read or is broken.
    pub fn read(&self, now: Nanos, settings: &LedgerSettings) -> Result<TelemetryState, TelemetryFileError> {
        let metadata = match fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(TelemetryState::default()),
            metadata => metadata?,
        };
        // A pipe would block the start.
        if !metadata.is_file() {
            return Err(TelemetryFileError::NotAFile);
        }
        if metadata.len() > MOST {
            return Err(TelemetryFileError::TooLarge);
        }
        let mut state = decode(BufReader::new(File::open(&self.path)?))?;
        state.drop_stale(now, settings.known_for());
        Ok(state)
    }

    /// Replaces the content at once: a reader sees the old content or the new one. Other users cannot read the file.
    ///
    /// # Errors
    /// A [`TelemetryFileError`] if the file cannot be written.
    pub fn write(&self, state: TelemetryState) -> Result<(), TelemetryFileError> {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let new = self.path.with_file_name(name);
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            // A file that was left by a crash.
            _ => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        let written = encode(state, BufWriter::new(file)).and_then(|()| Ok(fs::rename(&new, &self.path)?));
        if written.is_err() {
            // The error of the write counts.
            let _ = fs::remove_file(&new);
        }
        written
    }

    /// Writes the present telemetry. Returns the number of links and devices.
    ///
    /// # Errors
    /// A [`TelemetryFileError`] if the coordinator is not available or the file cannot be written.
    pub async fn save(&self, handle: &Handle) -> Result<usize, TelemetryFileError> {
        let fabric = handle.last_snapshot().fabric.clone();
        let (mut pieces, mut first) = (Vec::new(), Some(0));
        while let Some(number) = first {
            let piece = handle.call(ReadTelemetry { first: number, most: PIECE }, fabric.clone()).await;
            let piece = piece.map_err(|_| TelemetryFileError::Unavailable)?;
            first = piece.next;
            pieces.push(piece);
        }
        let file = self.clone();
        let writing = in_background(move || {
            let mut state = TelemetryState::default();
            pieces.into_iter().for_each(|piece| state.add(&fabric, piece));
            let count = state.estimates.len();
            file.write(state).map(|()| count)
        });
        writing.await.map_err(|_| TelemetryFileError::Unavailable)?
    }

    /// Writes the telemetry every ten seconds, or at each interval if that is longer.
    pub async fn keep(&self, handle: &Handle, interval: Nanos) -> Infallible {
        let period = PERIOD.max(Duration::from_nanos(interval.0));
        let mut fails = false;
        loop {
            tokio::time::sleep(period).await;
            match self.save(handle).await {
                Ok(_) if fails => {
                    tracing::info!(file = %self.path.display(), "telemetry file written again");
                    fails = false;
                }
                // The next attempt follows.
                Ok(_) | Err(TelemetryFileError::Unavailable) => {}
                Err(error) if !fails => {
                    let file = self.path.display();
                    tracing::warn!(%file, %error, "telemetry file not written: a restart would begin without telemetry");
                    fails = true;
                }
                Err(_) => {}
            }
        }
    }
}

/// Compresses telemetry, with a checksum.
fn encode(state: TelemetryState, out: impl Write) -> Result<(), TelemetryFileError> {
    let mut encoder = zstd::Encoder::new(out, 1)?;
    encoder.include_checksum(true)?;
    // The compressor takes long for many short pieces.
    let mut pieces = BufWriter::with_capacity(1 << 16, encoder);
    serde_json::to_writer(&mut pieces, &Rows::of(state))?;
    pieces.into_inner().map_err(IntoInnerError::into_error)?.finish()?.flush()?;
    Ok(())
}

/// Decompresses telemetry, within the limit.
fn decode(file: impl Read) -> Result<TelemetryState, TelemetryFileError> {
    let mut text = Vec::new();
    zstd::Decoder::new(file)?.take(MOST + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MOST {
        return Err(TelemetryFileError::TooLarge);
    }
    serde_json::from_slice::<Rows>(&text)?.state().map_err(TelemetryFileError::Format)
}
