//! Encryption of connections: on unless the server is on this machine, and certificates are checked.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::StoreError;

/// Whether connections are encrypted, and whom they trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    /// Nobody has said: encrypted unless the server is on this machine.
    Unsaid,
    /// Not encrypted.
    Off,
    /// Encrypted, whoever answers.
    Unchecked,
    /// Encrypted, by a server whose certificate an authority has signed: those of this system, or one that a file names.
    Checked(Option<PathBuf>),
}

impl Choice {
    /// Takes `sslmode` and `sslrootcert` out of an address.
    pub(super) fn taken_from(address: &str) -> Result<(String, Choice), StoreError> {
        let bad = |why: String| StoreError::BadAddress { why };
        let Some((front, query)) = address.split_once('?') else { return Ok((address.to_owned(), Choice::Unsaid)) };
        let (mut mode, mut authority) = (None, None);
        let mut kept = vec![];
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value.to_owned()),
                Some(("sslrootcert", value)) => authority = Some(PathBuf::from(value)),
                _ => kept.push(pair),
            }
        }
        let choice = match (mode.as_deref(), authority) {
            (Some("disable"), _) => Choice::Off,
            (Some("no-verify"), _) => Choice::Unchecked,
            (Some("require" | "verify-ca" | "verify-full"), authority) => Choice::Checked(authority),
            (Some("prefer" | "allow") | None, None) => Choice::Unsaid,
            (Some("prefer" | "allow") | None, authority) => Choice::Checked(authority),
            (Some(other), _) => {
                return Err(bad(format!("sslmode={other} is unknown; use disable, no-verify, require or verify-full")));
            }
        };
        let front = if kept.is_empty() { front.to_owned() } else { format!("{front}?{}", kept.join("&")) };
        Ok((front, choice))
    }

    /// What it comes to, now that it is known whether the server is on this machine.
    pub(super) fn unless_near(self, is_near: bool) -> Choice {
        match self {
            Choice::Unsaid if is_near => Choice::Off,
            Choice::Unsaid => Choice::Checked(None),
            choice => choice,
        }
    }

    /// What encrypts connections, if anything does.
    pub(super) fn connector(&self) -> Result<Option<MakeRustlsConnect>, StoreError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = || {
            ClientConfig::builder_with_provider(Arc::clone(&provider))
                .with_safe_default_protocol_versions()
                .map_err(|error| StoreError::BadAddress { why: error.to_string() })
        };
        let config = match self {
            Choice::Off | Choice::Unsaid => return Ok(None),
            Choice::Checked(authority) => {
                builder()?.with_root_certificates(roots(authority.as_ref())?).with_no_client_auth()
            }
            Choice::Unchecked => {
                let anybody = Arc::new(Anybody(provider.signature_verification_algorithms));
                builder()?.dangerous().with_custom_certificate_verifier(anybody).with_no_client_auth()
            }
        };
        Ok(Some(MakeRustlsConnect::new(config)))
    }
}

fn roots(authority: Option<&PathBuf>) -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    match authority {
        None => roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs),
        Some(path) => {
            let unreadable =
                |why: String| StoreError::BadAddress { why: format!("sslrootcert={}: {why}", path.display()) };
            let certificates = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(error.to_string()))?;
            let certificates: Result<Vec<_>, _> = certificates.collect();
            roots.add_parsable_certificates(certificates.map_err(|error| unreadable(error.to_string()))?)
        }
    };
    if roots.is_empty() {
        let why = "there is no certificate to trust: give sslrootcert=FILE, or install the system's authorities";
        return Err(StoreError::BadAddress { why: why.to_owned() });
    }
    Ok(roots)
}

/// Trusts anybody, for who asks for that: signatures are still checked, names and authorities are not.
#[derive(Debug)]
struct Anybody(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// The provider of encryption, which a process has one of.
pub(super) fn install_provider() {
    // Somebody else may have been first: there is only one that this project brings.
    drop(CryptoProvider::install_default(aws_lc_rs::default_provider()));
}
