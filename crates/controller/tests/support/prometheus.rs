//! A fake Prometheus for tests. Each test may replace its healthy responses.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

/// Bytes per second of each port, in and out.
const RATES: [(&str, f64, f64); 3] = [("r0-up1", 1e7, 2e7), ("r0-up2", 1e7, 2e7), ("r1-up1", 1.1e8, 3e7)];

/// A query: fields of the form, and the headers as one text.
pub struct Question {
    pub query: String,
    pub time: f64,
    pub headers: String,
}

/// A response: status, headers and body.
pub type Answer = (u16, &'static str, Vec<u8>);
pub type Answers = dyn Fn(&Question) -> Answer + Send + Sync;

/// A server whose responses can be changed at any time. The server ends with the process.
pub struct Fake {
    pub url: String,
    answers: Arc<Mutex<Arc<Answers>>>,
    headers: Arc<Mutex<String>>,
}

impl Fake {
    pub fn start() -> Fake {
        Fake::listen(None)
    }

    /// A server with TLS. `right.pem` has the authority that signed its certificate; `wrong.pem` has another one.
    pub fn with_tls(folder: &Path) -> Fake {
        let authority = |name: &str| {
            let mut spec = CertificateParams::default();
            spec.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            spec.distinguished_name.push(DnType::CommonName, name);
            let key = KeyPair::generate().expect("a key");
            let certificate = spec.self_signed(&key).expect("a certificate");
            std::fs::write(folder.join(format!("{name}.pem")), certificate.pem()).expect("a file");
            (certificate, key)
        };
        let ((right, authority_key), _) = (authority("right"), authority("wrong"));
        let spec = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        let certificate = spec.signed_by(&key, &right, &authority_key).expect("a certificate");
        let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.expect("versions").with_no_client_auth().with_single_cert(chain, key);
        Fake::listen(Some(Arc::new(config.expect("the settings are compatible"))))
    }

    fn listen(tls: Option<Arc<ServerConfig>>) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let url = match &tls {
            Some(_) => format!("https://localhost:{port}"),
            None => format!("http://127.0.0.1:{port}"),
        };
        let good: Arc<Answers> = Arc::new(healthy_answer);
        let answers = Arc::new(Mutex::new(good));
        let headers = Arc::new(Mutex::new(String::new()));
        let (given, last_headers) = (answers.clone(), headers.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (given, last_headers, tls) = (given.clone(), last_headers.clone(), tls.clone());
                std::thread::spawn(move || match tls {
                    Some(tls) => {
                        let connection = ServerConnection::new(tls).expect("a connection");
                        serve(StreamOwned::new(connection, stream), &given, &last_headers);
                    }
                    None => serve(stream, &given, &last_headers),
                });
            }
        });
        Fake { url, answers, headers }
    }

    pub fn answer(&self, answers: impl Fn(&Question) -> Answer + Send + Sync + 'static) {
        *self.answers.lock().expect("the lock is not poisoned") = Arc::new(answers);
    }

    /// Headers of the last request.
    pub fn headers(&self) -> String {
        self.headers.lock().expect("the lock is not poisoned").clone()
    }
}

fn serve(stream: impl Read + Write, answers: &Mutex<Arc<Answers>>, last_headers: &Mutex<String>) {
    let mut reader = BufReader::new(stream);
    let (mut headers, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).is_err() || line.trim().is_empty() {
            break;
        }
        if let Some(bytes) = line.to_lowercase().strip_prefix("content-length:") {
            length = bytes.trim().parse().expect("a number");
        }
        headers += &line;
    }
    if headers.is_empty() {
        // A client that does not trust the certificate sends no request.
        return;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let body = String::from_utf8(body).expect("text");
    let fields: BTreeMap<&str, &str> = body.split('&').filter_map(|field| field.split_once('=')).collect();
    let time = fields.get("time").and_then(|time| time.parse().ok()).expect("a time");
    let question = Question { query: fields["query"].to_owned(), time, headers };
    last_headers.lock().expect("the lock is not poisoned").clone_from(&question.headers);
    let answers = answers.lock().expect("the lock is not poisoned").clone();
    let (status, extra, body) = answers(&question);
    let stream = reader.get_mut();
    let length = body.len();
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n{extra}\r\n");
    // The client may have disconnected.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
}

/// Samples of the ports every 100 ms, with counters that started in 1970.
pub fn healthy_answer(question: &Question) -> Answer {
    let (name, reach) = question.query.split_once("%5B").expect("a range selector");
    let reach: f64 = reach.trim_end_matches("ms%5D").parse().expect("milliseconds");
    let first = ((question.time * 1000.0 - reach) / 100.0).floor() as u64 + 1;
    let last = (question.time * 10.0).floor() as u64;
    let port = |&(port, rx, tx): &(&str, f64, f64)| {
        let rate = if name == "in_octets" { rx } else { tx };
        let reading = |tick: u64| {
            let at = tick as f64 / 10.0;
            let value = if name == "speed_mbps" { 1000.0 } else { (at - 1.7e9) * rate };
            json!([at, format!("{value:.0}")])
        };
        let values: Vec<Value> = (first..=last).map(reading).collect();
        json!({ "metric": { "__name__": name, "port": port, "job": "snmp" }, "values": values })
    };
    let result: Vec<Value> = RATES.iter().map(port).collect();
    let data = json!({ "resultType": "matrix", "result": result });
    (200, "", json!({ "status": "success", "data": data }).to_string().into_bytes())
}
