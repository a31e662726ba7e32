//! The pen: who holds it writes, and knows everything that was written before.

use punctual_core::{Elapsed, NodeId};
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::fault::{Done, Fault};
use super::values::At;
use super::writer::State;
use crate::chain::EntryRow;
use crate::columns::{count, from_json, signed};
use crate::requests::{Head, NodeRecord};
use punctual_kernel::transaction::Cluster;
use punctual_kernel::types::Planner;

/// Whatever is usual on the server, what is read behind the pen is what was written before it was free. The limits of the
/// transaction are set by `take_pen`.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// A day before every entry.
const BEFORE_ALL_DAYS: i32 = -1_000_000;

/// Begins a transaction, waits for the pen, and catches up with what others have written. Nodes and leases, and the first
/// entry that counts.
pub(super) async fn take(client: &Client, state: &mut State, locks_nodes: bool) -> Done<(Cluster, Head)> {
    let (day, seq) = (state.day.unwrap_or(BEFORE_ALL_DAYS), signed(state.head.seq));
    let known: [(&(dyn ToSql + Sync), Type); 3] = [(&day, Type::INT4), (&seq, Type::INT8), (&locks_nodes, Type::BOOL)];
    let (_, taken) = tokio::try_join!(biased;
        client.batch_execute(BEGIN),
        client.query_typed_one("SELECT * FROM take_pen($1, $2, $3)", &known),
    )?;
    let taken = Taken(taken);
    taken.follow(state)?;
    let first =
        Head { seq: count(taken.get("first_seq")?), checksum: taken.get::<i64>("checksum_before")?.cast_unsigned() };
    let nodes = taken.nodes()?;
    let agents: Vec<String> = taken.list("agents")?;
    let cluster = Cluster {
        now: Some(taken.get::<At>("now")?.0),
        nodes: nodes.into_iter().map(|node| (node.id, node)).collect(),
        planner: taken.planner()?,
        agents_seen: agents.into_iter().zip(taken.list::<At>("agents_seen_at")?.iter().map(|at| at.0)).collect(),
    };
    Ok((cluster, first))
}

/// What `take_pen` has answered: rows of several tables, each column a list.
struct Taken(Row);

impl Taken {
    fn get<'a, T: FromSql<'a>>(&'a self, column: &str) -> Done<T> {
        self.0.try_get(column).map_err(|error| Fault::Damaged(format!("{column} cannot be read: {error}")))
    }

    /// A column of rows; there may be none.
    fn list<'a, T: FromSql<'a>>(&'a self, column: &str) -> Done<Vec<T>> {
        Ok(self.get::<Option<Vec<T>>>(column)?.unwrap_or_default())
    }

    /// Brings what is known up to date.
    fn follow(&self, state: &mut State) -> Done<()> {
        let (days, seqs): (Vec<i32>, Vec<i64>) = (self.list("entry_days")?, self.list("entry_seqs")?);
        let (times, bodies): (Vec<At>, Vec<String>) = (self.list("entry_times")?, self.list("entry_bodies")?);
        let checksums: Vec<i64> = self.list("entry_checksums")?;
        let heads = seqs
            .iter()
            .zip(&checksums)
            .map(|(seq, checksum)| Head { seq: count(*seq), checksum: checksum.cast_unsigned() });
        let mut entries = heads.zip(days).zip(times.into_iter().zip(bodies));
        // What was read last has to be there still, and to be the same: if not, the server is another one than it was.
        if state.day.is_some() && entries.next().is_none_or(|((head, _), _)| head != state.head) {
            return Err(Fault::Lost(state.head.seq));
        }
        for ((head, day), (at, body)) in entries {
            let entry = EntryRow { seq: head.seq, at: at.0, body, checksum: head.checksum };
            state.mirror.follow(&entry.into_entry()?)?;
            (state.head, state.day) = (head, Some(day));
        }
        Ok(())
    }

    fn nodes(&self) -> Done<Vec<NodeRecord>> {
        let ids: Vec<Uuid> = self.list("node_ids")?;
        let names: Vec<String> = self.list("node_names")?;
        let (joined_at, until): (Vec<At>, Vec<At>) = (self.list("nodes_joined_at")?, self.list("nodes_until")?);
        let leases: Vec<i64> = self.list("node_leases")?;
        let (agents, about): (Vec<&str>, Vec<&str>) = (self.list("node_agents")?, self.list("nodes_about")?);
        let node = |(index, name): (usize, String)| {
            Ok(NodeRecord {
                id: NodeId(ids[index]),
                name,
                joined_at: joined_at[index].0,
                lease_until: until[index].0,
                lease: Elapsed::from_milliseconds(leases[index]).unwrap_or_default(),
                agents: from_json(agents[index], "the agents of a node")?,
                about: from_json(about[index], "a node")?,
            })
        };
        names.into_iter().enumerate().map(node).collect()
    }

    fn planner(&self) -> Done<Option<Planner>> {
        let Some(node) = self.get::<Option<Uuid>>("planner_node")? else { return Ok(None) };
        let (until, epoch) = (self.get::<At>("planner_until")?.0, count(self.get("planner_epoch")?));
        Ok(Some(Planner { node: NodeId(node), until, epoch }))
    }
}
