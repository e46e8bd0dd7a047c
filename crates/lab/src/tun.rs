//! TUN devices: a host's only interface, whose frames this process reads and writes.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;
use rustix::ioctl::{IntegerSetter, Updater, ioctl};

use crate::error::LabError;

/// `struct ifreq` as `TUNSETIFF` reads it: a name and flags, padded to the kernel's size.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: u16,
    padding: [u8; 22],
}

/// Requests of `linux/if_tun.h`.
const SET_INTERFACE: u32 = 0x4004_54ca;
const SET_OFFLOAD: u32 = 0x4004_54d0;
/// Packets without link headers, without a protocol word, and with a header of `virtio_net` in front.
const FLAGS: u16 = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
const IFF_TUN: u16 = 0x0001;
const IFF_NO_PI: u16 = 0x1000;
const IFF_VNET_HDR: u16 = 0x4000;
/// Frames may carry partial checksums: nobody computes them, because no frame crosses a wire.
const TUN_F_CSUM: usize = 0x01;

/// Opens a new device in the current thread's namespace. Reads and writes do not block.
///
/// # Errors
/// Returns an error if the kernel has no TUN devices, or a device of this name exists.
pub(crate) fn open(name: &str) -> Result<File, LabError> {
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open("/dev/net/tun")
        .map_err(LabError::NoTun)?;
    let mut request = Request { name: [0; 16], flags: FLAGS, padding: [0; 22] };
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    set(&device, request).map_err(LabError::system(format!("TUN device {name}")))?;
    Ok(device)
}

#[allow(unsafe_code, reason = "no library that the project uses wraps these two requests")]
fn set(device: &File, mut request: Request) -> std::io::Result<()> {
    // SAFETY: the kernel reads and writes a `struct ifreq` of 40 bytes for this request; `Request` has its layout, and
    // any bytes are valid for its fields.
    unsafe { ioctl(device, Updater::<SET_INTERFACE, Request>::new(&mut request))? };
    // SAFETY: the argument of this request is an integer.
    unsafe { ioctl(device, IntegerSetter::<SET_OFFLOAD>::new_usize(TUN_F_CSUM))? };
    Ok(())
}

const _: () = assert!(size_of::<Request>() == 40);
