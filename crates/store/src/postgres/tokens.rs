//! Tokens, and when they were used.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::{By, Token, TokenId};
use tracing::debug;
use uuid::Uuid;

use super::PostgresStore;
use super::statement::Statement;
use super::values::At;
use crate::commands;
use crate::error::Result;
use crate::kept::Kept;
use crate::requests::TokenRecord;
use crate::roles::Tokens;

#[async_trait]
impl Tokens for PostgresStore {
    async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        let connections = self.connections.clone();
        let used: BTreeMap<TokenId, Timestamp> = self
            .read("reading which tokens are used", async move {
                let rows = connections.query("SELECT id, used_at FROM tokens_used", &[]).await?;
                Ok(rows.iter().map(|row| (TokenId(row.get(0)), row.get::<_, At>(1).0)).collect())
            })
            .await?;
        let tokens = self.look("reading the tokens", |state| state.tokens().cloned().collect::<Vec<Token>>()).await?;
        let there: BTreeSet<TokenId> = tokens.iter().map(|token| token.id).collect();
        self.forget_used(used.keys().filter(|id| !there.contains(id)).copied().collect()).await;
        Ok(tokens.into_iter().map(|token| TokenRecord { used_at: used.get(&token.id).copied(), token }).collect())
    }

    async fn make_token(&self, now: Timestamp, token: Token, by: Option<By>) -> Result<()> {
        commands::make_token(self, now, token, by).await
    }

    async fn revoke_token(&self, now: Timestamp, id: TokenId, by: Option<By>) -> Result<bool> {
        let was_there = commands::revoke_token(self, now, id, by).await?;
        self.forget_used(vec![id]).await;
        Ok(was_there)
    }

    async fn note_used(&self, used: Vec<(TokenId, Timestamp)>) -> Result<()> {
        let known = self
            .look("looking for tokens that are used", move |state| {
                let is_there = |id: &TokenId| state.tokens().any(|token| token.id == *id);
                used.iter().filter(|(id, _)| is_there(id)).copied().collect::<BTreeMap<TokenId, Timestamp>>()
            })
            .await?;
        let connections = self.connections.clone();
        self.read_on("noting which tokens are used", async move {
            let sql = "INSERT INTO tokens_used SELECT * FROM unnest($1::uuid[], $2::timestamptz[])
                ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at";
            let statement = Statement::new(sql).uuids(known.keys().map(|id| id.0)).times(known.values().copied());
            connections.query(statement.sql(), &statement.params()).await?;
            Ok(())
        })
        .await
    }
}

impl PostgresStore {
    /// Forgets when tokens were used that are there no more. If that does not work now, it is noticed later.
    async fn forget_used(&self, ids: Vec<TokenId>) {
        if ids.is_empty() {
            return;
        }
        let connections = self.connections.clone();
        let forgotten = self.read_on("forgetting tokens", async move {
            let ids: Vec<Uuid> = ids.into_iter().map(|id| id.0).collect();
            let statement = Statement::new("DELETE FROM tokens_used WHERE id = ANY($1)").uuids(ids.into_iter());
            connections.query(statement.sql(), &statement.params()).await?;
            Ok(())
        });
        if let Err(error) = forgotten.await {
            debug!("when revoked tokens were used is not forgotten yet: {error}");
        }
    }
}
