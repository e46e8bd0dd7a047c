//! Tests of TCP: transfers, windows, recovery, and the sender beside that of Linux.

mod kernel;
mod recovery;
mod support;
mod transfers;
mod windows;
