//! The one schema, as numbered steps. A step that was released is never changed; what comes later is a step of its own.
//! Times are nanoseconds of the engine's time (since 2020-01-01T00:00:00Z); what nothing is looked up by is JSON.

/// The steps, the first of which makes a store from nothing.
pub const STEPS: &[&str] = &["
CREATE TABLE decisions (
    id BIGINT PRIMARY KEY,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    client TEXT,
    sequence BIGINT,
    request_key TEXT,
    shown TEXT NOT NULL,
    expires BIGINT,
    released BIGINT
);
CREATE INDEX decisions_by_client ON decisions (client, sequence) WHERE client IS NOT NULL;
CREATE TABLE commitments (
    decision BIGINT PRIMARY KEY,
    held TEXT NOT NULL
);
CREATE TABLE migrations (
    id BIGINT PRIMARY KEY,
    at BIGINT NOT NULL,
    decision BIGINT NOT NULL,
    position BIGINT NOT NULL,
    task TEXT NOT NULL,
    job TEXT,
    host_from TEXT NOT NULL,
    host_to TEXT NOT NULL,
    link TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT
);
CREATE TABLE jobs (
    name TEXT PRIMARY KEY,
    down BIGINT,
    evictions_per_hour BIGINT
);
CREATE TABLE clusters (
    version BIGINT PRIMARY KEY,
    at BIGINT NOT NULL,
    origin TEXT NOT NULL,
    cluster TEXT NOT NULL
);
"];
