//! `punctual up`: the server.

mod build;
mod demo;
mod descriptors;
mod first_token;
mod log;
mod reload;
mod sync;
mod watched;
mod web;

pub(crate) use build::{process_agent, settings};
pub(crate) use first_token::Maker as TokenMaker;
pub(crate) use web::house_rules;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::{Args, ValueEnum};
use punctual_engine::clock::{Clock, SteadyClock, StoreClock};
use punctual_engine::edit::Editor;
use punctual_engine::ids::RandomIds;
use punctual_engine::meters::Meters;
use punctual_engine::node::{self, Nudges, Parts};
use punctual_engine::runner::Runners;
use punctual_engine::settings::Settings;
use punctual_engine::spawn::TokioSpawn;
use punctual_server::auth::Doors;
use punctual_server::{App, Calculations, Pulse};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::client::ServerFile;
use crate::config::Config;
use crate::database::{DatabaseArgs, Served};
use crate::machine;
use crate::output::unless_closed;
use first_token::FirstToken;
use watched::Watched;

/// How many threads the API has.
const API_THREADS: usize = 2;

/// The engine has more than one, also on a machine with one core: one that plans for long does not keep it from claiming.
const ENGINE_THREADS_MIN: usize = 2;

/// Run the server: plan, claim, run and record, until it is told to stop.
///
/// Reads agents and schedules from the configuration and keeps everything in the database. SIGTERM or Ctrl-C stops it: it
/// claims nothing more, waits for what is at work (`drain_seconds`), then ends the rest and hands it back. A second signal does
/// not wait. SIGUSR1 pauses it: nothing more is claimed, what is at work goes on; SIGUSR2 resumes it.
#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// The configuration [default: punctual.toml, if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Run four small agents that need no key and no network, to look around
    #[arg(long, conflicts_with = "config")]
    demo: bool,

    #[command(flatten)]
    database: DatabaseArgs,

    #[command(flatten)]
    web: web::WebArgs,

    /// What people call this node [default: the name of this machine]
    #[arg(long, value_name = "NAME", default_value_t = machine::name(), hide_default_value = true)]
    name: String,

    /// How log lines look
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

pub(crate) fn run(args: UpArgs) -> anyhow::Result<()> {
    log::start(args.log_format)?;
    let read_at = reload::stamp_of(args.config.as_deref());
    let (config, zones) =
        if args.demo { Config::built_in(demo::CONFIG, "the demo")? } else { Config::load(args.config.as_deref())? };
    for missing in config.missing() {
        warn!("{}: {}; {}", missing.key, missing.problem, missing.fix);
    }
    let runners = Arc::new(Runners::new(build::runners(&config)?));
    let rules = web::house_rules(&config, &zones)?;
    let certificate = args.web.certificate()?;
    first_token::check()?;
    let runtime = threads("engine", ENGINE_THREADS_MIN.max(cores()))?;
    // Whatever requests make their threads do, the engine has its own.
    let api = threads("api", API_THREADS)?;
    // Before the database: a start that cannot be leaves none behind.
    let listener = api.block_on(args.web.open())?;
    let address = listener.local_addr().context("asking where the API is")?;
    let settings = Arc::new(Settings {
        url: args.web.advertised(address),
        machine: Some(machine::id()),
        ..build::settings(&config, zones, &args.name)
    });
    let Served { store, for_api } = args.database.serve(args.web.read_max())?;
    let ran = runtime.block_on(async {
        let stop = CancellationToken::new();
        let nudges = Arc::new(Nudges::default());
        let mut watched = Watched::default();
        watched.spawn_endless("watch for signals", watch_signals(stop.clone(), Arc::clone(&nudges))?);
        let heard = Arc::clone(&nudges);
        store.tell(Arc::new(move |hint| heard.hear(hint)));
        let ids = Arc::new(RandomIds);
        let clock = Arc::new(SteadyClock::new(StoreClock::new(Arc::clone(&store))));
        let editor = Editor::new(Arc::clone(&store), ids.clone(), Arc::clone(&settings));
        if args.demo {
            demo::refuse_others(&*store, &config).await?;
        }
        let synced = sync::schedules(&*store, &editor, &config, clock.now()).await?;
        sync::workflows(&*store, &editor, &settings.roster.now().workflows, clock.now()).await?;
        if args.demo {
            demo::begin(&*store, &editor, &config, clock.now()).await?;
        }
        let url = args.web.url(address);
        let maker = TokenMaker { store: &*store, ids: &*ids, clock: &*clock, node: &args.name };
        let first_token = maker.provide(&args.database.token_file()).await?;
        // Whoever looks for the server finds it by this, until it has stopped.
        let server_file = ServerFile::write(&args.database, &url)?;
        let end_serving = CancellationToken::new();
        let meters = Arc::new(Meters::default());
        let app = App {
            meters: Arc::clone(&meters),
            editor: Editor::new(Arc::clone(&for_api), ids.clone(), Arc::clone(&settings)),
            store: for_api,
            clock: clock.clone(),
            ids: ids.clone(),
            settings: Arc::clone(&settings),
            rules,
            nudges: Arc::clone(&nudges),
            doors: Arc::new(Doors::new(args.web.allow_host.clone())),
            pulse: Pulse::new(end_serving.clone()),
            calculations: Calculations::default(),
        };
        let limits = args.web.limits(&config.server, descriptors::connections(&config));
        let serving = punctual_server::serve(app, listener, certificate, limits, end_serving.clone());
        watched.spawn_on("API", api.handle(), async { Ok(serving.await?) });
        say_hello(&args, &config, &synced, &url, first_token)?;
        if !config.conductor.without_meaning.is_empty() {
            let settings = config.conductor.without_meaning.join(", ");
            info!("these settings of [conductor] mean nothing here: {settings}");
        }
        let reloader = reload::Reloader {
            file: args.config.clone(),
            read_at,
            config,
            store: Arc::clone(&store),
            editor,
            clock: clock.clone(),
            settings: Arc::clone(&settings),
            runners: Arc::clone(&runners),
            nudges: Arc::clone(&nudges),
        };
        // The demo has no file.
        if !args.demo {
            watched.spawn("watch on the configuration", reloader.watch(stop.clone()));
        }
        let parts = Parts { store, clock, ids, settings, runners, nudges, spawn: Arc::new(TokioSpawn), meters };
        // The API answers as long as anything is at work.
        let ran = tokio::select! {
            biased;
            failed = watched.failed() => Err(failed),
            ran = node::run(parts, stop) => ran.map_err(anyhow::Error::from),
        };
        end_serving.cancel();
        let ended = match ran {
            Ok(()) => watched.ended().await,
            Err(error) => Err(error),
        };
        drop(server_file);
        if let Err(error) = ended {
            end_at_once(&error);
        }
        info!("stopped");
        Ok(())
    });
    // What a request still calculates is not waited for.
    api.shutdown_background();
    ran
}

