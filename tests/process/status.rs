//! Checks `idmint status`. It must print the state of a service, the problem, and a safe action,
//! and must exit with the right code.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::tls::{BILLING, Secured};
use idmint_testing::authority::Authority;
use idmint_testing::service::{Home, Service, idmint, run};

#[test]
fn a_service_that_mints_says_so_and_what_it_has_reserved() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let ended = run(idmint(&["status", "--server", &service.url()]));
    ended.assert(0, &[]);
    let lines: Vec<_> = ended
        .out
        .lines()
        .map(|line| line.split_once(' ').expect("a name and a value"))
        .collect();
    let names: Vec<_> = lines.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        ["mints", "slot", "reserved", "records"],
        "{}",
        ended.out
    );
    assert_eq!(lines[0].1.trim(), "yes");
}

#[test]
fn a_clock_that_is_behind_is_told_with_what_helps() {
    let home = Home::new();
    let mut command = home.serve();
    command.args(["--floor", "2200-01-01T00:00:00Z"]);
    let service = Service::start(command);
    let ended = run(idmint(&["status", "--server", &service.url()]));
    ended.assert(
        1,
        &[
            "mints no sequenced ids",
            "correct the clock",
            "\"Not ready\"",
        ],
    );
    assert!(
        ended.out.contains("no, clock-behind") && ended.out.contains("why "),
        "{}",
        ended.out
    );
}

#[test]
fn a_service_that_is_not_there_is_69_with_what_helps() {
    let home = Home::new();
    let service = home.start();
    let url = service.url();
    service.kill();
    run(idmint(&["status", "--server", &url])).assert(69, &["start it again", "\"Down\""]);
}

/// Accepts one connection, and sends `answer` as soon as it has received the first bytes. Returns
/// the URL.
fn answer_once(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]).unwrap();
        stream.write_all(answer.as_bytes()).unwrap();
    });
    format!("http://{address}")
}

#[tokio::test]
async fn each_failure_to_reach_the_service_has_its_own_remedy() {
    let secured = Secured::new();
    let name = secured.authority.sign(&["localhost"]);
    name.write(&secured.home, "service");
    let service = secured
        .start(&secured.client_settings(&format!("'{BILLING}' = ['mint']")))
        .await;
    let home = Home::new();
    let (port, plain) = (service.address().port(), home.start());
    let secure = |host: &str| format!("https://{host}:{port}");
    let ca = secured.path("ca.pem");
    let names = ["localhost", "127.0.0.1"];
    let [cert, key] = Authority::new("stranger")
        .sign(&names)
        .write(&secured.home, "stranger");
    let [cert, key] = [&cert, &key].map(|path| path.to_str().unwrap());
    let trusting = ["--ca", &*ca];
    let stranger = [&trusting[..], &["--cert", cert, "--cert-key", key]].concat();
    let problem = "HTTP/1.1 421 Misdirected Request\r\ncontent-length: 60\r\n\r\n\
        {\"type\":\"/problems/unknown-host\",\"detail\":\"a is not listed\"}";
    for (server, args, remedy) in [
        (
            secure("localhost"),
            &[][..],
            "name the authority of the certificate with --ca",
        ),
        (
            secure("127.0.0.1"),
            &trusting,
            "use a name that the certificate has in --server",
        ),
        (secure("localhost"), &stranger, "the certificate of --cert"),
        (
            format!("http://localhost:{port}"),
            &[],
            "use https:// in --server",
        ),
        (
            plain.url().replace("http:", "https:"),
            &[],
            "use http:// in --server",
        ),
        (
            answer_once("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"),
            &[],
            "another program",
        ),
        (
            answer_once("HTTP/1.1 502 Bad\r\ncontent-length: 2\r\n\r\nhi"),
            &[],
            "another program",
        ),
        (answer_once(problem), &[], "see GET /problems/unknown-host"),
    ] {
        let mut command = idmint(&["status", "--server", &server]);
        let ended = run({
            command.args(args);
            command
        });
        println!("{server} {args:?}: {}", ended.err);
        assert_ne!(ended.status.code(), Some(0), "{server} {args:?}");
        assert!(
            ended.err.contains(remedy),
            "{remedy} is not in {}",
            ended.err
        );
        assert!(!ended.err.contains("start it again"), "{}", ended.err);
    }
}
