//! The chain of checksums that the journal's entries make.

use jiff::Timestamp;
use punctual_core::journal::{Entry, checksum};

use crate::columns::{Damage, from_json};
use crate::requests::Head;

/// An entry, as its row has it.
pub(crate) struct EntryRow {
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) body: String,
    pub(crate) checksum: u64,
}

impl EntryRow {
    /// The checksum that it should have behind another.
    pub(crate) fn checksum_behind(&self, before: u64) -> u64 {
        checksum(before, self.seq, self.at, &self.body)
    }

    pub(crate) fn into_entry(self) -> Result<Entry, Damage> {
        let body = from_json(&self.body, &format!("entry {}", self.seq))?;
        Ok(Entry { seq: self.seq, at: self.at, body })
    }
}

/// The chain of checksums, as far as it has been followed.
pub(crate) struct Chain {
    pub(crate) seq: u64,
    pub(crate) checksum: u64,
}

impl Chain {
    /// Goes on to the next entry, which must be the next.
    pub(crate) fn check(&mut self, entry: &EntryRow) -> Result<(), String> {
        if entry.seq != self.seq + 1 {
            return Err(format!("entry {} of the journal follows entry {}", entry.seq, self.seq));
        }
        if entry.checksum_behind(self.checksum) != entry.checksum {
            return Err(format!("entry {} of the journal is not what its checksum says", entry.seq));
        }
        (self.seq, self.checksum) = (entry.seq, entry.checksum);
        Ok(())
    }

    /// Here the journal must end.
    pub(crate) fn check_head(&self, head: Head) -> Result<(), String> {
        if self.seq == head.seq && self.checksum == head.checksum {
            return Ok(());
        }
        Err(format!("the journal ends with entry {}, and should end with entry {}", self.seq, head.seq))
    }
}
