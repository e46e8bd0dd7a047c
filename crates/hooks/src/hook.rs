//! The hook, and one request.

use std::io::Read as _;

use leeward_fabric::Nanos;
use leeward_fabric::input::excerpt;
use leeward_prometheus::{Access, parse_address};
use leeward_records::{Clock, Migration, MigrationAnswer, MoveOutcome};
use leeward_settings::HookSettings;
use serde::Deserialize;
use serde_json::json;

/// Largest response that is read, in bytes.
const MAX_RESPONSE_BYTES: u64 = 64 << 10;
/// Largest number of characters of a reason.
const LONGEST_REASON: usize = 1_000;

/// A hook that can be called.
pub struct Hook {
    agent: ureq::Agent,
    access: Access,
    /// Name of the executor of moves that the hook takes.
    name: String,
    /// Time limit of a request.
    timeout: Nanos,
    /// Time limit for the first answer to a move.
    limit: Nanos,
}

/// Body of a response.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Response {
    answer: Word,
    reason: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    #[default]
    Taken,
    Done,
    Refused,
    Failed,
}

impl Hook {
    /// Creates a hook for moves with the time limit `limit` for the first answer; sends nothing yet.
    ///
    /// # Errors
    /// Returns the field and a message.
    pub fn new(settings: &HookSettings, limit: Nanos) -> Result<Hook, (&'static str, String)> {
        let HookSettings { name, url, http, timeout } = settings;
        let url = parse_address(url).map_err(|_| ("url", EXPECTED.to_owned()))?;
        let access = Access::read(&url, http.as_deref()).map_err(|error| ("http", error.to_string()))?;
        Ok(Hook { agent: access.agent(*timeout), access, name: name.clone(), timeout: *timeout, limit })
    }

    /// True if the answer to a request that begins now comes before the move expires.
    pub(super) fn has_time(&self, migration: &Migration, now: Nanos) -> bool {
        now.plus(self.timeout) <= migration.at.plus(self.limit)
    }

    /// Posts a move. Blocks until the response, or until the time limit.
    ///
    /// # Errors
    /// The reason for which the hook did not accept the move.
    pub fn post(&self, migration: &Migration, clock: &Clock) -> Result<MigrationAnswer, String> {
        let headers = self.access.headers(clock.unix_ms(clock.now()))?;
        let key = format!("move-{}-{}", migration.id, migration.at.0);
        let post = headers
            .iter()
            .fold(self.agent.post(self.access.url()), |request, (name, value)| request.header(name, value))
            .header("content-type", "application/json")
            .header("idempotency-key", key);
        let mut response =
            post.send(body(migration, clock).to_string()).map_err(|error| error.to_string())?;
        let status = response.status().as_u16();
        let mut text = String::new();
        let read = response.body_mut().as_reader().take(MAX_RESPONSE_BYTES).read_to_string(&mut text);
        if status == 401 {
            self.access.rejected();
        }
        if !(200..300).contains(&status) {
            return Err(format!("status {status}: {}", excerpt(&text)));
        }
        read.map_err(|error| error.to_string())?;
        self.answer(&text)
    }

    /// Answer to a move, from the body of an accepting response. An empty body takes the move.
    fn answer(&self, text: &str) -> Result<MigrationAnswer, String> {
        let response: Response = if text.trim().is_empty() {
            Response::default()
        } else {
            serde_json::from_str(text).map_err(|error| format!("`{}`: {error}", excerpt(text)))?
        };
        let reason = response.reason.map(|reason| reason.chars().take(LONGEST_REASON).collect());
        let outcome = match response.answer {
            Word::Taken => MoveOutcome::Taken,
            Word::Done => MoveOutcome::Done,
            Word::Refused => MoveOutcome::Refused(reason),
            Word::Failed => MoveOutcome::Failed(reason),
        };
        Ok(MigrationAnswer { outcome, executor: Some(self.name.clone()) })
    }
}

const EXPECTED: &str = "expected the address of a hook, such as http://scheduler:8080/moves, without `?`, `#` and a \
                        password; credentials belong into the file of `http`";