/// Threads of their own for a part of the server.
fn threads(name: &str, count: usize) -> anyhow::Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(count).thread_name(name).enable_all().build().context("starting a runtime")
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Ends the process, whatever still waits for a disk, a database or a client: the supervisors end what is at work, and another
/// start finds everything as it was acknowledged. The reason is the last line of the log.
fn end_at_once(error: &anyhow::Error) -> ! {
    error!("this server cannot go on and ends: {error:#}");
    std::process::exit(1)
}

/// The first signal stops the node; the second ends the process, and the supervisors end what is at work. Two others pause and
/// resume it.
fn watch_signals(
    stop: CancellationToken,
    nudges: Arc<Nudges>,
) -> anyhow::Result<impl Future<Output = anyhow::Result<()>> + Send> {
    let mut pause = signal(SignalKind::user_defined1()).context("watching for SIGUSR1")?;
    let mut resume = signal(SignalKind::user_defined2()).context("watching for SIGUSR2")?;
    let mut terminate = signal(SignalKind::terminate()).context("watching for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("watching for SIGINT")?;
    Ok(async move {
        loop {
            tokio::select! {
                biased;
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                _ = pause.recv() => {
                    warn!("paused: nothing is claimed until SIGUSR2");
                    nudges.pause();
                    continue;
                }
                _ = resume.recv() => {
                    info!("resumed");
                    nudges.resume();
                    continue;
                }
            }
            if stop.is_cancelled() {
                warn!("a second signal: ending at once");
                std::process::exit(130);
            }
            info!("stopping");
            stop.cancel();
        }
    })
}

fn say_hello(
    args: &UpArgs,
    config: &Config,
    synced: &sync::Synced,
    url: &str,
    first_token: FirstToken,
) -> anyhow::Result<()> {
    let mut text = format!(
        "Punctual {} is up.\n  API        {url}\n  token      {}\n  database   {}\n  agents     {}\n  schedules  {synced}\n",
        env!("CARGO_PKG_VERSION"),
        match first_token {
            FirstToken::Here => args.database.token_file().display().to_string(),
            FirstToken::Elsewhere => format!("none in {}", args.database.token_file().display()),
        },
        args.database.database,
        config.agents.len(),
    );
    if first_token == FirstToken::Elsewhere {
        warn!("there is no token here: the database has an admin already, and none is made");
        text += "\nThere is no token for you here, since the database has an admin already: take the one of the node that made it, or one \
            that an admin makes with `punctual token create`. If it is lost, `punctual token recover` makes another while no \
            server uses the file, or any time on PostgreSQL.\n";
    }
    if config.agents.is_empty() {
        text += "\nThere is nothing to run yet: write a punctual.toml, or look around with `punctual up --demo`.\n";
    }
    if !args.web.listen.ip().is_loopback() && args.web.allow_host.is_empty() {
        text += "\nOnly requests to localhost are answered: --allow-host NAME adds the name that others call this machine by.\n";
    }
    text += "\nLook at it from another terminal: `punctual plan`, `punctual history`. Ctrl-C stops it.\n";
    unless_closed(std::io::stdout().write_all(text.as_bytes())).context("printing")
}
