//! A fake server of tokens, and a proxy, between a service and a fake Prometheus.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A server that ends with the process, and what it received.
pub struct Helper {
    pub url: String,
    received: Arc<Mutex<String>>,
}

impl Helper {
    fn listen(serve: impl Fn(TcpStream, &Mutex<String>) + Send + Sync + 'static) -> Helper {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://127.0.0.1:{}", listener.local_addr().expect("an address").port());
        let received = Arc::new(Mutex::new(String::new()));
        let (serve, given) = (Arc::new(serve), received.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (serve, given) = (serve.clone(), given.clone());
                std::thread::spawn(move || serve(stream, &given));
            }
        });
        Helper { url, received }
    }

    /// A server whose tokens are `token1`, `token2` and so on, each valid for `seconds`.
    pub fn tokens(seconds: u64) -> Helper {
        let number = AtomicUsize::new(0);
        Helper::listen(move |stream, received| {
            let (stream, text) = read_request(stream);
            *received.lock().expect("the lock is not poisoned") = text;
            let number = 1 + number.fetch_add(1, Ordering::Relaxed);
            let body = format!("{{\"access_token\":\"token{number}\",\"expires_in\":{seconds}}}");
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = (&stream).write_all(format!("{head}{body}").as_bytes());
        })
    }

    /// A proxy that connects a client with the host of its request `CONNECT`.
    pub fn proxy() -> Helper {
        Helper::listen(|stream, received| {
            let (client, text) = read_request(stream);
            let host = text.split_whitespace().nth(1).expect("a host").to_owned();
            received.lock().expect("the lock is not poisoned").push_str(&text);
            let server = TcpStream::connect(host).expect("a server");
            let _ = (&client).write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            let copy = |from: &TcpStream, to: &TcpStream| {
                let (from, to) = (from.try_clone().expect("a stream"), to.try_clone().expect("a stream"));
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut &from, &mut &to);
                    let _ = to.shutdown(std::net::Shutdown::Write);
                });
            };
            copy(&client, &server);
            copy(&server, &client);
        })
    }

    /// Text of the last request to a server of tokens, or of all requests to a proxy.
    pub fn received(&self) -> String {
        self.received.lock().expect("the lock is not poisoned").clone()
    }
}

/// A request with its body.
fn read_request(stream: TcpStream) -> (TcpStream, String) {
    let mut reader = BufReader::new(stream);
    let (mut text, mut length) = (String::new(), 0);
    loop {
        let start = text.len();
        if reader.read_line(&mut text).unwrap_or(0) == 0 || text[start..].trim().is_empty() {
            break;
        }
        if let Some(bytes) = text[start..].to_lowercase().strip_prefix("content-length:") {
            length = bytes.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    text += &String::from_utf8_lossy(&body);
    (reader.into_inner(), text)
}