/// The move as the hook receives it.
fn body(migration: &Migration, clock: &Clock) -> serde_json::Value {
    let Migration { id, at, decision, task, job, from, to, link, .. } = migration;
    json!({
        "id": id.to_string(),
        "time": clock.text(*at),
        "decision": decision.to_string(),
        "task": task,
        "job": job,
        "from": from,
        "to": to,
        "link": link,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::thread;

    use leeward_fabric::Nanos;
    use leeward_records::{DecisionId, MigrationState};

    use super::*;

    fn migration() -> Migration {
        Migration {
            id: 7,
            at: Nanos(5),
            decision: DecisionId(3),
            index: 0,
            task: "t0".to_owned(),
            job: Some("crawl".to_owned()),
            from: "r0h0".to_owned(),
            to: "r1h1".to_owned(),
            link: "r0:uplink".to_owned(),
            state: MigrationState::Advised,
            executor: None,
            reason: None,
        }
    }

    const LIMIT: Nanos = Nanos(300 * Nanos::SECOND.0);

    /// Answers one request with this status and body. Returns the outcome, and the head and body of the request.
    fn post(status: &str, body: &str) -> (Result<MoveOutcome, String>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/moves", listener.local_addr().expect("an address"));
        let response =
            format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a request");
            let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
            let (mut request, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a head");
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a length");
                }
                request += &line;
                if line == "\r\n" {
                    break;
                }
            }
            let mut content = vec![0; length];
            reader.read_exact(&mut content).expect("a body");
            stream.write_all(response.as_bytes()).expect("the client reads");
            request + &String::from_utf8_lossy(&content)
        });
        let settings = HookSettings { url, name: "scheduler".to_owned(), ..HookSettings::default() };
        let hook = Hook::new(&settings, LIMIT).expect("a valid address");
        let outcome =
            hook.post(&migration(), &Clock::system()).map(|MigrationAnswer { outcome, executor }| {
                assert_eq!(executor.as_deref(), Some("scheduler"), "the name, and not the address");
                outcome
            });
        (outcome, server.join().expect("the server answers"))
    }

    #[test]
    fn an_accepted_move_is_taken_and_the_response_may_say_more() {
        let (answer, request) = post("204 No Content", "");
        assert_eq!(answer, Ok(MoveOutcome::Taken));
        assert!(request.to_lowercase().contains("idempotency-key: move-7-5"), "{request}");
        assert!(request.contains(r#""to":"r1h1""#) && request.contains(r#""id":"7""#), "{request}");
        for (body, expected) in [
            (r#"{"answer": "done"}"#, MoveOutcome::Done),
            (r#"{"answer": "refused", "reason": "busy"}"#, MoveOutcome::Refused(Some("busy".to_owned()))),
            (r#"{"answer": "failed"}"#, MoveOutcome::Failed(None)),
            (r#"{"accepted": true}"#, MoveOutcome::Taken),
        ] {
            assert_eq!(post("200 OK", body).0, Ok(expected), "{body}");
        }
    }

    #[test]
    fn a_move_that_the_hook_does_not_accept_has_a_reason() {
        let reason = |status, body| post(status, body).0.expect_err("not accepted");
        assert_eq!(reason("503 Service Unavailable", "later"), "status 503: later");
        assert!(reason("200 OK", "no json").contains("no json"));
        assert!(reason("302 Found", "").starts_with("status 302"));
    }

    #[test]
    fn an_invalid_setting_of_a_hook_is_named_with_its_file() {
        let hook = |url: &str, http: Option<&str>| {
            let (url, http) = (url.to_owned(), http.map(str::to_owned));
            Hook::new(&HookSettings { url, http, ..HookSettings::default() }, LIMIT).err().expect("an error")
        };
        assert_eq!(hook("scheduler", None), ("url", EXPECTED.to_owned()));
        assert_eq!(
            hook("scheduler", Some("missing.yaml")),
            ("url", EXPECTED.to_owned()),
            "the address first"
        );
        let (field, message) = hook("http://scheduler", Some("missing.yaml"));
        assert_eq!(field, "http");
        assert!(message.starts_with("missing.yaml: "), "{message}");
    }
}
