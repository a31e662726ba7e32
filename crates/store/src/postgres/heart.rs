//! The heart: leases are renewed on a thread and a connection of their own, whatever else is going on.

use jiff::Timestamp;
use punctual_core::NodeId;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::types::{ToSql, Type};

use super::connect::{Address, Connections};
use super::fault::{Done, Fault};
use super::open::Reply;
use super::rows::{NODE_COLUMNS, read_node};
use super::time::Time;
use super::values::At;
use crate::columns::to_json;
use crate::error::{Result, StoreError};
use crate::panics::FailedPart;
use crate::requests::{About, NodeLease, Sign};

const DOING: &str = "renewing a lease";

/// How long a renewal may take before it is given up.
const RENEWAL_MAX: std::time::Duration = std::time::Duration::from_secs(5);

/// What renews leases.
#[derive(Debug, Clone)]
pub(super) struct Heart {
    beats: mpsc::UnboundedSender<(Sign, Reply<Beat>)>,
    failed: FailedPart,
}

/// What a renewal has brought.
#[derive(Debug)]
pub(super) struct Beat {
    /// What the database's clock showed.
    pub(super) at: Timestamp,
    /// The leases of the others, by node.
    pub(super) others: Vec<NodeLease>,
}

impl Heart {
    pub(super) fn start(address: &Address, time: Time, failed: FailedPart) -> std::io::Result<Heart> {
        let address = address.clone();
        let (beats, mut queue) = mpsc::unbounded_channel::<(Sign, Reply<Beat>)>();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let work = async move {
            let connections = address.connections(1).expect("the same address has worked before");
            while let Some((sign, reply)) = queue.recv().await {
                let renewed = match tokio::time::timeout(RENEWAL_MAX, renew(&connections, &time, &sign)).await {
                    Ok(renewed) => renewed,
                    Err(_) => Err(Fault::Slow(RENEWAL_MAX.as_secs())),
                };
                drop(reply.send(renewed.map_err(|fault| fault.while_doing(DOING))));
            }
        };
        let watched = failed.clone().watch("renewal of leases", work);
        std::thread::Builder::new().name("postgres-heart".to_owned()).spawn(move || runtime.block_on(watched))?;
        Ok(Heart { beats, failed })
    }

    /// Renews a node's lease.
    pub(super) async fn beat(&self, sign: &Sign) -> Result<Beat> {
        self.failed.check()?;
        let gone = || StoreError::Unavailable { doing: DOING, source: "the store has stopped".into() };
        let (reply, answer) = oneshot::channel();
        self.beats.send((sign.clone(), reply)).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

async fn renew(connections: &Connections, time: &Time, sign: &Sign) -> Done<Beat> {
    let connection = connections.get().await?;
    let renewed = send(&connection, time, sign).await;
    if !renewed.as_ref().is_err_and(Fault::is_passing) {
        connection.give_back();
    }
    renewed
}

async fn send(client: &tokio_postgres::Client, time: &Time, sign: &Sign) -> Done<Beat> {
    let NodeId(node) = sign.node;
    let until = At(sign.now + sign.lease.duration());
    let (lease, agents, about) =
        (sign.lease.milliseconds(), to_json(&sign.agents), to_json(&About { skew: time.skew(), ..sign.about.clone() }));
    let names: Vec<&String> = sign.agents.iter().collect();
    let params: [(&(dyn ToSql + Sync), Type); 7] = [
        (&node, Type::UUID),
        (&until, Type::TIMESTAMPTZ),
        (&lease, Type::INT8),
        (&agents, Type::TEXT),
        (&names, Type::TEXT_ARRAY),
        (&At(sign.now), Type::TIMESTAMPTZ),
        (&about, Type::TEXT),
    ];
    let others = format!("SELECT {NODE_COLUMNS} FROM nodes WHERE id <> $1 ORDER BY id");
    let own: [(&(dyn ToSql + Sync), Type); 1] = [(&node, Type::UUID)];
    let asked = Time::ask();
    let (renewed, others) = tokio::try_join!(biased;
        client.query_typed(include_str!("sql/renew.sql"), &params),
        client.query_typed(&others, &own),
    )?;
    if renewed.is_empty() {
        return Err(StoreError::LeaseEnded.into());
    }
    let at = renewed[0].get::<_, At>(1).0;
    time.answer(&asked, at);
    let others = others.iter().map(|row| Ok(read_node(row)?.lease())).collect::<Done<_>>()?;
    Ok(Beat { at, others })
}
