//! Solstice and its kin: demand is stuffed until all ports have the same, then taken apart into long perfect matchings.

mod etalon;
mod fill;

pub use etalon::{Etalon, EtalonSettings, Prepare};

pub(super) use etalon::REGISTRATION as ETALON;
