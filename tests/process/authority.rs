//! An authority for certificates, made in the test.

use std::fs;
use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, IsCa, Issuer,
    KeyIdMethod, KeyPair, RevokedCertParams, SanType, SerialNumber, date_time_ymd,
};

use crate::service::Home;

/// Signs certificates.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

/// A certificate and its key.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
    serial: u64,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            rcgen::KeyUsagePurpose::KeyCertSign,
            rcgen::KeyUsagePurpose::CrlSign,
        ];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// A certificate for these names: DNS, IP addresses, or URIs. The first, if there is one, is its common name, too.
    pub(crate) fn sign(&self, names: &[&str]) -> Identity {
        self.sign_until(names, 2100)
    }

    /// The same, good until the beginning of this year.
    pub(crate) fn sign_until(&self, names: &[&str], year: i32) -> Identity {
        let (uris, others): (Vec<&str>, Vec<&str>) =
            names.iter().partition(|name| name.contains("://"));
        let others: Vec<String> = others.into_iter().map(str::to_owned).collect();
        let mut params = CertificateParams::new(others).unwrap();
        if let Some(first) = names.first() {
            params
                .distinguished_name
                .push(rcgen::DnType::CommonName, *first);
        }
        params.subject_alt_names.extend(
            uris.into_iter()
                .map(|uri| SanType::URI(uri.try_into().unwrap())),
        );
        (params.not_before, params.not_after) =
            (date_time_ymd(2000, 1, 1), date_time_ymd(year, 1, 1));
        let key = KeyPair::generate().unwrap();
        let serial = rand::random::<u64>() >> 1;
        params.serial_number = Some(SerialNumber::from(serial));
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Identity {
            certificate,
            key: key.serialize_pem(),
            serial,
        }
    }

    /// A list of certificates that are not good any more.
    pub(crate) fn revoke(&self, revoked: &Identity) -> String {
        let revoked = RevokedCertParams {
            serial_number: SerialNumber::from(revoked.serial),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(2100, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).unwrap().pem().unwrap()
    }
}

impl Identity {
    /// Its two files in this folder.
    pub(crate) fn write(&self, home: &Home, name: &str) -> [PathBuf; 2] {
        let files = [
            home.path(&format!("{name}.crt")),
            home.path(&format!("{name}.key")),
        ];
        fs::write(&files[0], &self.certificate).unwrap();
        fs::write(&files[1], &self.key).unwrap();
        files
    }
}
