//! A certificate authority for tests. A test creates it when it runs.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, IsCa, Issuer,
    KeyIdMethod, KeyPair, RevokedCertParams, SanType, SerialNumber, date_time_ymd,
};

use crate::service::Home;

/// A certificate authority that can sign certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub pem: String,
}

/// A certificate and its private key.
#[derive(Clone)]
pub struct Identity {
    pub certificate: String,
    pub key: String,
    serial: u64,
}

impl Authority {
    pub fn new(name: &str) -> Authority {
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

    /// Signs a certificate for these names, which are DNS names, IP addresses or URIs. The first
    /// name, if any, is also the common name.
    pub fn sign(&self, names: &[&str]) -> Identity {
        self.sign_until(names, 2100)
    }

    /// Signs a certificate that expires at the beginning of this year.
    pub fn sign_until(&self, names: &[&str], year: i32) -> Identity {
        self.sign_ending(names, date_time_ymd(year, 1, 1).into())
    }

    /// Signs a certificate that expires at this time.
    pub fn sign_ending(&self, names: &[&str], end: SystemTime) -> Identity {
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
        (params.not_before, params.not_after) = (date_time_ymd(2000, 1, 1), end.into());
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

    /// Returns a certificate revocation list that revokes this certificate.
    pub fn revoke(&self, revoked: &Identity) -> String {
        self.revoke_until(revoked, date_time_ymd(2100, 1, 1).into())
    }

    /// Returns a certificate revocation list that revokes this certificate and is valid until
    /// `end`.
    pub fn revoke_until(&self, revoked: &Identity, end: SystemTime) -> String {
        let revoked = RevokedCertParams {
            serial_number: SerialNumber::from(revoked.serial),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: end.into(),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).unwrap().pem().unwrap()
    }
}

impl Identity {
    /// Writes the certificate and the private key to two files in the folder. Returns their paths.
    pub fn write(&self, home: &Home, name: &str) -> [PathBuf; 2] {
        let files = [
            home.path(&format!("{name}.crt")),
            home.path(&format!("{name}.key")),
        ];
        fs::write(&files[0], &self.certificate).unwrap();
        fs::write(&files[1], &self.key).unwrap();
        files
    }
}
