//! Tokens.

use jiff::Timestamp;
use punctual_core::{By, Token, TokenId};

use super::Writing;
use crate::change::{self, Wants};
use crate::error::Result;

impl Writing<'_> {
    pub(crate) fn make_token(&mut self, now: Timestamp, token: Token, by: Option<By>) -> Result<()> {
        self.refuse_repeated(by.as_ref())?;
        let id = token.id.0;
        self.change(&Wants::default(), now, |draft| change::make_token(draft.asked_by(by.clone()), token))?;
        self.note_answer(by.as_ref(), id, now);
        Ok(())
    }

    pub(crate) fn revoke_token(&mut self, now: Timestamp, id: TokenId, by: Option<By>) -> bool {
        self.change(&Wants::default(), now, |draft| change::revoke_token(draft.asked_by(by), id))
    }
}
