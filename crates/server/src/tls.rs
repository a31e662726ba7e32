//! Encrypted connections: a certificate and its key in two files, read again when they are renewed.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::{debug, error, info};

/// How long a client has to agree on a key.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// How often the files are looked at while nobody comes.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A certificate and its key, as the files have them.
#[derive(Debug)]
pub struct Certificate {
    cert: PathBuf,
    key: PathBuf,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    config: Arc<ServerConfig>,
    stamp: Stamp,
}

/// When both files were last written.
type Stamp = Option<(SystemTime, SystemTime)>;

impl Certificate {
    /// Reads a chain of certificates and the key of the first of them, both PEM. The key must be nobody else's to read.
    pub fn read(cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> io::Result<Certificate> {
        let (cert, key) = (cert.into(), key.into());
        let stamp = stamp(&cert, &key);
        let config = Arc::new(read(&cert, &key)?);
        Ok(Certificate { cert, key, current: Mutex::new(Current { config, stamp }) })
    }

    /// A connection on which both sides have agreed on a key; none if the client cannot, or takes too long.
    pub(crate) async fn agree(&self, stream: TcpStream, from: SocketAddr) -> Option<TlsStream<TcpStream>> {
        match timeout(HANDSHAKE_MAX, TlsAcceptor::from(self.config()).accept(stream)).await {
            Ok(Ok(stream)) => return Some(stream),
            Ok(Err(error)) => debug!(%from, %error, "a client could not agree on a key"),
            Err(_) => debug!(%from, "a client took too long to agree on a key"),
        }
        None
    }

    /// Waits a while, and looks at the files if there are any.
    pub(crate) async fn time_to_look(certificate: Option<&Certificate>) {
        tokio::time::sleep(LOOK_EVERY).await;
        if let Some(certificate) = certificate {
            certificate.config();
        }
    }

    /// What is in force. Files that were renewed are taken over; if they are wrong, what was in force stays.
    fn config(&self) -> Arc<ServerConfig> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let found = stamp(&self.cert, &self.key);
        if found != current.stamp {
            current.stamp = found;
            match read(&self.cert, &self.key) {
                Ok(config) => {
                    info!("the certificate was read again");
                    current.config = Arc::new(config);
                }
                Err(error) => error!(%error, "the new certificate is not taken over, the old one stays in force"),
            }
        }
        Arc::clone(&current.config)
    }
}

fn stamp(cert: &Path, key: &Path) -> Stamp {
    let written = |path: &Path| std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    written(cert).zip(written(key))
}

fn read(cert: &Path, key: &Path) -> io::Result<ServerConfig> {
    let wrong = |path: &Path, problem: String| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: {problem}", path.display()))
    };
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_file_iter(cert).map_err(|error| wrong(cert, error.to_string()))?.collect();
    let chain = chain.map_err(|error| wrong(cert, error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(cert, "there is no certificate in it".to_owned()));
    }
    let mode = std::fs::metadata(key).map_err(|error| wrong(key, error.to_string()))?.mode();
    if mode & 0o077 != 0 {
        return Err(wrong(key, "others can read it; `chmod 600` keeps it a secret".to_owned()));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error.to_string()))?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| wrong(cert, error.to_string()))?.with_no_client_auth();
    let mut config = builder.with_single_cert(chain, private).map_err(|error| wrong(key, error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
