//! Agents, and the nodes that have them.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use punctual_core::NodeId;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;

/// An agent of the configuration.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentView {
    agent_id: String,
    /// What carries its work out; none if only other nodes have it.
    #[schema(example = "process")]
    runner: Option<&'static str>,
    /// What it may do: `read`, `write` or `exec`.
    risk: Option<&'static str>,
    /// Which of its runs need an approval: `always` is all of them, `schedule` those whose schedule asks for it.
    #[schema(example = "schedule")]
    approval: Option<&'static str>,
    max_concurrent: Option<u32>,
    timeout_ms: Option<i64>,
    /// The nodes that have it.
    nodes: Vec<String>,
}

/// The agents that live nodes have. What they do is the operator's to say.
#[utoipa::path(get, path = "/api/agents", tag = "about", responses((status = 200, body = Vec<AgentView>)))]
pub(crate) async fn agents(State(app): State<App>, _: Caller) -> Result<Json<Vec<AgentView>>, ApiError> {
    let nodes = app.store.nodes().await?;
    let infos = app.settings.roster.now().infos;
    let own = infos.keys();
    let all = own.chain(nodes.iter().flat_map(|node| &node.agents));
    // What is built in is nobody's to start.
    let names: BTreeSet<&String> = all.filter(|name| !name.contains(':')).collect();
    let view = |name: &String| {
        let info = infos.get(name);
        AgentView {
            agent_id: name.clone(),
            runner: info.map(|info| info.runner),
            risk: info.map(|info| info.risk.name()),
            approval: info.map(|info| info.approval.as_str()),
            max_concurrent: info.and_then(|info| info.max_concurrent),
            timeout_ms: info.map(|info| info.timeout.milliseconds()),
            nodes: nodes.iter().filter(|node| node.agents.contains(name)).map(|node| node.name.clone()).collect(),
        }
    };
    Ok(Json(names.into_iter().map(view).collect()))
}

/// A node that lives, as far as its lease says.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeView {
    #[schema(value_type = uuid::Uuid)]
    node_id: NodeId,
    name: String,
    version: String,
    #[schema(value_type = String, format = DateTime)]
    joined_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    lease_until: Timestamp,
    lease_ms: i64,
    running: usize,
    places: usize,
    /// Whether it was told to claim nothing (SIGUSR1). Each node knows it of itself alone: absent where several share the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<bool>,
    /// By how much its clock is ahead of the one that all nodes share.
    skew_ms: i64,
    zone_data: String,
    /// Where clients reach it, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "https://blue.example:8470")]
    url: Option<String>,
    agents: BTreeSet<String>,
}

/// The nodes that share the work.
#[utoipa::path(get, path = "/api/nodes", tag = "about", responses((status = 200, body = Vec<NodeView>)))]
pub(crate) async fn nodes(State(app): State<App>, _: Caller) -> Result<Json<Vec<NodeView>>, ApiError> {
    let nodes = app.store.nodes().await?;
    let is_paused = (nodes.len() == 1).then(|| app.nudges.is_paused());
    let nodes = nodes.into_iter().map(|node| NodeView {
        node_id: node.id,
        name: node.name,
        version: node.about.version,
        joined_at: node.joined_at,
        lease_until: node.lease_until,
        lease_ms: node.lease.milliseconds(),
        running: node.about.running,
        places: node.about.places,
        paused: is_paused,
        skew_ms: node.about.skew,
        zone_data: node.about.zone_data,
        url: node.about.url,
        agents: node.agents.into_iter().filter(|name| !name.contains(':')).collect(),
    });
    Ok(Json(nodes.collect()))
}
