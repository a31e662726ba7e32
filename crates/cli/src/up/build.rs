//! From the configuration to what the engine is made of.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use punctual_agents::process::{Limits as ProcessLimits, ProcessAgent, ProcessRunner, Supervisor};
use punctual_agents::workflow::{ConductorServer, WorkflowRunner};
use punctual_core::Elapsed;
use punctual_core::plan::{AgentApproval, Limits};
use punctual_core::time::Zones;
use punctual_engine::roster::{AgentInfo, Agents, Risk, Roster, STARTER, Workflows};
use punctual_engine::runner::Runner;
use punctual_engine::settings::Settings;

use crate::config::{Agent, ConductorConfig, Config, ProcessConfig, RunnerConfig};

/// What carries out the runs of each agent.
pub(super) fn runners(config: &Config) -> anyhow::Result<BTreeMap<String, Arc<dyn Runner>>> {
    let mut runners: BTreeMap<String, Arc<dyn Runner>> = BTreeMap::new();
    for (name, agent) in &config.agents {
        let RunnerConfig::Process(process) = &agent.runner;
        let runner = ProcessRunner::new(process_agent(process), Supervisor::this_program());
        let runner = runner.with_context(|| format!("agent {name}"))?;
        runners.insert(name.clone(), Arc::new(runner));
    }
    let starter = WorkflowRunner::new(conductor_server(&config.conductor)).context("[conductor]")?;
    runners.insert(STARTER.to_owned(), Arc::new(starter));
    Ok(runners)
}

/// The server that starts workflows.
fn conductor_server(config: &ConductorConfig) -> Option<ConductorServer> {
    let server = ConductorServer::new(config.server_url.clone()?);
    Some(match (&config.key_id, &config.key_secret) {
        (Some(id), Some(secret)) => server.with_key(id.clone(), secret.clone()),
        _ => server,
    })
}

/// The settings of the node.
pub(crate) fn settings(config: &Config, zones: Zones, name: &str) -> Settings {
    let engine = &config.engine;
    Settings {
        lease: Elapsed::from_seconds(engine.lease_duration_seconds),
        poll: Elapsed::from_seconds(engine.executor_poll_interval_seconds),
        journal_kept: config.retention.history,
        output_kept: config.retention.output,
        places: engine.executor_pool_size as usize,
        remote_places: config.conductor.max_running as usize,
        records_kept: Some(config.conductor.keep),
        drain: Elapsed::from_seconds(engine.drain_seconds),
        approval_wait: Elapsed::from_seconds(engine.approval_wait_seconds),
        min_interval: Elapsed::from_seconds(engine.min_interval_seconds),
        roster: Arc::new(Roster::new(agents(config))),
        calendars: config.calendars.clone(),
        ..Settings::new(name, Default::default(), zones)
    }
}

/// The agents that the node has, and how many runs may be at work.
pub(super) fn agents(config: &Config) -> Agents {
    let caps = |named: &mut dyn Iterator<Item = (&String, NonZeroU32)>| {
        named.map(|(name, max)| (name.clone(), max.get())).collect::<BTreeMap<String, u32>>()
    };
    let limits = Limits {
        global: config.engine.max_running.map(NonZeroU32::get),
        agents: caps(&mut config.agents.iter().filter_map(|(name, agent)| Some((name, agent.max_concurrent?)))),
        projects: caps(&mut config.project_caps.iter().map(|(name, max)| (name, *max))),
    };
    let info = |agent: &Agent| AgentInfo {
        runner: "process",
        risk: agent.risk,
        approval: agent.approval,
        timeout: agent.timeout,
        max_concurrent: agent.max_concurrent.map(NonZeroU32::get),
    };
    let starter = AgentInfo {
        runner: "workflow",
        risk: Risk::Exec,
        approval: AgentApproval::Schedule,
        timeout: Elapsed::from_seconds(60),
        max_concurrent: None,
    };
    let named = config.agents.iter().map(|(name, agent)| (name.clone(), info(agent)));
    let infos = named.chain([(STARTER.to_owned(), starter)]).collect();
    let ConductorConfig { workflows, server_url, .. } = &config.conductor;
    let workflows = Workflows { agents: workflows.clone(), has_server: server_url.is_some() };
    let (prices, workflows) = (Arc::new(config.prices.clone()), Arc::new(workflows));
    Agents { prices, workflows, ..Agents::new(infos, limits) }
}

/// What a process runner is made of.
pub(crate) fn process_agent(config: &ProcessConfig) -> ProcessAgent {
    let defaults = ProcessLimits::default();
    let limits = ProcessLimits {
        cpu_seconds: config.limits.cpu.map(|cpu| cpu.milliseconds().unsigned_abs().div_ceil(1_000)),
        address_space_bytes: config.limits.memory.map(|memory| memory.bytes),
        open_files: config.limits.open_files.unwrap_or(defaults.open_files),
        processes: config.limits.processes,
        file_size_bytes: config.limits.file_size.map(|size| size.bytes),
    };
    ProcessAgent {
        folder: Some(config.folder.clone()),
        env: config.env.clone(),
        env_pass: config.env_pass.clone(),
        secrets: config.secrets.clone(),
        stdin: config.stdin,
        model: config.model.clone(),
        grace: Duration::try_from(config.grace.duration()).unwrap_or_default(),
        limits,
        ..ProcessAgent::new(config.command.clone())
    }
}
