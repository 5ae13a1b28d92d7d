//! Checks that stored conjunctions survive restarts, and that they can be moved from one node to
//! another.

use std::fs;

use serde_json::Value;

use idmint_testing::http1::request;
use idmint_testing::service::{Home, Service, Signal, idmint, run, until};

/// Sends these reports, and returns the detail for each report.
fn report(service: &Service, query: &str, reports: &str) -> Vec<Value> {
    let head = format!("POST /ids/conjunction{query}");
    let answer = idmint_testing::http1::Client::connect(service.address()).exchange(request(
        &head,
        "content-type: application/json\r\n",
        reports,
    ));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["details"].as_array().unwrap().clone()
}

fn at(tca: &str) -> String {
    format!(r#"{{"tca":"2024-02-01T00:00:{tca}Z","primary":25544,"secondary":48274}}"#)
}

#[test]
fn what_is_known_of_reports_outlives_a_restart() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let id = report(&service, "", &format!("[{},{}]", at("00"), at("00.5")))[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/conjunctions/{id}");
    // While the service writes the counts, a response may count a report twice.
    let counted = |service: &Service, count: u64| {
        until("the reports are counted", || {
            let read = service.get(&path).json();
            (read["reports"] == count).then_some(read)
        })
    };
    let before = counted(&service, 2);
    service.send(Signal::TERM);
    service.wait();
    let again = home.start();
    again.wait_until_ready();
    assert_eq!(again.get(&path).json(), before);
    report(&again, "", &at("00.7"));
    counted(&again, 3);
}

#[test]
fn conjunctions_are_brought_to_another_node_with_their_ids() {
    let (from, to) = (Home::new(), Home::new());
    let (old, new) = (from.start(), to.start());
    old.wait_until_ready();
    new.wait_until_ready();
    // The time of the last report is between two older anchors (first reports of conjunctions). A
    // report that is near two anchors joins the one with the lower rank, so the ranks must be moved
    // too.
    report(
        &old,
        "",
        &format!("[{},{},{}]", at("03"), at("00"), at("01.5")),
    );
    let mut export = idmint(&["conjunction", "export", "--server", &old.url()]);
    let exported = export.output().unwrap();
    assert!(exported.status.success(), "{exported:?}");
    let lines = String::from_utf8(exported.stdout).unwrap();
    assert_eq!(lines.lines().count(), 3);
    let file = to.path("conjunctions.ndjson");
    fs::write(&file, &lines).unwrap();
    let import = || {
        run(idmint(&[
            "conjunction",
            "import",
            file.to_str().unwrap(),
            "--server",
            &new.url(),
        ]))
    };
    let ended = import();
    ended.assert(0, &[]);
    assert_eq!(ended.out, "3 stored, 0 known already\n");
    for tca in ["00.7", "00.9", "02.3", "02.6", "01.5", "03.9"] {
        let [there, here] =
            [&old, &new].map(|service| report(service, "", &at(tca))[0]["id"].clone());
        assert_eq!(there, here, "{tca}");
    }
    let ended = import();
    ended.assert(0, &[]);
    assert_eq!(
        ended.out, "0 stored, 3 known already\n",
        "a second time nothing changes"
    );

    // If a node already has another conjunction within a second of an imported one, it must keep
    // its own conjunction and say so.
    let third = Home::new();
    let other = third.start();
    other.wait_until_ready();
    report(&other, "", &at("02.2"));
    let ended = run(idmint(&[
        "conjunction",
        "import",
        file.to_str().unwrap(),
        "--server",
        &other.url(),
    ]));
    ended.assert(
        1,
        &["have another id in the service, because a conjunction of the same objects is too close in time"],
    );
    for (line, text) in [(1, "{}\n"), (4, "\n \n\r\n{}\n"), (2, "\n7")] {
        fs::write(&file, text).unwrap();
        let ended = import();
        ended.assert(65, &[&format!("conjunctions.ndjson:{line}: ")]);
        assert!(!ended.err.contains(" at line "), "{}", ended.err);
    }
    fs::write(&file, format!("\n{lines}\n")).unwrap();
    import().assert(0, &[]);
}

#[test]
fn conjunctions_within_a_second_of_each_other_are_brought_to_another_node_with_their_ids() {
    let (from, to) = (Home::new(), Home::new());
    let (old, new) = (from.start(), to.start());
    old.wait_until_ready();
    new.wait_until_ready();
    let first = report(&old, "", &format!("[{},{}]", at("10"), at("40")));
    let of_second_11 = report(&new, "", &at("11"))[0]["id"].clone();
    let carrying = |id: &Value| {
        let id = format!(r#""CONJUNCTION_EVENT_ID":{id}}}"#);
        at("10.5").replace('}', &format!(",{id}"))
    };
    let kept = report(&old, "?noted=keep", &carrying(&of_second_11));
    assert_eq!(
        (&kept[0]["id"], &kept[0]["created"]),
        (&of_second_11, &Value::Bool(true))
    );
    let third = Home::new();
    let empty = third.start();
    empty.wait_until_ready();
    let exported = idmint(&["conjunction", "export", "--server", &old.url()])
        .output()
        .unwrap();
    let file = to.path("conjunctions.ndjson");
    fs::write(&file, exported.stdout).unwrap();
    for out in ["3 stored, 0 known already\n", "0 stored, 3 known already\n"] {
        let args = ["conjunction", "import", file.to_str().unwrap()];
        let ended = run(idmint(&[&args[..], &["--server", &empty.url()]].concat()));
        ended.assert(0, &[]);
        assert_eq!(ended.out, out);
    }
    for detail in first.iter().chain(&kept) {
        let path = format!("/conjunctions/{}", detail["id"].as_str().unwrap());
        let [there, here] = [&old, &empty].map(|service| service.get(&path).json());
        for member in ["anchor_tca", "rank"] {
            assert_eq!(there[member], here[member], "{path}");
        }
    }
}

#[test]
fn an_import_into_a_service_that_stores_no_conjunctions_is_refused() {
    let (from, to) = (Home::new(), Home::new());
    let old = from.start();
    old.wait_until_ready();
    let pure = Service::start(to.serve_with("conjunction.mode = 'pure'"));
    pure.wait_until_ready();
    report(&old, "", &at("00"));
    let exported = idmint(&["conjunction", "export", "--server", &old.url()])
        .output()
        .unwrap();
    let file = to.path("conjunctions.ndjson");
    fs::write(&file, exported.stdout).unwrap();
    let args = ["conjunction", "import", file.to_str().unwrap()];
    let ended = run(idmint(&[&args[..], &["--server", &pure.url()]].concat()));
    ended.assert(1, &["the service stores no conjunctions"]);
    assert_eq!(ended.out, "");
}

#[test]
fn an_import_that_is_refused_in_the_middle_says_how_much_was_stored() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    report(&service, "", &at("00"));
    let path = "/conjunctions?limit=1";
    let mut conjunction = service.get(path).json()["conjunctions"][0].clone();
    let known = format!("{conjunction}\n");
    conjunction["secondary"] = conjunction["primary"].clone();
    let import = |known_count: usize| {
        let file = home.path("conjunctions.ndjson");
        fs::write(&file, format!("{}{conjunction}", known.repeat(known_count))).unwrap();
        let args = ["conjunction", "import", file.to_str().unwrap()];
        run(idmint(&[&args[..], &["--server", &service.url()]].concat()))
    };
    import(1_000).assert(
        1,
        &[
            "the same as primary",
            "the service has 1000 conjunctions of the file",
        ],
    );
    let ended = import(1);
    ended.assert(1, &["the same as primary"]);
    assert!(!ended.err.contains("of the file"), "{}", ended.err);
}
