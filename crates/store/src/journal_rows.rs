//! Rows of the journal: a commit's entries in as few rows as hold them, and the chain of checksums that they make.
//!
//! A row is two texts with one entry a line: the changes, each with when it was written, in microseconds, and the details, which
//! may be empty ([`Parts`]). Lines are found without reading them, so that one entry of many costs what one costs. Who follows
//! the journal reads the changes alone.

use std::iter::repeat;

use jiff::Timestamp;
use punctual_core::journal::{Body, Entry, Parts, checksum};
use punctual_kernel::transaction::Line;

use crate::columns::Damage;
use crate::requests::Head;

/// How long a row gets before another is begun. One entry that is longer has a row to itself.
const ROW_MAX: usize = 64 * 1024;

/// The changes of entries in a row: what applying them needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangeRow {
    /// The number of its first entry.
    pub(crate) first: u64,
    /// The number of its last entry.
    pub(crate) last: u64,
    /// When the last of them was written, by whose clock it may be.
    pub(crate) at: Timestamp,
    /// The changes, one a line.
    pub(crate) change: String,
    /// The checksum of the last entry, which is over every entry before.
    pub(crate) checksum: u64,
}

/// Whole entries in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JournalRow {
    /// What applying them needs.
    pub(crate) changes: ChangeRow,
    /// What else they say, one a line.
    pub(crate) detail: String,
}

/// The rows of a commit. A time that is finer than a microsecond would be read back as another, and is refused.
pub(crate) fn pack(lines: &[Line]) -> Result<Vec<JournalRow>, String> {
    let mut rows: Vec<JournalRow> = vec![];
    for line in lines {
        if line.at.subsec_nanosecond() % 1_000 != 0 {
            return Err(format!("{} is finer than a microsecond", line.at));
        }
        let Parts { change, detail } = line.text.as_ref();
        let change = format!("{} {change}", line.at.as_microsecond());
        let is_full = |row: &JournalRow| ROW_MAX < row.len() + change.len() + detail.len();
        match rows.last_mut().filter(|row| !is_full(row)) {
            Some(JournalRow { changes: row, detail: details }) => {
                row.change.extend(["\n", &change]);
                details.extend(["\n", detail]);
                (row.last, row.checksum, row.at) = (line.seq, line.checksum, row.at.max(line.at));
            }
            None => {
                let (first, last) = (line.seq, line.seq);
                let changes = ChangeRow { first, last, at: line.at, change, checksum: line.checksum };
                rows.push(JournalRow { changes, detail: detail.to_owned() });
            }
        }
    }
    Ok(rows)
}

/// One entry, as a row has it.
struct Text<'a> {
    seq: u64,
    at: Timestamp,
    parts: Parts<&'a str>,
}

impl ChangeRow {
    /// Its entries, in order, as far as applying them needs: the rest of each is blank.
    pub(crate) fn bare_entries(&self) -> Result<Vec<Entry>, Damage> {
        let entry = |text: Text<'_>| text.entry_of(Parts::bare_body(text.parts.change));
        self.texts("").map(|text| entry(text?)).collect()
    }

    fn texts<'a>(&'a self, detail: &'a str) -> impl Iterator<Item = Result<Text<'a>, Damage>> {
        let details = detail.split('\n').chain(repeat(""));
        self.change.split('\n').zip(details).zip(self.first..).map(|((line, detail), seq)| {
            let parts = line.split_once(' ').and_then(|(at, change)| Some((at.parse().ok()?, change)));
            let (at, change): (i64, &str) =
                parts.ok_or_else(|| Damage(format!("entry {seq} of the journal cannot be read")))?;
            let at = Timestamp::from_microsecond(at)
                .map_err(|error| Damage(format!("the time of entry {seq} cannot be read: {error}")))?;
            Ok(Text { seq, at, parts: Parts { change, detail } })
        })
    }
}

impl JournalRow {
    fn len(&self) -> usize {
        self.changes.change.len() + self.detail.len()
    }

    fn texts(&self) -> impl Iterator<Item = Result<Text<'_>, Damage>> {
        self.changes.texts(&self.detail)
    }

    /// Its entries, in order.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>, Damage> {
        self.texts().map(|text| text?.entry()).collect()
    }

    /// One of its entries.
    pub(crate) fn entry(&self, seq: u64) -> Result<Entry, Damage> {
        let missing = || Err(Damage(format!("entry {seq} of the journal is missing")));
        let Some(index) = seq.checked_sub(self.changes.first) else { return missing() };
        self.texts().nth(index as usize).map_or_else(missing, |text| text?.entry())
    }
}

