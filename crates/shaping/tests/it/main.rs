//! Tests of shaping: the server compared with a model that looks at everything, properties of limits and caps, and
//! tables.

mod changes;
mod hostile;
mod properties;
mod scans;
mod support;
mod tables;

use leeward_testing::allocations::Counting;

#[global_allocator]
static COUNTING: Counting = Counting;
