//! Integration tests of the calculus: properties of every analysis, replays, simulations, and values of the released
//! code.

mod assumptions;
mod dnc;
mod dnc_golden;
mod dnc_replay;
mod fit;
mod mmpp;
mod mmpp_golden;
mod rb_curve;
mod rb_golden;
mod snc;
mod snc_golden;
mod snc_replay;
mod snc_simulation;
mod snc_whole;
mod support;
