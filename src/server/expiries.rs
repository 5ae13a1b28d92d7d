//! Reads the times at which certificates and certificate revocation lists expire. Logs a warning
//! every day for each credential that expires soon.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, iter};

use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use tracing::warn;

use super::config::{Config, EngineChoice};
use idmint_core::time::UnixTime;
use idmint_service::{Expiry, ExpiryKind, Service};
use idmint_storage::EtcdTls;

const HOUR: Duration = Duration::from_hours(1);

/// Tags of types in the binary encoding DER (X.690).
const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Returns the expiry times of the certificates and certificate revocation lists in a PEM file.
/// `setting` is the key of the setting that names the file. Unreadable parts of the file are
/// skipped, because the code that uses the file reports them.
pub(super) fn expiries_in(pem: &[u8], kind: ExpiryKind, setting: &str) -> Vec<Expiry> {
    let certificates = CertificateDer::pem_slice_iter(pem)
        .filter_map(|certificate| Some((kind, end_of(&certificate.ok()?)?)));
    let lists = CertificateRevocationListDer::pem_slice_iter(pem)
        .filter_map(|list| Some((ExpiryKind::RevocationList, end_of(&list.ok()?)?)));
    let expiry = |(kind, at)| Expiry {
        kind,
        name: setting.to_owned(),
        at,
    };
    certificates.chain(lists).map(expiry).collect()
}

/// Returns the TLS files for connections to etcd. Returns `None` unless the node is part of a fleet
/// and connects to etcd with TLS.
pub fn etcd_tls(config: &Config) -> Option<EtcdTls> {
    match config.engine_choice() {
        EngineChoice::Etcd(settings) => settings.tls,
        EngineChoice::Own(_) => None,
    }
}

/// Reads the expiry times of the certificates for connections to etcd. Passes these times to the
/// service, which reports them.
pub fn read_etcd_expiries(service: &Service, tls: Option<&EtcdTls>) {
    let read = |path: &Path, kind, setting| {
        let pem = fs::read(path).unwrap_or_default();
        expiries_in(&pem, kind, setting)
    };
    let expiries = tls.map(|tls| {
        let mut expiries = read(&tls.ca, ExpiryKind::Authority, "etcd.ca");
        if let Some((certificate, _)) = &tls.identity {
            let kind = ExpiryKind::Certificate;
            expiries.extend(read(certificate, kind, "etcd.certificate"));
        }
        expiries
    });
    service.set_expiries("etcd", expiries.unwrap_or_default());
}

/// Logs a warning for each credential that has expired or expires within 30 days.
pub(super) fn warn_of_expiries(service: &Service) {
    let now = service.clock().now();
    for expiry in service.expiries() {
        if let Some(text) = expiry.warning(now) {
            let (kind, name) = (expiry.kind.label(), &expiry.name);
            warn!(kind, name, "{text}");
        }
    }
}

/// Reads the certificates for connections to etcd again every hour. Once a day, logs a warning for
/// each credential that expires soon.
pub(super) async fn watch<S: Future<Output = ()>>(
    service: Arc<Service>,
    etcd: Option<EtcdTls>,
    sleep: impl Fn(Duration) -> S,
) {
    loop {
        for _ in 0..24 {
            sleep(HOUR).await;
            read_etcd_expiries(&service, etcd.as_ref());
        }
        warn_of_expiries(&service);
    }
}

/// Returns the time at which a certificate expires (`notAfter`), or after which a certificate
/// revocation list is outdated (`nextUpdate`). In both cases this is the second time in the encoded
/// value (RFC 5280, sections 4.1 and 5.1).
///
/// The TLS library reads these times, but has no function that returns them.
fn end_of(der: &[u8]) -> Option<UnixTime> {
    let signed = elements(der).next()?.1;
    let fields = elements(signed).next()?.1;
    let times = elements(fields).flat_map(|(tag, value)| {
        // In a revocation list, the times of this and of the next update are separate fields. In a
        // certificate, both times of its validity are inside one field, which is a sequence.
        let inner = if tag == SEQUENCE { value } else { &[] };
        iter::once((tag, value)).chain(elements(inner))
    });
    let mut times = times.filter_map(|(tag, value)| to_time(tag, str::from_utf8(value).ok()?));
    times.nth(1)
}

/// Reads a time such as `260131120000Z` or, with [`GENERALIZED_TIME`], `20260131120000Z`.
fn to_time(tag: u8, text: &str) -> Option<UnixTime> {
    let (century, text) = match tag {
        GENERALIZED_TIME => text.split_at_checked(2)?,
        // A year with two digits means 2000 to 2049, or 1950 to 1999 (RFC 5280, section 4.1.2.5.1).
        UTC_TIME if text < "50" => ("20", text),
        UTC_TIME => ("19", text),
        _ => return None,
    };
    let part = |place: usize| text.get(place..place + 2);
    let (year, month, day) = (part(0)?, part(2)?, part(4)?);
    let (hour, minute, second) = (part(6)?, part(8)?, part(10)?);
    let text = format!("{century}{year}-{month}-{day}T{hour}:{minute}:{second}Z");
    text.parse().ok()
}

