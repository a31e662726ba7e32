//! Tokens.

use jiff::Timestamp;
use punctual_core::{By, Token, TokenId};

use super::Transaction;
use crate::change::{self, Wants};
use crate::error::Result;

impl Transaction<'_> {
    /// Makes a token.
    pub fn make_token(&mut self, now: Timestamp, token: Token, by: Option<By>) -> Result<()> {
        self.refuse_repeated(by.as_ref())?;
        let id = token.id.0;
        self.change(&Wants::default(), now, |draft| change::make_token(draft.asked_by(by.clone()), token))?;
        self.note_answer(by.as_ref(), id, now);
        Ok(())
    }

    /// Revokes a token. Whether it was there.
    pub fn revoke_token(&mut self, now: Timestamp, id: TokenId, by: Option<By>) -> bool {
        self.change(&Wants::default(), now, |draft| change::revoke_token(draft.asked_by(by), id))
    }
}
