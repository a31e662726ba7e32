//! Tokens.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::{By, Token, TokenId};
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::Done;
use super::session::Session;
use super::values::{At, Id, from_json, to_json};
use crate::change::{self, Draft, Wants};
use crate::error::Result;
use crate::requests::TokenRecord;
use crate::roles::Tokens;

#[async_trait]
impl Tokens for SqliteStore {
    async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        self.read("reading the tokens", read_records).await
    }

    async fn make_token(&self, now: Timestamp, token: Token, by: Option<By>) -> Result<()> {
        self.write("making a token", now, move |session| {
            session.refuse_repeated(by.as_ref())?;
            let id = token.id.0;
            session.change_tokens(now, |draft| change::make_token(draft.asked_by(by.clone()), token))??;
            session.note_answer(by.as_ref(), id, now)
        })
        .await
    }

    async fn revoke_token(&self, now: Timestamp, id: TokenId, by: Option<By>) -> Result<bool> {
        self.write("revoking a token", now, move |session| {
            session.change_tokens(now, |draft| change::revoke_token(draft.asked_by(by), id))
        })
        .await
    }

    async fn note_used(&self, used: Vec<(TokenId, Timestamp)>) -> Result<()> {
        let Some(now) = used.iter().map(|(_, at)| *at).max() else { return Ok(()) };
        self.write("noting which tokens are used", now, move |session| {
            let sql = "UPDATE tokens SET used_at = ?2 WHERE id = ?1";
            let mut statement = session.connection.prepare_cached(sql)?;
            for (id, at) in &used {
                statement.execute(params![Id(id.0), At(*at)])?;
            }
            Ok(())
        })
        .await
    }
}

impl Session {
    fn change_tokens<T>(&mut self, now: Timestamp, change: impl FnOnce(&mut Draft) -> T) -> Done<T> {
        let mut draft = self.draft(&Wants::default(), now)?;
        draft.world.tokens = Arc::new(read_tokens(&self.connection)?);
        let before = draft.world.clone();
        let changed = change(&mut draft);
        self.save(&before, &draft)?;
        Ok(changed)
    }

    /// Writes the tokens that are new, and lets go of those that are gone.
    pub(super) fn save_tokens(&self, before: &BTreeMap<TokenId, Token>, after: &BTreeMap<TokenId, Token>) -> Done<()> {
        for id in before.keys().filter(|id| !after.contains_key(id)) {
            self.connection.prepare_cached("DELETE FROM tokens WHERE id = ?1")?.execute([Id(id.0)])?;
        }
        for (id, token) in after.iter().filter(|(id, _)| !before.contains_key(id)) {
            let sql = "INSERT INTO tokens (id, body) VALUES (?1, ?2)";
            self.connection.prepare_cached(sql)?.execute(params![Id(id.0), to_json(token)])?;
        }
        Ok(())
    }
}

/// The tokens, as the journal has them.
pub(super) fn read_tokens(connection: &Connection) -> Done<BTreeMap<TokenId, Token>> {
    Ok(read_records(connection)?.into_iter().map(|record| (record.token.id, record.token)).collect())
}

fn read_records(connection: &Connection) -> Done<Vec<TokenRecord>> {
    let mut statement = connection.prepare_cached("SELECT body, used_at FROM tokens ORDER BY id")?;
    let mut rows = statement.query([])?;
    let mut records = vec![];
    while let Some(row) = rows.next()? {
        let token = from_json(&row.get::<_, String>(0)?, "a token")?;
        records.push(TokenRecord { token, used_at: row.get::<_, Option<At>>(1)?.map(|at| at.0) });
    }
    Ok(records)
}
