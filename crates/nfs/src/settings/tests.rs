//! Tests of the settings: defaults, and errors that name their option.

use super::*;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn valid() -> Arguments {
    Arguments { exports: texts(&["nas:/vol"]), allow: texts(&["all"]), ..Arguments::default() }
}

fn with_workloads() -> Arguments {
    let [workloads, cluster] = ["packed.yaml", "cluster.yaml"].map(|file| Some(file.to_owned()));
    Arguments { workloads, cluster, ..valid() }
}

#[test]
fn defaults_are_a_port_for_each_export_and_no_caps_without_workloads() {
    let settings = Settings::new(Arguments { exports: texts(&["nas:/a", "nas:/b"]), ..valid() }).unwrap();
    let listen: Vec<String> = settings.exports.iter().map(|(_, listen)| listen.to_string()).collect();
    assert_eq!(listen, ["0.0.0.0:12049", "0.0.0.0:12050"]);
    assert_eq!(settings.caps(None), Caps::NONE);
    assert!(settings.allowed().is_none() && settings.recorder.is_none() && settings.threads == 1);
}

#[test]
fn a_proxy_that_others_reach_says_who_may_connect() {
    let allowed = |listen: &[&str], allow: &[&str]| {
        let given = Arguments { listen: texts(listen), allow: texts(allow), ..valid() };
        let settings = Settings::new(given).map_err(|error| error.to_string())?;
        Ok::<_, String>(settings.allowed().map(|allowed| {
            ["10.1.2.3", "127.0.0.1"].map(|client| allowed.find(client.parse().unwrap()).is_some())
        }))
    };
    for listen in [&[][..], &["0.0.0.0:12049"], &["[::]:12049"], &["10.0.0.7:12049"]] {
        let error = allowed(listen, &[]).unwrap_err();
        assert!(error.starts_with("--allow: missing; the server sees the proxy alone"), "{error}");
        assert_eq!(allowed(listen, &["all"]), Ok(None));
        assert_eq!(allowed(listen, &["10.0.0.0/8"]), Ok(Some([true, false])));
    }
    for listen in ["127.0.0.1:12049", "[::1]:12049", "[::ffff:127.0.0.1]:12049"] {
        assert_eq!(allowed(&[listen], &[]), Ok(None), "{listen}");
    }
    assert!(allowed(&[], &["all", "10.0.0.1"]).unwrap_err().starts_with("--allow: all: expected no other"));
}

#[test]
fn with_a_reserved_port_clients_come_from_reserved_ports_unless_any_is_accepted() {
    let reserved = |reserved_port, any_port| {
        Settings::new(Arguments { reserved_port, any_port, ..valid() })
            .map(|settings| settings.reserved_clients)
    };
    assert_eq!(
        [(false, false), (true, false), (true, true)].map(|(a, b)| reserved(a, b).unwrap()),
        [false, true, false]
    );
    assert_eq!(reserved(false, true).unwrap_err().file, "--any-port");
}

#[test]
fn caps_are_those_of_the_device_file_except_for_a_given_number() {
    let text = r#"{"table": [{"size_bytes": 4096, "read_iops": 1000, "write_iops": 500}],
        "outstanding": 8, "outstanding_read_bytes": 65536}"#;
    let device = Device::from_text("ssd.json", text).unwrap();
    let caps = |given: Arguments, device: Option<&Device>| Settings::new(given).unwrap().caps(device);
    let profiled = caps(with_workloads(), Some(&device));
    assert_eq!((profiled.outstanding, profiled.read_bytes), (8, 65_536));
    let given = caps(Arguments { outstanding: Some(2), ..with_workloads() }, Some(&device));
    assert_eq!((given.outstanding, given.read_bytes), (2, 65_536));
    assert_eq!(caps(with_workloads(), None).outstanding, 1);
}

