//! Integration tests of traces: dialects, devices, statistics, and values of the released code.

mod bursts;
mod device;
mod dialects;
mod example;
mod golden;
mod read;
mod statistics;
