//! A PostgreSQL server for tests: on a socket in its own folder, run by a user other than root.

#![allow(clippy::disallowed_methods, reason = "a test waits")]

use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::require;

/// A server with one database per caller.
pub struct Server {
    folder: TempDir,
    programs: PathBuf,
    process: Mutex<Option<Child>>,
    databases: AtomicUsize,
    /// Further command-line options.
    options: Vec<String>,
    /// TCP port besides the socket.
    port: Option<u16>,
}

/// Folder of PostgreSQL's programs: the last one by name, in Debian's folder or on the path.
fn programs() -> Option<PathBuf> {
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let debian = debian.map(|version| version.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::split_paths(&path).chain(debian);
    let needed = ["initdb", "postgres", "psql"];
    all.filter(|folder| needed.iter().all(|program| folder.join(program).exists())).max()
}

/// User and group of the server if this process is root, because PostgreSQL refuses to run as root.
fn unprivileged_user() -> Option<(u32, u32)> {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let nobody = users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.first() == Some(&"nobody"))
            .then(|| Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?)))?
    });
    nobody.filter(|_| is_root)
}

impl Server {
    /// A server that tests share while any of them runs. Returns `None` after a message if PostgreSQL is not
    /// installed.
    pub fn shared() -> Option<Arc<Server>> {
        static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return Some(server);
        }
        let server = Arc::new(Server::start("off")?);
        *shared = Arc::downgrade(&server);
        Some(server)
    }

    /// A server for this test alone; `fsync` is `on` or `off`.
    pub fn start(fsync: &str) -> Option<Server> {
        let server = Server::create(vec!["listen_addresses=".to_owned(), format!("fsync={fsync}")], None)?;
        server.go_on();
        Some(server)
    }

    /// A server on loopback, with TLS and a certificate for `localhost`.
    pub fn with_tls() -> Option<Server> {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = port.expect("a free port").port();
        let options = ["listen_addresses=127.0.0.1", "fsync=off", "ssl=on"].map(str::to_owned);
        let server = Server::create(options.to_vec(), Some(port))?;
        let certificate =
            rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let key = server.path().join("data/server.key");
        std::fs::write(server.certificate(), certificate.cert.pem()).expect("a file");
        std::fs::write(&key, certificate.key_pair.serialize_pem()).expect("a file");
        std::fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("the test owns the file");
        if let Some((user, group)) = unprivileged_user() {
            for file in [server.certificate(), key] {
                chown(file, Some(user), Some(group)).expect("root may change the owner");
            }
        }
        server.go_on();
        Some(server)
    }

    /// Path of the server's certificate.
    pub fn certificate(&self) -> PathBuf {
        self.path().join("data/server.crt")
    }

    /// TCP port.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Creates a server without starting it.
    fn create(options: Vec<String>, port: Option<u16>) -> Option<Server> {
        let programs = require("PostgreSQL", programs().ok_or("as root, apt-get install postgresql"))?;
        let folder = tempfile::tempdir().expect("a folder");
        if let Some((user, group)) = unprivileged_user() {
            chown(folder.path(), Some(user), Some(group)).expect("root may change the owner");
        }
        let (process, databases) = (Mutex::new(None), AtomicUsize::new(0));
        let server = Server { folder, programs, process, databases, options, port };
        let mut command = server.run("initdb");
        command.args(["-U", "tests", "-A", "trust", "--no-sync", "-E", "UTF8", "-D"]);
        let result = command.arg(server.path().join("data")).output().expect("the program starts");
        assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
        Some(server)
    }

    /// A command that runs one of PostgreSQL's programs as the server's user.
    fn run(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(self.folder.path()).env("LC_ALL", "C").stdin(Stdio::null());
        if let Some((user, group)) = unprivileged_user() {
            command.uid(user).gid(group);
        }
        command
    }

    /// The server's folder, with its socket.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Starts the server on its data and waits until it answers.
    pub fn go_on(&self) {
        let log = std::fs::File::create(self.path().join("log")).expect("a file");
        let mut command = self.run("postgres");
        command.arg("-D").arg(self.path().join("data")).arg("-k").arg(self.path());
        command.args(self.options.iter().flat_map(|option| ["-c", option]));
        command.args(self.port.map(|port| format!("--port={port}")));
        let child =
            command.stdout(log.try_clone().expect("a file")).stderr(log).spawn().expect("the program starts");
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        let began = Instant::now();
        while self.ask("postgres", "SELECT 1").is_none() {
            let log = || std::fs::read_to_string(self.path().join("log")).unwrap_or_default();
            assert!(began.elapsed() < Duration::from_secs(30), "{}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops the server by a signal: `-INT` for a fast shutdown, `-QUIT` for an immediate one.
    pub fn stop(&self, signal: &str) {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut process) = process {
            let status = Command::new("kill").args([signal, &process.id().to_string()]).status();
            assert!(status.expect("`kill` is installed").success());
            process.wait().expect("the process ends");
        }
    }

    /// Suspends the server and its child processes with their connections open (`-STOP`), or resumes them
    /// (`-CONT`).
    pub fn signal(&self, signal: &str) {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = process.as_ref().map(Child::id) else { return };
        let mut all = vec![own.to_string()];
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            // The program's name, in parentheses, may contain blanks. The state and the parent follow.
            let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
            if parent == Some(&all[0]) {
                all.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        // A child may have ended by now, and `kill` reports that.
        let status = Command::new("kill").arg(signal).args(&all).stderr(Stdio::null()).status();
        status.expect("`kill` is installed");
    }

    /// Output of `psql` for a query; `None` if the query fails.
    pub fn ask(&self, database: &str, query: &str) -> Option<String> {
        let mut command = self.run("psql");
        command.args(["-XAtq", "-U", "tests", "-d", database, "-c", query, "-h"]).arg(self.path());
        command.args(self.port.map(|port| format!("--port={port}")));
        let result = command.output().expect("the program starts");
        result.status.success().then(|| String::from_utf8_lossy(&result.stdout).trim().to_owned())
    }

    /// Creates a database and returns its name.
    pub fn database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::SeqCst));
        self.ask("postgres", &format!("CREATE DATABASE {name}")).expect("a new database");
        name
    }

    /// URL of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres:///{database}?user=tests&host={}", self.path().display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signal("-CONT");
        self.stop("-INT");
    }
}