/// Returns the elements of a value in the binary encoding DER. Each element consists of its tag and
/// its value.
fn elements(mut der: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    iter::from_fn(move || {
        let [tag, len, rest @ ..] = der else {
            return None;
        };
        // A length byte below 0x80 is the length itself. In a higher one, the lower seven bits are
        // the number of bytes that follow and contain the length.
        let (len, rest) = match usize::from(*len) {
            len @ ..0x80 => (len, rest),
            long => {
                let (len, rest) = rest.split_at_checked(long - 0x80)?;
                let digits = len.iter().map(|byte| usize::from(*byte));
                (digits.reduce(|len, digit| len << 8 | digit)?, rest)
            }
        };
        let value;
        (value, der) = rest.split_at_checked(len)?;
        Some((*tag, value))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::SystemTime;

    use prometheus::Registry;
    use tokio::sync::Notify;

    use super::*;
    use crate::server::assembly::assemble;
    use idmint_core::minting::Randomness;
    use idmint_core::time::{ManualClock, UnixNanos};
    use idmint_testing::authority::Authority;

    fn second(text: &str) -> (SystemTime, UnixTime) {
        let at: UnixTime = text.parse().expect("an instant");
        let since_1970 = at.seconds().try_into().expect("after 1970");
        let end = SystemTime::UNIX_EPOCH + Duration::from_secs(since_1970);
        (end, at)
    }

    /// According to RFC 5280, a time has a year with two digits until 2049, and a year with four
    /// digits from 2050 on. This test has examples of both.
    #[test]
    fn the_end_of_certificates_and_lists_is_read_to_the_second() {
        let authority = Authority::new("an authority");
        for text in [
            "2026-02-28T00:00:01Z",
            "2049-12-31T23:59:59Z",
            "2050-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
        ] {
            let (end, at) = second(text);
            let certificate = authority.sign_ending(&["a.example.com"], end);
            let list = authority.revoke_until(&certificate, end);
            let pem = [&*certificate.certificate, &list].concat();
            let kinds = [ExpiryKind::Certificate, ExpiryKind::RevocationList];
            let ends = kinds.map(|kind| Expiry {
                kind,
                name: "a".to_owned(),
                at,
            });
            let found = expiries_in(pem.as_bytes(), ExpiryKind::Certificate, "a");
            assert_eq!(found, ends, "{text}");
        }
        let (_, last_century) = second("1999-12-31T23:59:58Z");
        assert_eq!(to_time(UTC_TIME, "991231235958Z"), Some(last_century));
    }

    #[tokio::test]
    async fn certificates_for_etcd_are_reread_every_hour_and_reported_every_day() {
        let dir = tempfile::tempdir().expect("a folder");
        let (ca, log) = (dir.path().join("ca.pem"), dir.path().join("log"));
        let clock = Arc::new(ManualClock::at(UnixNanos::from_seconds(1_900_000_000)).clock());
        let (config, registry) = (Config::default(), Registry::new());
        let service = assemble(&config, clock, &Randomness::Thread, &registry);
        let service = Arc::new(service.expect("a valid configuration"));
        let tls = EtcdTls {
            ca: ca.clone(),
            identity: None,
        };
        let written = Mutex::new(fs::File::create(&log).expect("our folder"));
        let subscriber = tracing_subscriber::fmt().with_writer(written).finish();
        let _logging = tracing::subscriber::set_default(subscriber);

        let (hours, has_ended) = (AtomicU32::new(0), Notify::new());
        let (end, at) = second("2030-04-01T00:00:00Z");
        let authority = Authority::new("an authority").sign_ending(&["etcd"], end);
        fs::write(&ca, authority.certificate).expect("our folder");
        let pass = |time| {
            assert_eq!(time, HOUR);
            let hour = hours.fetch_add(1, Ordering::Relaxed);
            let has_ended = &has_ended;
            async move {
                if hour == 48 {
                    has_ended.notify_one();
                    std::future::pending().await
                }
            }
        };
        tokio::select! {
            () = watch(Arc::clone(&service), Some(tls), pass) => unreachable!("it never ends"),
            () = has_ended.notified() => {}
        }

        assert_eq!(service.expiries().first().map(|expiry| expiry.at), Some(at));
        let log = fs::read_to_string(log).expect("our file");
        assert_eq!(
            log.matches("an authority in etcd.ca expires in").count(),
            2,
            "{log}"
        );
    }

    #[test]
    fn no_damaged_certificate_makes_the_reader_panic() {
        let pem = Authority::new("an authority").pem;
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
        assert!(end_of(&der).is_some());
        for len in 0..der.len().min(100) {
            assert_eq!(end_of(&der[..len]), None, "{len} bytes");
        }
        let mut damaged = der.to_vec();
        for place in 0..damaged.len() {
            for value in 0..=255 {
                damaged[place] = value;
                let _ = end_of(&damaged);
            }
            damaged[place] = der[place];
        }
    }
}
