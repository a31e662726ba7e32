//! Tokens.

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::{By, Token, TokenId};

use super::MemoryStore;
use crate::error::Result;
use crate::requests::TokenRecord;
use crate::roles::Tokens;
use punctual_kernel::change::{self, Wants};

#[async_trait]
impl Tokens for MemoryStore {
    async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        let state = self.state();
        let record =
            |token: &Token| TokenRecord { token: token.clone(), used_at: state.tokens_used.get(&token.id).copied() };
        Ok(state.world.tokens.values().map(record).collect())
    }

    async fn make_token(&self, now: Timestamp, token: Token, by: Option<By>) -> Result<()> {
        let mut state = self.state();
        state.refuse_repeated(by.as_ref())?;
        let id = token.id.0;
        let mut draft = state.draft(&Wants::default(), now);
        change::make_token(draft.asked_by(by.clone()), token)?;
        state.save(draft, &Wants::default());
        state.note_answer(by.as_ref(), id, now);
        Ok(())
    }

    async fn revoke_token(&self, now: Timestamp, id: TokenId, by: Option<By>) -> Result<bool> {
        let mut state = self.state();
        let mut draft = state.draft(&Wants::default(), now);
        let was_there = change::revoke_token(draft.asked_by(by), id);
        state.save(draft, &Wants::default());
        state.tokens_used.remove(&id);
        Ok(was_there)
    }

    async fn note_used(&self, used: Vec<(TokenId, Timestamp)>) -> Result<()> {
        let mut state = self.state();
        let known = std::sync::Arc::clone(&state.world.tokens);
        state.tokens_used.extend(used.into_iter().filter(|(id, _)| known.contains_key(id)));
        Ok(())
    }
}
