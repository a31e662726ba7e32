//! Where the server is, and what lets us in: what a running server has left beside its database.

use std::io::{ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Context;
use reqwest::Url;

use super::failure::{Failure, Kind};
use super::http::is_loopback;
use super::own_file::{self, Others};
use crate::database::{Database, DatabaseArgs};
use crate::part_file::PartFile;

/// Names a token of one's own.
const TOKEN_VARIABLE: &str = "PUNCTUAL_TOKEN";

/// What lets us in, and where it was found.
#[derive(Clone)]
pub(crate) struct Token {
    pub(crate) secret: Option<String>,
    pub(crate) found_in: String,
}

/// The token of the variable, else the one that the server has left beside its database.
pub(crate) fn token(database: &DatabaseArgs) -> Token {
    let given = std::env::var(TOKEN_VARIABLE).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    if let Some(secret) = given {
        return Token { secret: Some(secret), found_in: TOKEN_VARIABLE.to_owned() };
    }
    let file = database.token_file();
    match own_file::read(&file, Others::MayNothing) {
        Ok(Some(secret)) => Token { secret: Some(secret), found_in: file.display().to_string() },
        Ok(None) => Token { secret: None, found_in: format!("no token; there is no {}", file.display()) },
        Err(problem) => Token { secret: None, found_in: format!("no token; {problem}") },
    }
}

/// The address that a server has left beside its database. It may be gone by now.
///
/// A file is no proof of who wrote it, and a token goes where it points: so it has to be the user's own, the database has to
/// lie beside it, and the address has to be of this machine.
pub(crate) fn left_url(database: &DatabaseArgs) -> Result<Option<String>, Failure> {
    let file = database.server_file();
    if matches!(&database.database, Database::Sqlite(path) if !path.exists()) {
        return Ok(None);
    }
    let refused = |problem: String| {
        let text = format!("{problem}: where the server is, it does not say with certainty; name it with --server URL");
        Failure::new(Kind::NoServer, text)
    };
    let Some(text) = own_file::read(&file, Others::MayRead).map_err(refused)? else { return Ok(None) };
    let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let Some(url) = url else { return Err(refused(format!("{} holds no address of a server", file.display()))) };
    if !is_loopback(&url) {
        let text = format!(
            "{} names a server that is not on this machine's loopback, and a token goes to such a one only if you say so: \
             --server {text}",
            file.display()
        );
        return Err(Failure::new(Kind::NoServer, text));
    }
    Ok(Some(text))
}

/// The file beside the database that says where its server is. A clean stop takes it away; a killed server leaves it, and
/// nobody answers there.
pub(crate) struct ServerFile {
    path: PathBuf,
    text: String,
}

impl ServerFile {
    /// Says where the server is.
    pub(crate) fn write(database: &DatabaseArgs, url: &str) -> anyhow::Result<ServerFile> {
        let file = ServerFile { path: database.server_file(), text: format!("{url}\n") };
        file.put().with_context(|| format!("writing where the server is to {}", file.path.display()))?;
        Ok(file)
    }

    fn put(&self) -> std::io::Result<()> {
        let mut part = PartFile::create(&self.path)?;
        part.file.write_all(self.text.as_bytes())?;
        part.replace()
    }
}

impl Drop for ServerFile {
    /// Takes the file away, unless another server of the same folder has written its own.
    fn drop(&mut self) {
        if std::fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            remove(&self.path);
        }
    }
}

fn remove(path: &Path) {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => tracing::warn!(%error, "{} stays", path.display()),
        _ => {}
    }
}

/// Nobody can call an address that stands for all of them.
pub(crate) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_stands_for_all_is_called_by_loopback() {
        for (listens, called) in
            [("127.0.0.1:80", "127.0.0.1:80"), ("0.0.0.0:8470", "127.0.0.1:8470"), ("[::]:8470", "[::1]:8470")]
        {
            assert_eq!(reachable(listens.parse().unwrap()).to_string(), called);
        }
    }
}
