//! Tests of agreements: workloads that arrive one by one, their promises, and their entries in a ledger.

mod agreements;
