//! Checks what is reported about certificates, revocation lists and tokens that expire: by the
//! metric, the log, `idmint check` and `idmint status`.

use std::fs;
use std::time::{Duration, SystemTime};

use idmint_core::time::UnixTime;
use idmint_testing::authority::Authority;
use idmint_testing::service::{Ended, Service, Signal, idmint, run};

use crate::tls::{OPERATOR, Secured};

const DAY: Duration = Duration::from_hours(24);

/// Returns the time `days` days and 12 hours from now, in whole seconds, as two types.
fn in_days(days: i32) -> (SystemTime, UnixTime) {
    let now = Duration::from_secs(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs());
    let now = now + DAY / 2;
    let end = match u32::try_from(days) {
        Ok(ahead) => now + DAY * ahead,
        Err(_) => now - DAY * days.unsigned_abs(),
    };
    (SystemTime::UNIX_EPOCH + end, UnixTime::EPOCH.after(end))
}

fn check(secured: &Secured) -> Ended {
    run(idmint(&["check", "--config", &secured.path("idmint.toml")]))
}

fn status(secured: &Secured, service: &Service) -> Ended {
    let url = format!("https://localhost:{}", service.address().port());
    run(idmint(&[
        "status",
        "--server",
        &url,
        "--ca",
        &secured.path("ca.pem"),
    ]))
}

/// Starts a service whose certificate authority, revocation list and token expire in `days` days.
/// Asserts what the service and the commands report.
///
/// `end` is the description of the end in the warnings, or `None` if there must be no warning.
async fn assert_reports(days: i32, end: Option<&str>, check_code: i32) {
    let secured = Secured::new();
    let ((near, near_text), (far, far_text)) = (in_days(days), in_days(400));
    secured
        .authority
        .sign_ending(&["localhost", "127.0.0.1"], far)
        .write(&secured.home, "service");
    let old = Authority::new("old authority").sign_ending(&["old"], near);
    let list = secured.clients.revoke_until(&old, near);
    let clients = [&*secured.clients.pem, &old.certificate, &list].concat();
    fs::write(secured.path("clients.pem"), clients).unwrap();
    let entry = |name: &str, digit: &str, more: &str| {
        let sha256 = digit.repeat(64);
        format!("[[token]]\nname = '{name}'\nsha256 = '{sha256}'\nscopes = ['mint']\n{more}\n")
    };
    let expires = format!("expires = '{}'", near_text.to_text(0).unwrap());
    let tokens = entry("billing", "a", &expires) + &entry("audit", "b", "");
    fs::write(secured.path("tokens.toml"), tokens).unwrap();
    let settings = format!(
        "{}http.tokens = '{}'\n",
        secured.client_settings(&format!("'{OPERATOR}' = ['metrics']")),
        secured.path("tokens.toml")
    );

    let service = secured.start(&settings).await;
    let (checked, status) = (check(&secured), status(&secured, &service));

    for (kind, name, at, subject) in [
        ("certificate", "http.tls.certificate", far_text, None),
        (
            "authority",
            "http.tls.client_ca",
            near_text,
            Some("an authority in"),
        ),
        (
            "revocation_list",
            "http.tls.client_ca",
            near_text,
            Some("the revocation list in"),
        ),
        ("token", "billing", near_text, Some("the token")),
    ] {
        let series = format!("idmint_expiry_timestamp_seconds{{kind=\"{kind}\",name=\"{name}\"}}");
        let value = secured.metric(&service, &series).await;
        assert_eq!(value.to_string(), at.seconds().to_string(), "{series}");
        let (Some(subject), Some(end)) = (subject, end) else {
            continue;
        };
        let warning = format!("{subject} {name} {end} at {}: ", at.to_text(0).unwrap());
        let checked = format!("{}{}", checked.out, checked.err);
        for (place, text) in [("log", &service.log()), ("check", &checked)] {
            assert!(
                text.contains(&warning),
                "{place}: {warning} is not in {text}"
            );
        }
        assert_eq!(
            status.out.contains(&warning),
            kind != "token",
            "names of tokens are not public: {}",
            status.out
        );
    }
    let tokens = "warning  tokens: 1 expired or expire within 30 days";
    assert_eq!(status.out.contains(tokens), end.is_some(), "{}", status.out);
    let log = service.log();
    assert_eq!(log.contains("expire"), end.is_some(), "{log}");
    assert!(
        checked.out.contains("next to expire    "),
        "{}",
        checked.out
    );
    checked.assert(check_code, &[]);
    let valid = checked.out.contains("the configuration is valid\n");
    assert_eq!(valid, end.is_none(), "{}", checked.out);
    status.assert(0, &[]);
}

#[tokio::test]
async fn what_has_expired_is_reported_and_an_expired_authority_fails_the_check() {
    assert_reports(-1, Some("expired"), 78).await;
}

#[tokio::test]
async fn what_expires_within_thirty_days_is_reported() {
    assert_reports(10, Some("expires in 10 days,"), 0).await;
}

#[tokio::test]
async fn what_expires_later_is_only_a_metric() {
    assert_reports(40, None, 0).await;
}

#[test]
fn an_expired_certificate_is_named_by_the_start_the_check_and_the_status() {
    let secured = Secured::new();
    let sign = |days| {
        let names = ["localhost", "127.0.0.1"];
        let identity = secured.authority.sign_ending(&names, in_days(days).0);
        identity.write(&secured.home, "service");
    };
    sign(-1);
    let service = Service::start(secured.home.serve_with(&secured.settings()));
    let subject = "the certificate in http.tls.certificate expired at ";
    service.log_once_it_says(subject);
    check(&secured).assert(78, &[subject, "replace it and its key, then send SIGHUP"]);
    let refused = status(&secured, &service);
    refused.assert(69, &["then send SIGHUP to the service", "\"Expiring\""]);
    assert!(!refused.err.contains("start it again"), "{}", refused.err);

    // First renew the certificate by one that expires soon, which must give a warning. Then renew
    // it by a good one, which must give none.
    for (days, warnings) in [(10, 1), (400, 0)] {
        sign(days);
        service.send(Signal::HUP);
        let renewed = idmint_testing::service::until("the certificate is used", || {
            let status = status(&secured, &service);
            let count = status.out.matches("warning  the certificate in").count();
            (status.status.code() == Some(0) && count == warnings).then_some(status)
        });
        renewed.assert(0, &[]);
        check(&secured).assert(0, &[]);
    }
    let reread = "the certificate in http.tls.certificate expires in 10 days, at ";
    assert_eq!(
        service.log().matches(reread).count(),
        1,
        "{}",
        service.log()
    );
}

#[test]
fn a_token_cannot_be_made_after_its_end() {
    let make = |at: UnixTime| {
        let at = at.to_string();
        let made = run(idmint(&[
            "token",
            "new",
            "--name",
            "a",
            "--scopes",
            "mint",
            "--expires",
            &at,
        ]));
        (at, made)
    };
    let (at, refused) = make(in_days(-1).1);
    let says = format!("--expires {at} has passed: give a later instant");
    refused.assert(64, &[&says]);
    assert_eq!(refused.out, "");
    make(in_days(1).1).1.assert(0, &[]);
}
