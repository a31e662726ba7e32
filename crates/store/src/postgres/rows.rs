//! Rows: nodes as their table has them.

use jiff::Timestamp;
use punctual_core::{Elapsed, NodeId};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::fault::{Done, Fault};
use super::values::At;
use crate::columns::from_json;
use crate::requests::NodeRecord;

/// What is read of a node.
pub(super) const NODE_COLUMNS: &str = "id, name, joined_at, lease_until, lease, agents::text, about::text";

/// Reads columns from left to right.
struct Columns<'a> {
    row: &'a Row,
    next: usize,
}

impl<'a> Columns<'a> {
    fn of(row: &'a Row) -> Columns<'a> {
        Columns { row, next: 0 }
    }

    fn next<T: FromSql<'a>>(&mut self) -> Done<T> {
        let column = self.next;
        self.next += 1;
        self.row.try_get(column).map_err(|error| Fault::Damaged(format!("a row cannot be read: {error}")))
    }

    fn at(&mut self) -> Done<Timestamp> {
        Ok(self.next::<At>()?.0)
    }
}

/// Reads [`NODE_COLUMNS`].
pub(super) fn read_node(row: &Row) -> Done<NodeRecord> {
    let mut columns = Columns::of(row);
    Ok(NodeRecord {
        id: NodeId(columns.next()?),
        name: columns.next()?,
        joined_at: columns.at()?,
        lease_until: columns.at()?,
        lease: Elapsed::from_milliseconds(columns.next()?).unwrap_or_default(),
        agents: from_json(columns.next()?, "the agents of a node")?,
        about: from_json(columns.next()?, "a node")?,
    })
}
