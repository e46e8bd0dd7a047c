//! Schema as numbered steps, and the statements that both databases share. Released steps never change; later
//! changes are new steps. Times are nanoseconds of engine time (since 2020-01-01T00:00:00Z). Data that is
//! never searched is stored as JSON.
//!
//! The SQL is hand-written: the statements are few, and both databases execute the same text.

/// Steps of the schema; the first creates it.
pub const STEPS: &[&str] = &[
    "
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
",
    "
CREATE TABLE leadership (
    term BIGINT NOT NULL,
    commits BIGINT NOT NULL,
    address TEXT
);
INSERT INTO leadership (term, commits) VALUES (0, 0);
CREATE TABLE commits (
    number BIGINT PRIMARY KEY,
    touched TEXT NOT NULL
);
",
    "
CREATE INDEX decisions_by_key ON decisions (id, request_key) WHERE request_key IS NOT NULL;
",
    "
CREATE TABLE service (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
",
    "
CREATE TABLE decision_search (
    decision BIGINT PRIMARY KEY REFERENCES decisions (id) ON DELETE CASCADE,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    policy TEXT NOT NULL,
    client TEXT,
    request_key TEXT,
    ref TEXT,
    job TEXT,
    fallback BIGINT NOT NULL,
    gain BIGINT,
    places TEXT NOT NULL
);
CREATE INDEX decision_search_by_time ON decision_search (at, decision);
CREATE INDEX decision_search_by_client ON decision_search (client, decision) WHERE client IS NOT NULL;
CREATE INDEX decision_search_by_key ON decision_search (request_key) WHERE request_key IS NOT NULL;
CREATE INDEX decision_search_by_ref ON decision_search (ref, decision) WHERE ref IS NOT NULL;
CREATE INDEX decision_search_by_job ON decision_search (job, decision) WHERE job IS NOT NULL;
CREATE TABLE periods (
    length BIGINT NOT NULL,
    ends BIGINT NOT NULL,
    began BIGINT NOT NULL,
    cluster BIGINT NOT NULL,
    counts TEXT NOT NULL,
    hot TEXT NOT NULL,
    links TEXT NOT NULL,
    PRIMARY KEY (length, ends, began)
);
CREATE TABLE link_names (
    cluster BIGINT PRIMARY KEY,
    names TEXT NOT NULL
);
",
    "
ALTER TABLE migrations ADD COLUMN executor TEXT;
",
    "
CREATE TABLE enforcers (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
",
];

/// First version of the schema with [`INSERT_SEARCH`].
pub const SEARCHABLE: i64 = 5;

/// All decisions, without their held resources.
pub const ALL_DECISIONS: &str = "
SELECT id, at, client, sequence, request_key, shown, expires, released, CAST(NULL AS TEXT) FROM decisions ORDER BY id";

/// Id of the last decision; null without decisions.
pub const MAX_DECISION: &str = "SELECT max(id) FROM decisions";

/// Idempotency entries: each client's last decision, and the last $1 keys. A recursive query finds each next client by
/// the index. The time therefore depends on the number of clients and not on the number of decisions. The query finds
/// at most 20,000 clients. The most recent clients are also in the last decisions.
pub const CALLERS: &str = "
WITH RECURSIVE known (client, number) AS (
    SELECT min(client), 1 FROM decisions WHERE client IS NOT NULL
    UNION ALL
    SELECT (SELECT min(client) FROM decisions WHERE client > known.client), number + 1 FROM known
    WHERE client IS NOT NULL AND number < 20000
), last (client, sequence) AS (
    SELECT client, (SELECT max(sequence) FROM decisions WHERE client = known.client) FROM known
    WHERE client IS NOT NULL
)
SELECT client, sequence, NULL,
    (SELECT max(id) FROM decisions WHERE client = last.client AND sequence = last.sequence) FROM last
UNION ALL
SELECT NULL, CAST(NULL AS BIGINT), request_key, id FROM
    (SELECT request_key, id FROM decisions WHERE request_key IS NOT NULL ORDER BY id DESC LIMIT $1) AS keyed
ORDER BY 4";

/// Budgets of jobs.
pub const JOBS: &str = "SELECT name, down, evictions_per_hour FROM jobs ORDER BY name";

/// Modes that were set last.
pub const MODES: &str = "SELECT value FROM service WHERE name = 'modes'";

/// Stores the modes.
pub const UPSERT_MODES: &str = "
INSERT INTO service (name, value) VALUES ('modes', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value";

/// Version of the set of promises.
pub const PROMISES: &str = "SELECT value FROM service WHERE name = 'promises'";

/// Stores the version of the set of promises.
pub const UPSERT_PROMISES: &str = "
INSERT INTO service (name, value) VALUES ('promises', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value";

/// Enforcers.
pub const ENFORCERS: &str = "SELECT name, value FROM enforcers ORDER BY name";

/// Inserts or updates an enforcer.
pub const UPSERT_ENFORCER: &str = "
INSERT INTO enforcers (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";

/// Deletes an enforcer.
pub const DELETE_ENFORCER: &str = "DELETE FROM enforcers WHERE name = $1";

/// Open moves, and the most recent answered ones.
pub const MIGRATIONS: &str = "
SELECT id, at, decision, position, task, job, host_from, host_to, link, state, executor, reason FROM migrations
WHERE state IN ('advised', 'taken') OR id >= (SELECT coalesce(max(id), 0) FROM migrations) - 1000 ORDER BY id";

/// Last version of the cluster.
pub const CLUSTER: &str = "
SELECT version, at, origin, cluster FROM clusters ORDER BY version DESC LIMIT 1";

/// Last version of the cluster from a file.
pub const FILE: &str = "
SELECT version, at, origin, cluster FROM clusters WHERE origin = 'file' ORDER BY version DESC LIMIT 1";

/// Inserts a decision.
pub const INSERT_DECISION: &str = "
INSERT INTO decisions (id, at, kind, client, sequence, request_key, shown, expires, released)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

/// Inserts the searchable fields of a decision.
pub const INSERT_SEARCH: &str = "
INSERT INTO decision_search (decision, at, kind, policy, client, request_key, ref, job, fallback, gain, places)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";

/// Updates the searchable fields that change after a decision.
pub const UPDATE_SEARCH: &str = "UPDATE decision_search SET gain = $1, places = $2 WHERE decision = $3";

/// Inserts or updates a period.
pub const UPSERT_PERIOD: &str = "
INSERT INTO periods (length, ends, began, cluster, counts, hot, links) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (length, ends, began)
DO UPDATE SET cluster = excluded.cluster, counts = excluded.counts, hot = excluded.hot, links = excluded.links";

/// Deletes the periods of length $1 that end before $2.
pub const FORGET_PERIODS: &str = "DELETE FROM periods WHERE length = $1 AND ends < $2";

/// Inserts the names of a version's links.
pub const INSERT_LINK_NAMES: &str =
    "INSERT INTO link_names (cluster, names) VALUES ($1, $2) ON CONFLICT (cluster) DO NOTHING";

/// Periods of length $1 that end after $2 and began before $3.
pub const PERIODS: &str = "
SELECT length, ends, began, cluster, counts, hot, links FROM periods
WHERE length = $1 AND ends > $2 AND began < $3 ORDER BY ends, began";

/// The same without the links.
pub const PERIODS_WITHOUT_LINKS: &str = "
SELECT length, ends, began, cluster, counts, hot, '' FROM periods
WHERE length = $1 AND ends > $2 AND began < $3 ORDER BY ends, began";

/// Versions of the cluster that the periods of length $1 between $2 and $3 belong to.
pub const PERIOD_VERSIONS: &str =
    "SELECT DISTINCT cluster FROM periods WHERE length = $1 AND ends > $2 AND began < $3 ORDER BY cluster";

/// Names of the links of version $1.
pub const LINK_NAMES: &str = "SELECT names FROM link_names WHERE cluster = $1";

/// Ids of the decisions from $1 up to $2 with the largest gains or losses, at most $3.
pub const LARGEST_GAINS: &str = "
SELECT decision FROM decision_search WHERE at >= $1 AND at < $2 AND gain <> 0
ORDER BY abs(gain) DESC, decision DESC LIMIT $3";

/// Inserts held resources of a decision.
pub const INSERT_COMMITMENT: &str = "INSERT INTO commitments (decision, held) VALUES ($1, $2)";

/// Deletes held resources of a decision.
pub const DELETE_COMMITMENT: &str = "DELETE FROM commitments WHERE decision = $1";

/// Sets the end of a decision's work, unless it is set.
pub const RELEASE: &str = "UPDATE decisions SET released = $1 WHERE id = $2 AND released IS NULL";

/// Updates the details of a decision.
pub const UPDATE_DETAILS: &str = "UPDATE decisions SET shown = $1 WHERE id = $2";

/// Updates held resources of a decision.
pub const UPDATE_COMMITMENT: &str = "UPDATE commitments SET held = $1 WHERE decision = $2";

/// Inserts a move, or updates its state.
pub const UPSERT_MIGRATION: &str = "
INSERT INTO migrations (id, at, decision, position, task, job, host_from, host_to, link, state, executor, reason)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, executor = excluded.executor, reason = excluded.reason";

/// Inserts or updates the budget of a job.
pub const UPSERT_JOB: &str = "
INSERT INTO jobs (name, down, evictions_per_hour) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET down = excluded.down, evictions_per_hour = excluded.evictions_per_hour";

/// Deletes the budget of a job.
pub const DELETE_JOB: &str = "DELETE FROM jobs WHERE name = $1";

/// Inserts a version of the cluster.
pub const INSERT_CLUSTER: &str =
    "INSERT INTO clusters (version, at, origin, cluster) VALUES ($1, $2, $3, $4)";

/// Deletes old rows: answered moves before the last 100,000, versions of the cluster except the last 1,000 and the last
/// version from a file, and names of links without periods.
pub const SWEEPS: [&str; 3] = [
    "DELETE FROM migrations WHERE id <= (SELECT max(id) FROM migrations) - 100000
    AND state NOT IN ('advised', 'taken')",
    "DELETE FROM clusters WHERE version <= (SELECT max(version) FROM clusters) - 1000
    AND version <> (SELECT coalesce(max(version), 0) FROM clusters WHERE origin = 'file')",
    "DELETE FROM link_names WHERE cluster < (SELECT coalesce(min(cluster), 0) FROM periods)",
];
