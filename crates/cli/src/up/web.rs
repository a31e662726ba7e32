//! The HTTP side of a server.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use punctual_core::Elapsed;
use punctual_core::time::Zones;
use punctual_server::{Certificate, ConductorRules, ConnectionLimits, HouseRules};
use reqwest::Url;
use tokio::net::TcpListener;

use crate::client::{is_loopback, reachable};
use crate::config::{Config, ServerConfig};

/// Where and how the API is served.
#[derive(Debug, Args)]
pub(crate) struct WebArgs {
    /// Where the API is served
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8470", env = "PUNCTUAL_LISTEN", value_parser = address)]
    pub(super) listen: SocketAddr,

    /// Another name that this server may be called by, as clients write it; may be repeated
    #[arg(long, value_name = "HOST")]
    pub(super) allow_host: Vec<String>,

    /// The certificates that connections are encrypted with, PEM, the server's own first; read again when it is renewed
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The key of the certificate, PEM, readable by nobody else
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Where clients reach this node, for those who ask the database [default: the address that is served, if others can use it]
    #[arg(long, value_name = "URL", env = "PUNCTUAL_ADVERTISE", value_parser = advertised)]
    advertise: Option<String>,

    /// How many seconds a request may read the database before it is cut off and answered with 503
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=25))]
    read_timeout: u64,

    /// Something in front of this server encrypts: without it, only addresses of this machine itself are served
    #[arg(long)]
    behind_proxy: bool,
}

impl WebArgs {
    /// The certificate, if there is one.
    pub(super) fn certificate(&self) -> anyhow::Result<Option<Arc<Certificate>>> {
        let Some((cert, key)) = self.tls_cert.as_ref().zip(self.tls_key.as_ref()) else { return Ok(None) };
        let certificate = Certificate::read(cert, key).context("reading the certificate and its key")?;
        Ok(Some(Arc::new(certificate)))
    }

    /// How long a request may read.
    pub(super) fn read_max(&self) -> Duration {
        Duration::from_secs(self.read_timeout)
    }

    /// Where clients find the server that listens on an address. A certificate is for a name: the first that was given.
    pub(super) fn url(&self, address: SocketAddr) -> String {
        let name = self.allow_host.first().filter(|_| self.tls_cert.is_some());
        match name {
            Some(name) if name.contains(':') => format!("https://{name}"),
            Some(name) => format!("https://{name}:{}", address.port()),
            None if self.tls_cert.is_some() => format!("https://{}", reachable(address)),
            None => format!("http://{}", reachable(address)),
        }
    }

    /// What clients may take, where so many connections can be served.
    pub(super) fn limits(&self, config: &ServerConfig, connections: usize) -> ConnectionLimits {
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        ConnectionLimits {
            connections,
            // Behind a proxy everybody has the same address.
            per_address: (!self.behind_proxy).then_some(config.connections_per_address() as usize),
            spares_loopback: config.max_connections_per_address.is_none(),
            idle: seconds(config.idle_timeout_seconds),
            write: seconds(config.write_timeout_seconds),
        }
    }

    /// Where the node says that it can be reached: as the operator says, else under the address that it listens on, if that is
    /// one and a token would not go there in the clear.
    pub(super) fn advertised(&self, address: SocketAddr) -> Option<String> {
        let is_one = !address.ip().is_unspecified() || self.tls_cert.is_some() && !self.allow_host.is_empty();
        let url = || Some(self.url(address)).filter(|url| is_one && advertised(url).is_ok());
        self.advertise.clone().or_else(url)
    }

    /// Opens the address. Tokens do not travel in the clear unless the operator says that they do not.
    pub(super) async fn open(&self) -> anyhow::Result<TcpListener> {
        anyhow::ensure!(
            self.listen.ip().is_loopback() || self.behind_proxy || self.tls_cert.is_some(),
            "{} can be reached from other machines, and tokens would travel in the clear: \
            use 127.0.0.1, --tls-cert and --tls-key, or --behind-proxy if something in front of it encrypts",
            self.listen
        );
        TcpListener::bind(self.listen)
            .await
            .with_context(|| format!("listening on {}; --listen chooses another address", self.listen))
    }
}

/// An address and a port, by number or by a name that this machine knows.
fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or_else(|| "use an address of this machine and a port, like 127.0.0.1:8470 or [::1]:8470".to_owned())
}

/// An address that clients use with a token.
fn advertised(text: &str) -> Result<String, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.ok_or("use the address of a server, like https://punctual.example:8470")?;
    if url.scheme() == "http" && !is_loopback(&url) {
        return Err("tokens would travel in the clear; use https://".to_owned());
    }
    Ok(text.to_owned())
}

/// What operators lay down for everybody who comes over the API.
pub(crate) fn house_rules(config: &Config, zones: &Zones) -> anyhow::Result<Arc<HouseRules>> {
    Ok(Arc::new(HouseRules {
        default_zone: zones.get(&config.default_timezone)?,
        min_interval: Elapsed::from_seconds(config.engine.min_interval_seconds),
        runs_per_day_warning: config.engine.runs_per_day_warning as usize,
        conductor: ConductorRules {
            zone: zones.get(&config.conductor.scheduler_time_zone)?,
            jitter: config.conductor.jitter,
            catch_up_max: config.conductor.catch_up_max,
        },
    }))
}