impl Text<'_> {
    fn entry(&self) -> Result<Entry, Damage> {
        self.entry_of(self.parts.body())
    }

    fn entry_of(&self, body: serde_json::Result<Body>) -> Result<Entry, Damage> {
        let body = body.map_err(|error| Damage(format!("entry {} cannot be read: {error}", self.seq)))?;
        Ok(Entry { seq: self.seq, at: self.at, body })
    }
}

/// The chain of checksums, as far as it has been followed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chain(pub(crate) Head);

impl Chain {
    /// Goes on over a row, which must be the next.
    pub(crate) fn check(&mut self, row: &JournalRow) -> Result<(), String> {
        let ChangeRow { first, last, checksum: after, .. } = row.changes;
        if first != self.0.seq + 1 {
            return Err(format!("entry {first} of the journal follows entry {}", self.0.seq));
        }
        let mut head = self.0;
        for text in row.texts() {
            let text = text.map_err(|damage| damage.to_string())?;
            head = Head { seq: text.seq, checksum: checksum(head.checksum, text.seq, text.at, text.parts) };
        }
        if head != (Head { seq: last, checksum: after }) {
            return Err(format!("entries {first} to {last} of the journal are not what their checksum says"));
        }
        self.0 = head;
        Ok(())
    }

    /// Here the journal must end.
    pub(crate) fn check_head(&self, head: Head) -> Result<(), String> {
        if self.0 == head {
            return Ok(());
        }
        Err(format!("the journal ends with entry {}, and should end with entry {}", self.0.seq, head.seq))
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::NodeId;
    use punctual_core::journal::Body;
    use punctual_kernel::state::State;
    use punctual_kernel::transaction::{Cluster, Found, Transaction};

    use super::*;

    fn lines(names: &[String]) -> Vec<Line> {
        let (mut state, at) = (State::default(), Timestamp::from_microsecond(1_767_571_200_000_001).unwrap());
        let mut transaction = Transaction::new(&mut state, Head::default(), Cluster::default(), Found::default());
        for name in names {
            let body = Body::NodeJoined { node: NodeId(uuid::Uuid::nil()), name: name.clone() };
            transaction.append(at, body).unwrap();
        }
        transaction.changes.lines
    }

    #[test]
    fn entries_come_out_of_rows_as_they_went_in() {
        let names: Vec<String> = ["a", "two\nlines", "", "ü \"q\""].iter().map(|name| (*name).to_owned()).collect();
        let rows = pack(&lines(&names)).unwrap();
        assert_eq!(rows.len(), 1);
        let entries = rows[0].entries().unwrap();
        for (entry, name) in entries.iter().zip(&names) {
            assert!(matches!(&entry.body, Body::NodeJoined { name: found, .. } if found == name));
            assert_eq!(&rows[0].entry(entry.seq).unwrap(), entry);
        }
        assert_eq!(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
        rows[0].entry(5).unwrap_err();
    }

    #[test]
    fn rows_are_bounded_and_make_one_chain() {
        let names: Vec<String> = (0..50).map(|number| "x".repeat(number * 200)).collect();
        let rows = pack(&lines(&names)).unwrap();
        assert!(3 < rows.len() && rows.iter().all(|row| row.len() <= ROW_MAX + 40), "{}", rows.len());
        let mut chain = Chain(Head::default());
        rows.iter().for_each(|row| chain.check(row).unwrap());
        chain.check_head(Head { seq: 50, checksum: rows.last().unwrap().changes.checksum }).unwrap();
        let mut chain = Chain(Head::default());
        chain.check(&rows[0]).unwrap();
        chain.check(&rows[2]).unwrap_err();
        let mut changed = rows[1].clone();
        changed.changes.change = changed.changes.change.replacen("xx", "xy", 1);
        chain.check(&changed).unwrap_err();
        // Nor may anything be put into a detail.
        let changed = JournalRow { detail: rows[1].detail.replacen('\n', "{}\n", 1), ..rows[1].clone() };
        chain.check(&changed).unwrap_err();
        chain.check(&rows[1]).unwrap();
    }
}
