//! A client of NFS version 3 with as many calls at once as a test sends.

use std::io;
use std::net::{IpAddr, SocketAddr};

use bytes::BytesMut;
use leeward_nfs::calls::{COMMIT, NFS, READ, VERSION, WRITE};
use leeward_nfs::rpc::{Credential, Records, call, results};
use leeward_nfs::xdr::{Reader, Writer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

pub struct Client {
    stream: TcpStream,
    records: Records,
    buffer: BytesMut,
    xid: u32,
}

impl Client {
    pub async fn connect(to: SocketAddr) -> Client {
        Client::connect_from("127.0.0.1", to).await
    }

    /// Connects from an address of this machine: workloads differ in the addresses of their clients.
    pub async fn connect_from(from: &str, to: SocketAddr) -> Client {
        Client::try_connect(from, to).await.expect("a connection")
    }

    pub async fn try_connect(from: &str, to: SocketAddr) -> io::Result<Client> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(from.parse::<IpAddr>().expect("an address"), 0))?;
        let stream = socket.connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(Client { stream, records: Records::new(16 << 20), buffer: BytesMut::new(), xid: 0 })
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Sends a call, and returns its number.
    pub async fn send(&mut self, numbers: [u32; 3], arguments: &[u8]) -> u32 {
        self.xid += 1;
        let user = Credential::System { machine: "test", user: 1000, group: 1000 };
        self.send_bytes(&call(self.xid, numbers, user, arguments)).await.expect("a connection");
        self.xid
    }

    /// Next reply; `None` if the connection ended.
    pub async fn receive(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(record) = self.records.next_record().expect("replies of a server") {
                let mut message = vec![0; record.payload()];
                record.copy_payload(&mut message);
                return Some(message);
            }
            self.buffer.reserve(256 << 10);
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => self.records.push(self.buffer.split().freeze()),
            }
        }
    }

    /// Results of a call; `None` if the connection ended.
    pub async fn try_call(&mut self, numbers: [u32; 3], arguments: &[u8]) -> Option<Vec<u8>> {
        self.xid += 1;
        let user = Credential::System { machine: "test", user: 1000, group: 1000 };
        self.send_bytes(&call(self.xid, numbers, user, arguments)).await.ok()?;
        let message = self.receive().await?;
        Some(results(&message, self.xid).expect("a successful reply").to_vec())
    }

    pub async fn call(&mut self, numbers: [u32; 3], arguments: &[u8]) -> Vec<u8> {
        self.try_call(numbers, arguments).await.expect("a reply")
    }

    pub async fn read(&mut self, file: &str, offset: u64, count: u32) -> Vec<u8> {
        payload(&self.call([NFS, VERSION, READ], &place(file, offset, count)).await)
    }

    /// Writes data; `false` if the connection ended before the reply.
    pub async fn write(&mut self, file: &str, offset: u64, data: &[u8]) -> bool {
        let results = self.try_call([NFS, VERSION, WRITE], &write(file, offset, data)).await;
        results.is_some_and(|results| Reader::new(&results).u32() == Ok(0))
    }

    pub async fn commit(&mut self, file: &str) -> bool {
        let results = self.try_call([NFS, VERSION, COMMIT], &place(file, 0, 0)).await;
        results.is_some_and(|results| Reader::new(&results).u32() == Ok(0))
    }
}

/// Arguments of READ and COMMIT.
pub fn place(file: &str, offset: u64, count: u32) -> Vec<u8> {
    Writer::new().opaque(file.as_bytes()).u64(offset).u32(count).into_bytes()
}

/// Arguments of WRITE.
pub fn write(file: &str, offset: u64, data: &[u8]) -> Vec<u8> {
    Writer::new().raw(&place(file, offset, data.len() as u32)).u32(2).opaque(data).into_bytes()
}

/// Data of a READ.
pub fn payload(results: &[u8]) -> Vec<u8> {
    let mut reader = Reader::new(results);
    assert_eq!(reader.u32(), Ok(0), "the status of a read");
    let _ = (reader.u32(), reader.u32(), reader.u32());
    reader.opaque(16 << 20).expect("the data").to_vec()
}

/// Number of the call that a message answers.
pub fn xid(message: &[u8]) -> u32 {
    Reader::new(message).u32().expect("a number")
}
