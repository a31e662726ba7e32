//! What runs print.

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::RunId;

use super::MemoryStore;
use crate::error::Result;
use crate::requests::{Piece, PrintedPiece};
use crate::roles::Output;

#[async_trait]
impl Output for MemoryStore {
    async fn print(&self, pieces: Vec<Piece>, keep: u64) -> Result<()> {
        let mut state = self.state();
        for piece in pieces {
            let same = |it: &Piece| (it.run, it.epoch) == (piece.run, piece.epoch);
            if state.output.iter().any(|it| same(&it.piece) && it.piece.ends_at == piece.ends_at) {
                continue;
            }
            state.printed += 1;
            state.output.retain(|it| !same(&it.piece) || piece.ends_at < it.piece.ends_at + keep);
            let seq = state.printed;
            state.output.push(PrintedPiece { seq, piece });
        }
        Ok(())
    }

    async fn printed(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<PrintedPiece>> {
        let state = self.state();
        let wanted = state.output.iter().filter(|it| it.piece.run == run && after < it.seq);
        Ok(wanted.take(limit).cloned().collect())
    }

    async fn forget_output(&self, before: Timestamp) -> Result<usize> {
        let output = &mut self.state().output;
        let count = output.len();
        output.retain(|it| before <= it.piece.at);
        Ok(count - output.len())
    }
}
