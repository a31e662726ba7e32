//! Tokens.

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::{By, Token, TokenId};
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::PostgresStore;
use super::values::At;
use crate::columns::from_json;
use crate::commands;
use crate::error::Result;
use crate::requests::TokenRecord;
use crate::roles::Tokens;

#[async_trait]
impl Tokens for PostgresStore {
    async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        let connections = self.connections.clone();
        self.read("reading the tokens", async move {
            let rows = connections.query("SELECT body::text, used_at FROM tokens ORDER BY id", &[]).await?;
            let mut records = vec![];
            for row in &rows {
                let used_at = row.get::<_, Option<At>>(1).map(|at| at.0);
                records.push(TokenRecord { token: from_json(row.get(0), "a token")?, used_at });
            }
            Ok(records)
        })
        .await
    }

    async fn make_token(&self, now: Timestamp, token: Token, by: Option<By>) -> Result<()> {
        commands::make_token(self, now, token, by).await
    }

    async fn revoke_token(&self, now: Timestamp, id: TokenId, by: Option<By>) -> Result<bool> {
        commands::revoke_token(self, now, id, by).await
    }

    async fn note_used(&self, used: Vec<(TokenId, Timestamp)>) -> Result<()> {
        let connections = self.connections.clone();
        self.read_on("noting which tokens are used", async move {
            let ids: Vec<Uuid> = used.iter().map(|(id, _)| id.0).collect();
            let times: Vec<At> = used.iter().map(|(_, at)| At(*at)).collect();
            let params: [(&(dyn ToSql + Sync), Type); 2] =
                [(&ids, Type::UUID_ARRAY), (&times, Type::TIMESTAMPTZ_ARRAY)];
            let sql = "UPDATE tokens SET used_at = used.at
                FROM unnest($1, $2) AS used (token_id, at) WHERE tokens.id = used.token_id";
            connections.query(sql, &params).await?;
            Ok(())
        })
        .await
    }
}
