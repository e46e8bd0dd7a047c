//! Arrivals modulated by a Markov chain (MMPP), in discrete steps of time: Zhu's thesis, section 4.2.1.
//!
//! A chain moves between states once per step; in each step a state brings requests ([`Requests`]) of random work
//! ([`Sizes`]). [`Mmpp::bound`] bounds the moment generating function of the work in n steps by
//! `exp(theta (rho n + sigma))`. The network calculus ([`crate::snc`]) needs nothing else of arrivals. [`crate::fit`]
//! derives a model from a trace.
//!
//! There are two deviations from the thesis. Table 4.1 prints `rho = sp(E Q)`, which must be `log(sp(E Q)) / theta`.
//! Also, `sigma = 0` holds only for chains that are stochastically monotone ([`Sigma`]).

mod bound;
mod bound_cache;
mod chain;
mod error;
mod model;
mod perron;
mod sizes;
mod state;

pub use bound::Bound;
pub use error::{MAX_STATES, ModelError};
pub use model::{Mmpp, Sigma};
pub use sizes::Sizes;
pub use state::{Requests, State};
