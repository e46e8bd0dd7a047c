//! Enforcers that an agent runs: each is a process of its own, so that one that fails never ends the agent. A process
//! that ends is started again after a pause. When the agent stops, its enforcers undo their work first, also those that
//! still start.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use leeward_client::{Access, Backoff, Clock, PARENT, start_with_sigterm_blocked};
use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, excerpt};
use rustix::process::{Pid, Signal, kill_process};

/// Kinds of enforcers, with their programs.
const KINDS: [(&str, &str); 2] = [("net", "leeward-enforce-net"), ("nfs", "leeward-nfs")];
/// Options that the agent sets for its enforcers.
const OWN: [&str; 4] = ["--controller", "--token-file", "--ca", "--dscp"];
/// Variables of systemd for the agent itself.
const SYSTEMD: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"];
/// Pauses before a start, and time after which a process counts as one that works.
const FIRST: Nanos = Nanos::SECOND;
const LONGEST: Nanos = Nanos(60 * Nanos::SECOND.0);
/// Time for enforcers to undo their work, and time between two looks.
const END: Nanos = Nanos(30 * Nanos::SECOND.0);
const LOOK: Duration = Duration::from_millis(20);

/// Command line of an enforcer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnforcerCommand {
    /// Kind of the enforcer: `net` or `nfs`.
    pub kind: &'static str,
    /// Program and arguments.
    pub words: Vec<String>,
}

impl EnforcerCommand {
    /// Reads the value of `--enforce`: a kind, and further options as in a shell. `program` is the command that runs
    /// enforcers of any kind; without it, each kind has a program of its own.
    ///
    /// # Errors
    /// An [`InputError`] for an unknown kind, a quote without its end, or an option that the agent sets.
    pub fn read(
        text: &str,
        program: &[String],
        access: &Access,
        host: &str,
        interfaces: &[String],
    ) -> Result<EnforcerCommand, InputError> {
        let invalid =
            |message: String| InputError::new("--enforce", format!("`{}`: {message}", excerpt(text)));
        let mut options = words(text).ok_or_else(|| invalid("expected the end of a quote".to_owned()))?;
        let known = KINDS.iter().find(|(kind, _)| options.first().is_some_and(|first| first == kind));
        let Some(&(kind, own_program)) = known else {
            return Err(invalid("expected net or nfs, and options of `leeward enforce`".to_owned()));
        };
        options.remove(0);
        let has = |options: &[String], name: &str| {
            let with_value = format!("{name}=");
            options.iter().any(|option| option == name || option.starts_with(&with_value))
        };
        if let Some(option) = OWN.into_iter().find(|option| has(&options, option)) {
            return Err(invalid(format!("{option} is that of the agent")));
        }
        let mut words = match program {
            [] => vec![beside(own_program)],
            program => program.iter().cloned().chain([kind.to_owned()]).collect(),
        };
        let mut set = |name: &str, value: &str| words.extend([name.to_owned(), value.to_owned()]);
        access.controllers.iter().for_each(|url| set("--controller", url));
        access.token.iter().for_each(|file| set("--token-file", file));
        access.ca.iter().for_each(|file| set("--ca", file));
        access.dscp.iter().for_each(|dscp| set("--dscp", &dscp.to_string()));
        if !has(&options, "--host") {
            set("--host", host);
        }
        if kind == "net" && !has(&options, "--interface") {
            interfaces.iter().for_each(|name| set("--interface", name));
        }
        words.extend(options);
        Ok(EnforcerCommand { kind, words })
    }

    fn start(&self) -> io::Result<Child> {
        let Some((program, arguments)) = self.words.split_first() else {
            return Err(io::Error::other("no program"));
        };
        let mut command = Command::new(program);
        for name in SYSTEMD {
            command.env_remove(name);
        }
        command
            .args(arguments)
            .env(PARENT, std::process::id().to_string())
            // Ctrl-C at the terminal stops the agent, which then ends its enforcers.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        // One that was killed may have left rules and its registration: the next one must not end before it can remove
        // them.
        start_with_sigterm_blocked(|| command.spawn())
    }
}

/// Path of a program in the folder of this one; only its name if it is not there.
fn beside(name: &str) -> String {
    let path = std::env::current_exe().ok().map(|own| own.with_file_name(name));
    path.filter(|path| Path::exists(path)).map_or(name.to_owned(), |path| path.display().to_string())
}

