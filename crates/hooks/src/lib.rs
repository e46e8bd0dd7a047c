//! Advised moves for a system without an executor of its own. The leader posts each move to the hook's address, until the
//! hook accepts it or the move expires. An accepted move is taken; the system reports the end by `POST
//! /v1/migrations/{id}`, or the hook's response says it at once. A request may arrive twice, under one idempotency key.

mod hook;
mod run;

pub use self::hook::Hook;
pub use self::run::carry_out;