#[test]
fn errors_name_their_option() {
    let one = |text: &str| Some(text.to_owned());
    let cases = [
        (Arguments::default(), "--export"),
        (Arguments { exports: texts(&["nas"]), ..valid() }, "--export"),
        (Arguments { exports: texts(&["nas:/a", "nas:/a"]), ..valid() }, "--export"),
        (Arguments { listen: texts(&["2049"]), ..valid() }, "--listen"),
        (Arguments { listen: texts(&["0.0.0.0:1", "0.0.0.0:2"]), ..valid() }, "--listen"),
        (Arguments { allow: texts(&["10.0.0.0/33"]), ..valid() }, "--allow"),
        (Arguments { workloads: one("w.yaml"), controllers: texts(&["http://a"]), ..valid() }, "--workloads"),
        (Arguments { cluster: one("c.yaml"), controllers: texts(&["http://a"]), ..valid() }, "--cluster"),
        (Arguments { controllers: texts(&["a"]), device: one("d.json"), ..valid() }, "--controller"),
        (Arguments { lease: one("15s"), ..valid() }, "--lease"),
        (Arguments { over: one("held"), ..valid() }, "--over"),
        (Arguments { over: one("late"), ..with_workloads() }, "--over"),
        (Arguments { cluster: one("c.yaml"), ..valid() }, "--cluster"),
        (Arguments { host: one("r0h0"), ..valid() }, "--host"),
        (Arguments { addresses: one("hosts"), ..valid() }, "--addresses"),
        (Arguments { workload_exports: texts(&["mail=/vol"]), ..valid() }, "--workload"),
        (Arguments { workload_exports: texts(&["mail"]), ..with_workloads() }, "--workload"),
        (Arguments { workload_exports: texts(&["mail=/other"]), ..with_workloads() }, "--workload"),
        (Arguments { outstanding: Some(0), ..valid() }, "--outstanding"),
        (Arguments { outstanding_writes: Some(0), ..valid() }, "--outstanding-writes"),
        (Arguments { behind: one("x"), ..valid() }, "--behind"),
        (Arguments { order: one("cake"), ..valid() }, "--order"),
        (Arguments { connections: Some(0), ..valid() }, "--connections"),
        (Arguments { jobs: Some(0), ..valid() }, "--jobs"),
        (Arguments { jobs: Some(1000), ..valid() }, "--jobs"),
        (Arguments { interval: one("1"), ..valid() }, "--interval"),
        (Arguments { interval: one("0s"), ..valid() }, "--interval"),
        (Arguments { message: one("1B"), ..valid() }, "--message"),
        (Arguments { message: one("2GiB"), ..valid() }, "--message"),
        (Arguments { buffer: one("0B"), ..valid() }, "--buffer"),
        (Arguments { patience: one("soon"), ..valid() }, "--patience"),
        (Arguments { traces: one("t"), trace_time: one("1"), ..valid() }, "--trace-time"),
        (Arguments { traces: one("t"), trace_limit: one("x"), ..valid() }, "--trace-limit"),
    ];
    for (arguments, option) in cases {
        let error = Settings::new(arguments).err().expect("an error");
        assert_eq!(error.file, option, "{error}");
    }
    let exports = Arguments { workload_exports: texts(&["mail=/vol"]), ..with_workloads() };
    let settings = Settings::new(exports).unwrap();
    assert_eq!(settings.workload_exports, [("mail".to_owned(), 0)]);
    assert_eq!((settings.over, settings.caps(None).outstanding), (None, 1));
    let controlled = || Arguments {
        controllers: texts(&["http://a"]),
        host: one("s0:ssd"),
        device: one("ssd.json"),
        ..valid()
    };
    let error = Settings::new(Arguments { device: None, ..controlled() }).err().expect("an error");
    assert_eq!(error.file, "--device");
    let settings = Settings::new(Arguments { over: one("held"), ..controlled() }).unwrap();
    let Some(WorkloadSource::Controller(controller)) = &settings.workloads else { panic!("a controller") };
    assert_eq!((controller.name.as_str(), controller.device.as_deref()), ("nfs@s0:ssd", Some("s0:ssd")));
    assert_eq!((settings.over, settings.caps(None).outstanding), (Some(OverLimit::Held), 1));
}
