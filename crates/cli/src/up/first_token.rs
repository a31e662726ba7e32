//! The first token: made when a server first starts, so that whoever started it can come in.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};
use punctual_core::{Actor, By, Role, Token, TokenId};
use punctual_engine::clock::Clock;
use punctual_engine::ids::Ids;
use punctual_server::auth::Secret;
use punctual_store::Store;

/// Names a token that the operator has chosen.
const VARIABLE: &str = "PUNCTUAL_TOKEN";

/// How often a token of the file that the store does not know is looked for: another server may be about to make it.
const LOOKS: usize = 20;

/// The rest between two looks.
const REST: SignedDuration = SignedDuration::from_millis(100);

/// Sees to it that there is a token for whoever starts the server: the one of the variable, or the one of the file, which is made
/// if it is not there or is good no more. Servers that start together in one folder share it.
pub(super) async fn provide(store: &dyn Store, ids: &dyn Ids, clock: &dyn Clock, file: &Path) -> anyhow::Result<()> {
    if let Some(secret) = given() {
        return if is_known(store, &secret).await? {
            Ok(())
        } else {
            make(store, ids, &secret, VARIABLE, clock.now()).await
        };
    }
    for _ in 0..LOOKS {
        let Some(secret) = read(file)? else {
            let secret = Secret::random();
            if write_new(file, &secret).with_context(|| format!("writing the token to {}", file.display()))? {
                return make(store, ids, &secret, "operator", clock.now()).await;
            }
            continue;
        };
        if is_known(store, &secret).await? {
            return Ok(());
        }
        clock.sleep_until(clock.now() + REST).await;
    }
    // One that was taken back, or is of another database, does not come back by itself.
    let secret = Secret::random();
    make(store, ids, &secret, "operator", clock.now()).await?;
    replace(file, &secret).with_context(|| format!("writing the token to {}", file.display()))
}

/// The token that the operator has chosen.
fn given() -> Option<Secret> {
    std::env::var(VARIABLE).ok().map(|given| Secret::given(&given))
}

/// Refuses a token of the variable that is none, before anything is made.
pub(super) fn check() -> anyhow::Result<()> {
    anyhow::ensure!(
        given().is_none_or(|secret| 32 <= secret.reveal().len()),
        "{VARIABLE} is too short to be a secret: use 32 characters or more"
    );
    Ok(())
}

async fn is_known(store: &dyn Store, secret: &Secret) -> anyhow::Result<bool> {
    let hash = secret.hash();
    Ok(store.tokens().await?.into_iter().any(|record| record.token.hash == hash))
}

fn read(file: &Path) -> anyhow::Result<Option<Secret>> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(Secret::given(&text))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading the token in {}", file.display())),
    }
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

/// Writes a file that is whole when it is there. Whether it was not there before.
fn write_new(file: &Path, secret: &Secret) -> std::io::Result<bool> {
    let part = write_part(file, secret)?;
    let linked = std::fs::hard_link(&part, file);
    std::fs::remove_file(&part)?;
    match linked {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

fn replace(file: &Path, secret: &Secret) -> std::io::Result<()> {
    std::fs::rename(write_part(file, secret)?, file)
}

/// Only the owner may read it, from the first moment on.
fn write_part(file: &Path, secret: &Secret) -> std::io::Result<PathBuf> {
    let part = file.with_extension(format!("{}.part", uuid::Uuid::now_v7()));
    let mut out = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    writeln!(out, "{}", secret.reveal())?;
    out.sync_all()?;
    Ok(part)
}
