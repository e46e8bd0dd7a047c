//! Integration tests of captures: files, exports, and places.

mod classes;
mod completeness;
mod exporters;
mod exports;
mod losses;
mod packets;
mod places;
mod support;
