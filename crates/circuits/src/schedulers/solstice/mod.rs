//! Solstice and its variants: long matchings of the largest demand first, then shorter ones.

mod bounded;
mod etalon;
mod fill;
mod paper;

pub use bounded::{Solstice, SolsticeSettings};
pub use etalon::{Etalon, EtalonSettings, Prepare};
pub use paper::{Paper, PaperSettings};

pub(super) use bounded::REGISTRATION as SOLSTICE;
pub(super) use etalon::REGISTRATION as ETALON;
pub(super) use fill::{align, water_fill};
pub(super) use paper::{REGISTRATION as PAPER, Slices};
