//! Rows of the journal: a commit's entries in as few rows as hold them, and the chain of checksums that they make.
//!
//! A row is text with one entry a line: when it was written, in microseconds, and what happened, as JSON. Lines are found without
//! reading them, so that one entry of many costs what one costs.

use jiff::Timestamp;
use punctual_core::journal::{Entry, checksum};
use punctual_kernel::transaction::Line;

use crate::columns::{Damage, from_json};
use crate::requests::Head;

/// How long a row gets before another is begun. One entry that is longer has a row to itself.
const ROW_MAX: usize = 64 * 1024;

/// Entries in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JournalRow {
    /// The number of its first entry.
    pub(crate) first: u64,
    /// The number of its last entry.
    pub(crate) last: u64,
    /// When the last of them was written, by whose clock it may be.
    pub(crate) at: Timestamp,
    /// The entries, one a line.
    pub(crate) body: String,
    /// The checksum of the last entry, which is over every entry before.
    pub(crate) checksum: u64,
}

/// The rows of a commit. A time that is finer than a microsecond would be read back as another, and is refused.
pub(crate) fn pack(lines: &[Line]) -> Result<Vec<JournalRow>, String> {
    let mut rows: Vec<JournalRow> = vec![];
    for line in lines {
        if line.at.subsec_nanosecond() % 1_000 != 0 {
            return Err(format!("{} is finer than a microsecond", line.at));
        }
        let text = (line.at.as_microsecond(), &line.body);
        let is_full = |row: &JournalRow| ROW_MAX < row.body.len() + line.body.len();
        match rows.last_mut().filter(|row| !is_full(row)) {
            Some(row) => {
                row.body.push('\n');
                push(&mut row.body, text);
                (row.last, row.checksum, row.at) = (line.seq, line.checksum, row.at.max(line.at));
            }
            None => {
                let mut body = String::with_capacity(line.body.len() + 20);
                push(&mut body, text);
                rows.push(JournalRow { first: line.seq, last: line.seq, at: line.at, body, checksum: line.checksum });
            }
        }
    }
    Ok(rows)
}

fn push(to: &mut String, (at, body): (i64, &String)) {
    use std::fmt::Write;
    write!(to, "{at} {body}").expect("text takes anything");
}

/// One entry, as a row has it.
struct Text<'a> {
    seq: u64,
    at: Timestamp,
    body: &'a str,
}

impl JournalRow {
    fn texts(&self) -> impl Iterator<Item = Result<Text<'_>, Damage>> {
        self.body.split('\n').zip(self.first..).map(|(line, seq)| {
            let parts = line.split_once(' ').and_then(|(at, body)| Some((at.parse().ok()?, body)));
            let (at, body): (i64, &str) =
                parts.ok_or_else(|| Damage(format!("entry {seq} of the journal cannot be read")))?;
            let at = Timestamp::from_microsecond(at)
                .map_err(|error| Damage(format!("the time of entry {seq} cannot be read: {error}")))?;
            Ok(Text { seq, at, body })
        })
    }

    /// Its entries, in order.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>, Damage> {
        self.texts().map(|text| text?.entry()).collect()
    }

    /// One of its entries.
    pub(crate) fn entry(&self, seq: u64) -> Result<Entry, Damage> {
        let missing = || Err(Damage(format!("entry {seq} of the journal is missing")));
        let Some(index) = seq.checked_sub(self.first) else { return missing() };
        self.texts().nth(index as usize).map_or_else(missing, |text| text?.entry())
    }
}

impl Text<'_> {
    fn entry(&self) -> Result<Entry, Damage> {
        let body = from_json(self.body, &format!("entry {}", self.seq))?;
        Ok(Entry { seq: self.seq, at: self.at, body })
    }
}

/// The chain of checksums, as far as it has been followed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chain(pub(crate) Head);

impl Chain {
    /// Goes on over a row, which must be the next.
    pub(crate) fn check(&mut self, row: &JournalRow) -> Result<(), String> {
        if row.first != self.0.seq + 1 {
            return Err(format!("entry {} of the journal follows entry {}", row.first, self.0.seq));
        }
        let mut head = self.0;
        for text in row.texts() {
            let text = text.map_err(|damage| damage.to_string())?;
            head = Head { seq: text.seq, checksum: checksum(head.checksum, text.seq, text.at, text.body) };
        }
        if head != (Head { seq: row.last, checksum: row.checksum }) {
            return Err(format!(
                "entries {} to {} of the journal are not what their checksum says",
                row.first, row.last
            ));
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
        assert!(3 < rows.len() && rows.iter().all(|row| row.body.len() <= ROW_MAX + 40), "{}", rows.len());
        let mut chain = Chain(Head::default());
        rows.iter().for_each(|row| chain.check(row).unwrap());
        chain.check_head(Head { seq: 50, checksum: rows.last().unwrap().checksum }).unwrap();
        let mut chain = Chain(Head::default());
        chain.check(&rows[0]).unwrap();
        chain.check(&rows[2]).unwrap_err();
        let changed = JournalRow { body: rows[1].body.replacen("xx", "xy", 1), ..rows[1].clone() };
        chain.check(&changed).unwrap_err();
        chain.check(&rows[1]).unwrap();
    }
}
