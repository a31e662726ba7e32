//! The first token: made when a database has no admin, so that whoever started the server can come in.

use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};
use punctual_core::{Actor, By, Once, Role, Token, TokenId};
use punctual_engine::clock::Clock;
use punctual_engine::ids::Ids;
use punctual_server::auth::Secret;
use punctual_store::{Store, StoreError};

use crate::part_file::PartFile;

/// Names a token that the operator has chosen.
const VARIABLE: &str = "PUNCTUAL_TOKEN";

/// How often a token of the file that the store does not know is looked for: another server may be about to make it.
const LOOKS: usize = 20;

/// The rest between two looks.
const REST: SignedDuration = SignedDuration::from_millis(100);

/// How often a token is made that was made before and taken back since.
const MADE_AGAIN_MAX: usize = 100;

/// Whether whoever started the server has a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstToken {
    /// It is where it is looked for.
    Here,
    /// The database has an admin, and the token is somewhere else, or nobody has it any more.
    Elsewhere,
}

/// What a token is made with.
pub(crate) struct Maker<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) ids: &'a dyn Ids,
    pub(crate) clock: &'a dyn Clock,
    /// The node that it is named after.
    pub(crate) node: &'a str,
}

/// Why a token is made: of several servers that want one for the same reason, one makes it.
enum Reason<'a> {
    /// The database has no admin.
    NoAdmin,
    /// The operator has chosen it.
    Given(&'a Secret),
}

impl Maker<'_> {
    /// Sees to it that there is a token for whoever starts the server: the one of the variable, or the one of the file. If there
    /// is none, or it is good no more, one is made, but only while the database has no admin: then others decide who comes in.
    pub(super) async fn provide(&self, file: &Path) -> anyhow::Result<FirstToken> {
        if let Some(secret) = given() {
            self.make(&secret, VARIABLE, Reason::Given(&secret)).await?;
            return Ok(FirstToken::Here);
        }
        for _ in 0..LOOKS {
            let Some(secret) = read(file)? else {
                if self.has_admin().await? {
                    return Ok(FirstToken::Elsewhere);
                }
                let secret = Secret::random();
                if !write(file, &secret).and_then(PartFile::put_new).with_context(|| writing(file))? {
                    continue;
                }
                let made = self.make(&secret, &self.name(), Reason::NoAdmin).await;
                if !matches!(made, Ok(true)) {
                    std::fs::remove_file(file).with_context(|| format!("removing {}", file.display()))?;
                }
                return made.map(|is_made| if is_made { FirstToken::Here } else { FirstToken::Elsewhere });
            };
            if self.is_known(&secret).await? {
                return Ok(FirstToken::Here);
            }
            self.clock.sleep_until(self.clock.now() + REST).await;
        }
        // One that was taken back, or is of another database, does not come back by itself.
        let secret = Secret::random();
        if !self.make(&secret, &self.name(), Reason::NoAdmin).await? {
            return Ok(FirstToken::Elsewhere);
        }
        write(file, &secret).and_then(PartFile::replace).with_context(|| writing(file))?;
        Ok(FirstToken::Here)
    }

    /// Makes a token of an admin for whoever has the database itself, and puts it where it is looked for.
    pub(crate) async fn recover(&self, file: &Path) -> anyhow::Result<String> {
        if let Some(secret) = read(file)?
            && self.is_known(&secret).await?
        {
            anyhow::bail!("the token in {} is good: there is nothing to recover", file.display());
        }
        let (secret, name) = (Secret::random(), format!("recovered@{}", self.node));
        let token = self.token(&secret, &name, self.clock.now());
        self.store
            .make_token(token.created_at, token, Some(By::new(Actor::Operator)))
            .await
            .context("making a token")?;
        write(file, &secret).and_then(PartFile::replace).with_context(|| writing(file))?;
        Ok(name)
    }

    fn name(&self) -> String {
        format!("operator@{}", self.node)
    }

    fn token(&self, secret: &Secret, name: &str, now: Timestamp) -> Token {
        Token {
            id: TokenId(self.ids.next(now)),
            name: name.to_owned(),
            role: Role::Admin,
            projects: None,
            agents: [].into(),
            hash: secret.hash(),
            created_at: now,
            expires_at: None,
        }
    }

    /// Makes a token if its reason still holds. Whether this server has made it.
    ///
    /// Servers that start together name the same request, which the store carries out once. One that was carried out before, and
    /// whose token was taken back since, is named by the time of that: so those who start after it agree again.
    async fn make(&self, secret: &Secret, name: &str, reason: Reason<'_>) -> anyhow::Result<bool> {
        let request = match reason {
            Reason::NoAdmin => "first token".to_owned(),
            Reason::Given(secret) => format!("given token {}", secret.hash()),
        };
        let mut key = request.clone();
        for _ in 0..MADE_AGAIN_MAX {
            let is_over = match reason {
                Reason::NoAdmin => self.has_admin().await?,
                Reason::Given(secret) => self.is_known(secret).await?,
            };
            if is_over {
                return Ok(false);
            }
            let now = self.clock.now();
            let by = By { once: Some(Once { key: key.clone(), digest: 0 }), ..By::new(Actor::Operator) };
            match self.store.make_token(now, self.token(secret, name, now), Some(by)).await {
                Ok(()) => return Ok(true),
                Err(StoreError::Answered(earlier)) => key = format!("{request} after {}", earlier.at),
                Err(error) => return Err(error).context("making the first token"),
            }
        }
        anyhow::bail!("the first token is made and taken back again and again")
    }

    async fn is_known(&self, secret: &Secret) -> anyhow::Result<bool> {
        let hash = secret.hash();
        Ok(self.store.tokens().await?.into_iter().any(|record| record.token.hash == hash))
    }

    /// Whether anybody can make tokens for everything.
    async fn has_admin(&self) -> anyhow::Result<bool> {
        let now = self.clock.now();
        let mut tokens = self.store.tokens().await?.into_iter().map(|record| record.token);
        Ok(tokens.any(|token| token.role == Role::Admin && token.projects.is_none() && token.is_valid(now)))
    }
}

fn writing(file: &Path) -> String {
    format!("writing the token to {}", file.display())
}

/// Begins the file of a token.
fn write(file: &Path, secret: &Secret) -> std::io::Result<PartFile> {
    let mut part = PartFile::create(file)?;
    writeln!(part.file, "{}", secret.reveal())?;
    Ok(part)
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

fn read(file: &Path) -> anyhow::Result<Option<Secret>> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(Secret::given(&text))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading the token in {}", file.display())),
    }
}
