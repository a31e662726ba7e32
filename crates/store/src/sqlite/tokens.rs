//! Tokens.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::{By, Token, TokenId};
use rusqlite::params;

use super::SqliteStore;
use super::values::{At, Id};
use crate::commands;
use crate::error::Result;
use crate::kept::Kept;
use crate::requests::TokenRecord;
use crate::roles::Tokens;

#[async_trait]
impl Tokens for SqliteStore {
    async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        let tokens: Vec<Token> = self.look("reading the tokens", |state| state.tokens().cloned().collect()).await?;
        let used = self.read("reading which tokens are used", |connection| {
            let mut statement = connection.prepare_cached("SELECT id, used_at FROM tokens_used")?;
            let used = statement.query_map([], |row| Ok((TokenId(row.get::<_, Id>(0)?.0), row.get::<_, At>(1)?.0)))?;
            Ok(used.collect::<rusqlite::Result<BTreeMap<TokenId, Timestamp>>>()?)
        });
        let used = used.await?;
        Ok(tokens.into_iter().map(|token| TokenRecord { used_at: used.get(&token.id).copied(), token }).collect())
    }

    async fn make_token(&self, now: Timestamp, token: Token, by: Option<By>) -> Result<()> {
        commands::make_token(self, now, token, by).await
    }

    async fn revoke_token(&self, now: Timestamp, id: TokenId, by: Option<By>) -> Result<bool> {
        let was_there = commands::revoke_token(self, now, id, by).await?;
        self.write("forgetting when a token was used", move |connection| {
            connection.prepare_cached("DELETE FROM tokens_used WHERE id = ?1")?.execute([Id(id.0)])?;
            Ok(())
        })
        .await?;
        Ok(was_there)
    }

    async fn note_used(&self, used: Vec<(TokenId, Timestamp)>) -> Result<()> {
        let known = self.look("reading the tokens", |state| state.tokens().map(|token| token.id).collect::<Vec<_>>());
        let known = known.await?;
        let used: Vec<_> = used.into_iter().filter(|(id, _)| known.contains(id)).collect();
        if used.is_empty() {
            return Ok(());
        }
        self.write("noting which tokens are used", move |connection| {
            let sql = "INSERT OR REPLACE INTO tokens_used (id, used_at) VALUES (?1, ?2)";
            let mut statement = connection.prepare_cached(sql)?;
            for (id, at) in &used {
                statement.execute(params![Id(id.0), At(*at)])?;
            }
            Ok(())
        })
        .await
    }
}
