//! The first token: made when a server first starts, so that whoever started it can come in.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;
use jiff::Timestamp;
use punctual_core::{Actor, By, Role, Token, TokenId};
use punctual_engine::ids::Ids;
use punctual_server::auth::Secret;
use punctual_store::Store;

/// Names a token that the operator has chosen.
const VARIABLE: &str = "PUNCTUAL_TOKEN";

/// Sees to it that there is a token for whoever starts the server: the one of the variable, or the one of the file, which is made
/// if it is not there or is good no more.
pub(super) async fn provide(store: &dyn Store, ids: &dyn Ids, file: &Path, now: Timestamp) -> anyhow::Result<()> {
    let known: Vec<String> = store.tokens().await?.into_iter().map(|record| record.token.hash).collect();
    if let Ok(given) = std::env::var(VARIABLE) {
        let secret = Secret::given(&given);
        anyhow::ensure!(
            32 <= secret.reveal().len(),
            "{VARIABLE} is too short to be a secret: use 32 characters or more"
        );
        return if known.contains(&secret.hash()) { Ok(()) } else { make(store, ids, &secret, VARIABLE, now).await };
    }
    let kept = match std::fs::read_to_string(file) {
        Ok(text) => Some(Secret::given(&text)),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("reading the token in {}", file.display())),
    };
    if kept.is_some_and(|secret| known.contains(&secret.hash())) {
        return Ok(());
    }
    // One that was taken back, or is of another database, does not come back by itself.
    let secret = Secret::random();
    make(store, ids, &secret, "operator", now).await?;
    write(file, &secret).with_context(|| format!("writing the token to {}", file.display()))
}

async fn make(store: &dyn Store, ids: &dyn Ids, secret: &Secret, name: &str, now: Timestamp) -> anyhow::Result<()> {
    let token = Token {
        id: TokenId(ids.next(now)),
        name: name.to_owned(),
        role: Role::Admin,
        projects: None,
        agents: [].into(),
        hash: secret.hash(),
        created_at: now,
        expires_at: None,
    };
    store.make_token(now, token, Some(By::new(Actor::Operator))).await.context("making the first token")
}

/// Only the owner may read it, from the first moment on.
fn write(file: &Path, secret: &Secret) -> std::io::Result<()> {
    let part = file.with_extension("token.part");
    std::fs::remove_file(&part)
        .or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
    let mut out = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    writeln!(out, "{}", secret.reveal())?;
    out.sync_all()?;
    std::fs::rename(&part, file)
}
