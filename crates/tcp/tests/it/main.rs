//! Tests of TCP: transfers, windows and recovery.

mod recovery;
mod support;
mod transfers;
mod windows;