/// Words of a command line; quotes keep spaces. `None` for a quote without its end.
fn words(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None::<char>);
    for letter in text.chars() {
        match quote {
            Some(end) if letter == end => quote = None,
            Some(_) => word.get_or_insert_default().push(letter),
            None if letter == '"' || letter == '\'' => {
                word.get_or_insert_default();
                quote = Some(letter);
            }
            None if letter.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// An enforcer, and its process if it runs.
struct Supervised {
    command: EnforcerCommand,
    child: Option<Child>,
    backoff: Backoff,
    /// Time of the last or next start.
    starts: Nanos,
}

/// Enforcers of an agent. The thread that starts them must live as long as they do.
pub struct Enforcers(Vec<Supervised>);

impl Enforcers {
    /// Enforcers that start with the first [`Enforcers::tick`].
    pub fn new(commands: &[EnforcerCommand], now: Nanos) -> Enforcers {
        let supervised = |command: &EnforcerCommand| Supervised {
            command: command.clone(),
            child: None,
            backoff: Backoff::new(FIRST, LONGEST),
            starts: now,
        };
        Enforcers(commands.iter().map(supervised).collect())
    }

    /// True without enforcers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Starts enforcers that are due, and looks for processes that have ended; `random` is in [0, 1). Returns lines for the
    /// log.
    pub fn tick(&mut self, now: Nanos, random: f64) -> Vec<String> {
        self.0.iter_mut().filter_map(|enforcer| enforcer.tick(now, random)).collect()
    }

    fn terminate(&self) {
        for child in self.0.iter().filter_map(|enforcer| enforcer.child.as_ref()) {
            // It may have ended.
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
        }
    }

    /// Ends all enforcers, which undo their work, and waits for them. Returns lines for the log.
    pub fn end(&mut self, clock: Clock) -> Vec<String> {
        self.terminate();
        let (deadline, mut lines) = (clock.now().plus(END), Vec::new());
        for Supervised { command, child, .. } in &mut self.0 {
            let Some(mut child) = child.take() else { continue };
            let status = loop {
                match child.try_wait() {
                    Ok(None) if clock.now() < deadline => thread::sleep(LOOK),
                    Ok(None) => {
                        let killed = child.kill().and_then(|()| child.wait());
                        lines.push(format!("enforcer {}: killed, it did not end in {END}", command.kind));
                        break killed.ok();
                    }
                    Ok(status) => break status,
                    Err(_) => break None,
                }
            };
            if status.is_some_and(|status| !status.success()) {
                lines.push(format!("enforcer {}: {}", command.kind, ended(status)));
            }
        }
        lines
    }
}

impl Drop for Enforcers {
    /// After an error of the agent, enforcers are asked to end, and nobody waits for them.
    fn drop(&mut self) {
        self.terminate();
    }
}

impl Supervised {
    fn tick(&mut self, now: Nanos, random: f64) -> Option<String> {
        let problem = match &mut self.child {
            None if now < self.starts => return None,
            None => match self.command.start() {
                Ok(child) => {
                    let line = format!("enforcer {}: started as process {}", self.command.kind, child.id());
                    (self.child, self.starts) = (Some(child), now);
                    return Some(line);
                }
                Err(error) => format!("{}: {error}", self.command.words.first().map_or("", String::as_str)),
            },
            Some(child) => match child.try_wait() {
                Ok(None) => return None,
                Ok(status) => ended(status),
                Err(error) => error.to_string(),
            },
        };
        self.child = None;
        if now.since(self.starts) >= LONGEST {
            self.backoff.succeeded();
        }
        let pause = self.backoff.failed(None, random);
        self.starts = now.plus(pause);
        let seconds = pause.as_secs_f64();
        Some(format!("enforcer {}: {problem}; it starts again in {seconds:.1} s", self.command.kind))
    }
}

fn ended(status: Option<ExitStatus>) -> String {
    status.map_or("ended".to_owned(), |status| format!("ended with {status}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, program: &[&str]) -> Result<EnforcerCommand, InputError> {
        let access =
            Access::new(&["http://a:7600".to_owned(), "http://b:7600".to_owned()], None, None, Some("cs6"))?;
        let program: Vec<String> = program.iter().map(|&word| word.to_owned()).collect();
        EnforcerCommand::read(text, &program, &access, "r0h1", &["eth0".to_owned()])
    }

    #[test]
    fn an_enforcer_has_the_controllers_and_the_host_of_the_agent() {
        let command = read("nfs --export '127.0.0.1:/my vol' --device=ssd.json", &["leeward", "enforce"]);
        let expected = "leeward enforce nfs --controller http://a:7600 --controller http://b:7600 --dscp 48 --host r0h1 \
                        --export 127.0.0.1:/my vol --device=ssd.json";
        assert_eq!(command.expect("valid").words.join(" "), expected);
        let net = read("net --rate 1Gbps --host s0", &[]).expect("valid");
        assert_eq!((net.kind, net.words[0].ends_with("leeward-enforce-net")), ("net", true));
        assert_eq!(net.words[net.words.len() - 6..].join(" "), "--interface eth0 --rate 1Gbps --host s0");
    }

    #[test]
    fn invalid_enforcers_are_errors_of_their_option() {
        for text in ["", "disk", "net --ca ca.pem", "net --token-file=t", "nfs --export 'a"] {
            assert_eq!(read(text, &[]).expect_err(text).file, "--enforce");
        }
    }

    #[test]
    fn words_keep_spaces_in_quotes() {
        let split = |text| words(text).map(|words| words.join("|"));
        assert_eq!(split("  a  'b c'\"d\" '' ").as_deref(), Some("a|b cd|"));
        assert_eq!((split("").as_deref(), split("'a")), (Some(""), None));
    }

    /// An enforcer of these words.
    fn enforcer(words: &[&str]) -> Enforcers {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        Enforcers::new(&[EnforcerCommand { kind: "net", words }], Nanos(0))
    }

    /// An enforcer that is a script, with SIGTERM unblocked.
    fn script(text: &str) -> Enforcers {
        enforcer(&["env", "--default-signal=TERM", "sh", "-c", text])
    }

    /// Waits for a file that a script makes.
    fn wait_for(file: &Path) {
        while !file.exists() {
            thread::sleep(LOOK);
        }
    }

    /// Looks for a line until there is one.
    fn line(enforcers: &mut Enforcers, at: Nanos) -> String {
        for _ in 0..1000 {
            if let Some(line) = enforcers.tick(at, 0.0).pop() {
                return line;
            }
            thread::sleep(LOOK);
        }
        panic!("no line");
    }

    #[test]
    fn a_process_that_ends_is_started_again_after_growing_pauses() {
        let mut enforcers = script("exit 3");
        let second = |seconds: u64| Nanos(seconds * Nanos::SECOND.0);
        let mut now = second(0);
        for pause in ["0.5", "1.0", "2.0"] {
            assert!(line(&mut enforcers, now).starts_with("enforcer net: started as process "));
            let ended = line(&mut enforcers, now);
            assert_eq!(
                ended,
                format!("enforcer net: ended with exit status: 3; it starts again in {pause} s")
            );
            assert_eq!(enforcers.tick(now, 0.0), [""; 0], "not yet");
            now = now.plus(second(4));
        }
        let words = vec!["/no/such/program".to_owned()];
        let mut missing = Enforcers::new(&[EnforcerCommand { kind: "nfs", words }], now);
        assert!(line(&mut missing, now).starts_with("enforcer nfs: /no/such/program: No such file"));
    }

    #[test]
    fn the_end_waits_for_enforcers_to_undo_their_work() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("undone");
        let path = file.display();
        let mut enforcers = script(&format!(
            "trap 'sleep 0.2; touch {path}; exit 0' TERM; touch {path}.ready; while :; do sleep 0.05; done"
        ));
        line(&mut enforcers, Nanos(0));
        wait_for(&file.with_extension("ready"));
        assert_eq!(enforcers.end(Clock::start()), [""; 0]);
        assert!(file.exists());
    }

    #[test]
    fn an_enforcer_that_still_starts_gets_the_signal_when_it_is_ready() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("undone");
        let path = file.display();
        // Without handlers, the signal would end the script. It looks for it among the pending ones: SIGTERM is bit 14.
        let text = format!(
            ": > {path}.ready; while :; do while read -r name value; do case $name$value in \
             ShdPnd:*4000) : > {path}; exit 0;; esac; done < /proc/$$/status; done"
        );
        let mut enforcers = enforcer(&["sh", "-c", &text]);
        line(&mut enforcers, Nanos(0));
        wait_for(&file.with_extension("ready"));
        assert_eq!(enforcers.end(Clock::start()), [""; 0]);
        assert!(file.exists());
    }
}
