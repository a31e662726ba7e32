//! Tokens.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::{By, Token, TokenId};
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::Done;
use super::values::{At, Id, from_json};
use crate::commands;
use crate::error::Result;
use crate::requests::TokenRecord;
use crate::roles::Tokens;

#[async_trait]
impl Tokens for SqliteStore {
    async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        self.read("reading the tokens", read_records).await
    }

    async fn make_token(&self, now: Timestamp, token: Token, by: Option<By>) -> Result<()> {
        commands::make_token(self, now, token, by).await
    }

    async fn revoke_token(&self, now: Timestamp, id: TokenId, by: Option<By>) -> Result<bool> {
        commands::revoke_token(self, now, id, by).await
    }

    async fn note_used(&self, used: Vec<(TokenId, Timestamp)>) -> Result<()> {
        if used.is_empty() {
            return Ok(());
        }
        self.write("noting which tokens are used", move |connection| {
            let mut statement = connection.prepare_cached("UPDATE tokens SET used_at = ?2 WHERE id = ?1")?;
            for (id, at) in &used {
                statement.execute(params![Id(id.0), At(*at)])?;
            }
            Ok(())
        })
        .await
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
