//! The hook, and one request.

use std::io::Read as _;

use leeward_fabric::input::{InputError, excerpt};
use leeward_prometheus::{Access, parse_address};
use leeward_records::{Clock, Migration};
use leeward_service::MigrationAnswer;
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
    /// Name of the executor: the address.
    executor: String,
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
    /// Creates a hook; sends nothing yet.
    ///
    /// # Errors
    /// [`InputError`]: without a field for the address, or with the field of the credentials file.
    pub fn new(settings: &HookSettings) -> Result<Hook, InputError> {
        let url = parse_address(&settings.url).map_err(|_| InputError::new("hook", EXPECTED))?;
        let access = Access::read(&url, settings.http.as_deref())?;
        Ok(Hook { agent: access.agent(settings.timeout), access, executor: url })
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
        Ok(match response.answer {
            Word::Taken => MigrationAnswer::Taken(self.executor.chars().take(200).collect()),
            Word::Done => MigrationAnswer::Done,
            Word::Refused => MigrationAnswer::Refused(reason),
            Word::Failed => MigrationAnswer::Failed(reason),
        })
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
            reason: None,
        }
    }

    /// Answers one request with this status and body. Returns the hook's answer, and the head and body of the request.
    fn post(status: &str, body: &str) -> (Result<MigrationAnswer, String>, String) {
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
        let settings = HookSettings { url: url.clone(), ..HookSettings::default() };
        let answer = Hook::new(&settings).expect("a valid address").post(&migration(), &Clock::system());
        let answer = answer.map(|answer| match answer {
            MigrationAnswer::Taken(executor) => {
                assert_eq!(executor, url);
                MigrationAnswer::Taken("hook".to_owned())
            }
            other => other,
        });
        (answer, server.join().expect("the server answers"))
    }

    #[test]
    fn an_accepted_move_is_taken_and_the_response_may_say_more() {
        let (answer, request) = post("204 No Content", "");
        assert_eq!(answer, Ok(MigrationAnswer::Taken("hook".to_owned())));
        assert!(request.to_lowercase().contains("idempotency-key: move-7-5"), "{request}");
        assert!(request.contains(r#""to":"r1h1""#) && request.contains(r#""id":"7""#), "{request}");
        for (body, expected) in [
            (r#"{"answer": "done"}"#, MigrationAnswer::Done),
            (r#"{"answer": "refused", "reason": "busy"}"#, MigrationAnswer::Refused(Some("busy".to_owned()))),
            (r#"{"answer": "failed"}"#, MigrationAnswer::Failed(None)),
            (r#"{"accepted": true}"#, MigrationAnswer::Taken("hook".to_owned())),
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
        let settings = HookSettings { url: "scheduler".to_owned(), ..HookSettings::default() };
        let error = Hook::new(&settings).err().expect("no address");
        assert_eq!((error.field, error.message.as_str()), (None, EXPECTED));
    }
}
