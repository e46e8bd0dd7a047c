//! A PostgreSQL of the tests' own: on a socket in a folder of its own, run by somebody who is not root.

#![allow(dead_code, reason = "each of those that share it uses a part")]
#![allow(clippy::disallowed_methods, reason = "a test waits")]

use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use leeward_controller::{Database, Durability, Postgres, StoreError};
use tempfile::TempDir;

/// A server, with a database for each that asks for one.
pub struct Server {
    folder: TempDir,
    programs: PathBuf,
    process: Mutex<Option<Child>>,
    databases: AtomicUsize,
    /// Whether it waits for its disk: `on` or `off`.
    fsync: &'static str,
}

/// The newest PostgreSQL of the machine: where Debian has it, or on the path.
fn programs() -> Option<PathBuf> {
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let debian = debian.map(|version| version.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::split_paths(&path).chain(debian);
    let needed = ["initdb", "postgres", "psql"];
    all.filter(|folder| needed.iter().all(|program| folder.join(program).exists())).max()
}

/// The user that a server is run as by root, which it refuses to be run as.
fn somebody() -> Option<(u32, u32)> {
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
    /// One that tests share as long as any of them runs; `None`, and a word of why, where PostgreSQL is not installed.
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

    /// One of the test's own, which waits for its disk (`on`) or does not.
    pub fn start(fsync: &'static str) -> Option<Server> {
        let Some(programs) = programs() else {
            eprintln!("skipped: no PostgreSQL: as root, apt-get install postgresql");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        if let Some((user, group)) = somebody() {
            chown(folder.path(), Some(user), Some(group)).expect("root may give things away");
        }
        let (process, databases) = (Mutex::new(None), AtomicUsize::new(0));
        let server = Server { folder, programs, process, databases, fsync };
        let mut make = server.run("initdb");
        make.args(["-U", "tests", "-A", "trust", "--no-sync", "-E", "UTF8", "-D"]);
        let made = make.arg(server.path().join("data")).output().expect("it runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        server.go_on();
        Some(server)
    }

    fn run(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(self.folder.path()).env("LC_ALL", "C").stdin(Stdio::null());
        if let Some((user, group)) = somebody() {
            command.uid(user).gid(group);
        }
        command
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Starts it on what it has, and waits until it answers.
    pub fn go_on(&self) {
        let log = std::fs::File::create(self.path().join("log")).expect("a file");
        let fsync = format!("fsync={}", self.fsync);
        let options = ["-c", "listen_addresses=", "-c", &fsync, "-k"];
        let mut command = self.run("postgres");
        command.arg("-D").arg(self.path().join("data")).args(options).arg(self.path());
        let child = command.stdout(log.try_clone().expect("a file")).stderr(log).spawn().expect("it runs");
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        let began = Instant::now();
        while self.ask("postgres", "SELECT 1").is_none() {
            let log = || std::fs::read_to_string(self.path().join("log")).unwrap_or_default();
            assert!(began.elapsed() < Duration::from_secs(30), "{}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops it, at once and in order (SIGINT), or without a word to anyone (SIGQUIT).
    pub fn stop(&self, signal: &str) {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut process) = process {
            let sent = Command::new("kill").args([signal, &process.id().to_string()]).status();
            assert!(sent.expect("there is `kill`").success());
            process.wait().expect("it ends");
        }
    }

    /// What `psql` says to a question; `None` if it says that it cannot be asked.
    pub fn ask(&self, database: &str, question: &str) -> Option<String> {
        let mut command = self.run("psql");
        command.args(["-XAtq", "-U", "tests", "-d", database, "-c", question, "-h"]).arg(self.path());
        let said = command.output().expect("it runs");
        said.status.success().then(|| String::from_utf8_lossy(&said.stdout).trim().to_owned())
    }

    /// A new database, by name.
    pub fn database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::SeqCst));
        self.ask("postgres", &format!("CREATE DATABASE {name}")).expect("there is room");
        name
    }

    /// The URL of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres:///{database}?user=tests&host={}", self.path().display())
    }

    /// A store in a database.
    pub fn store(&self, database: &str) -> Result<Postgres, StoreError> {
        let database = Database::read(&self.url(database), None).expect("a right URL");
        Postgres::open(database, Durability::Process, 1_000_000)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop("-INT");
    }
}
