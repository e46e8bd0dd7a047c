//! The removal of an enforcer, with a controller whose responses take a while.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use leeward_lease::{Connection, ControllerSettings, Given, Report};
use leeward_records::EnforcerKind;

/// Time that the controller takes for an acknowledgement: longer than a removal may take, and shorter than the time limit of
/// an acknowledgement.
const SLOW: Duration = Duration::from_millis(2_500);

/// Responds to the requests of a connection, and records when each is received and answered.
fn respond(stream: &TcpStream, record: &Sender<String>) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let method = head.split(' ').next().unwrap_or_default();
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
        });
        reader.read_exact(&mut vec![0; length.unwrap_or(0)])?;
        let _ = record.send(format!("{method} received"));
        if method == "PUT" {
            thread::sleep(SLOW);
        }
        let _ = record.send(format!("{method} answered"));
        writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")?;
    }
}

#[test]
fn a_removal_comes_after_the_response_to_an_open_acknowledgement() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (record, records) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let record = record.clone();
            thread::spawn(move || respond(&stream, &record));
        }
    });
    let given = Given { controllers: vec![format!("http://{address}")], ..Given::default() };
    let settings = ControllerSettings::new(EnforcerKind::Nfs, "s0", given, None).expect("valid settings");
    let mut connection = Connection::start(settings, "test/1").expect("a thread");
    assert_eq!(connection.poll(Report::default), None);
    assert_eq!(records.recv().expect("a request"), "PUT received");
    connection.remove().expect("a response");
    let order: Vec<String> = records.try_iter().collect();
    assert_eq!(order, ["PUT answered", "DELETE received", "DELETE answered"]);
}
