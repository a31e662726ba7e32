//! `punctual token`: who may come over the API.

use std::sync::Arc;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use punctual_engine::clock::StoreClock;
use punctual_engine::ids::RandomIds;
use serde_json::{Value, json};

use crate::client::{ClientArgs, Failure, Kind, Query, find_token, read};
use crate::confirm::Irreversible;
use crate::database::{Database, DatabaseArgs};
use crate::ids;
use crate::machine;
use crate::moment::{Moment, Side};
use crate::output::{clean, facts, print, print_json};
use crate::table::{Cell, Column, table};
use crate::times::{Wall, ZoneArgs};
use crate::up::TokenMaker;
use crate::views::Token;

/// The columns of the list, with their turn to give way.
const COLUMNS: [Column; 7] = [
    Column::text("NAME", 0, 12),
    Column::whole("ROLE", 0),
    Column::text("PROJECTS", 3, 8),
    Column::whole("MADE", 1),
    Column::whole("ENDS", 4),
    Column::whole("LAST USED", 5),
    Column::whole("ID", 2),
];

/// What of the API stands for which option.
const OPTIONS: [(&str, &str); 5] = [
    ("name", "NAME"),
    ("role", "--role"),
    ("projects", "--project"),
    ("agents", "--agent"),
    ("expiresAt", "--expires"),
];

/// Make, list and revoke tokens.
///
/// All of it but `recover` needs the token of an admin.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(CreateArgs),
    List(ListArgs),
    Revoke(RevokeArgs),
    Recover(RecoverArgs),
}

/// Make a token. Its secret is shown this once, and never again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual token create ada --role editor --project atlas
  export PUNCTUAL_TOKEN=$(punctual token create ci --role viewer --json | jq -r .secret)")]
struct CreateArgs {
    /// What people call it
    #[arg(value_name = "NAME")]
    name: String,

    /// What it allows
    #[arg(long, value_name = "ROLE", value_parser = PossibleValuesParser::new(["viewer", "editor", "admin", "worker"]))]
    role: String,

    /// Only for this project; may be repeated [default: all]
    #[arg(long, value_name = "PROJECT")]
    project: Vec<String>,

    /// The agents that a worker may carry out runs for; may be repeated
    #[arg(long, value_name = "AGENT")]
    agent: Vec<String>,

    /// When it ends, like 2027-01-01, "2027-01-01 12:00" or 30d [default: never]
    #[arg(long, value_name = "TIME")]
    expires: Option<Moment>,

    #[command(flatten)]
    client: ClientArgs,
}

/// List tokens, without their secrets.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  punctual token list")]
struct ListArgs {
    #[command(flatten)]
    zone: ZoneArgs,

    #[command(flatten)]
    client: ClientArgs,
}

/// Take a token back: it allows nothing any more.
///
/// On a terminal a yes is asked for; without one it needs --yes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  punctual token revoke ada")]
struct RevokeArgs {
    /// The token, by name, id or either end of its id
    #[arg(value_name = "TOKEN")]
    token: String,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,

    /// Also the last one of an admin: nobody can make another one before the server starts again
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    client: ClientArgs,
}

/// Make a token of an admin when all are lost, by the database itself.
///
/// It is put where the server's own is looked for: beside a SQLite file, which no server may be using, or into punctual.token of this
/// folder for PostgreSQL. Nothing is taken back: revoke what is lost.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  punctual token recover && punctual up")]
struct RecoverArgs {
    #[command(flatten)]
    database: DatabaseArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: TokenArgs) -> anyhow::Result<()> {
    match args.command {
        Command::Create(args) => create(args).await,
        Command::List(args) => list(args).await,
        Command::Revoke(args) => revoke(args).await,
        Command::Recover(args) => recover(args).await,
    }
}

async fn create(args: CreateArgs) -> anyhow::Result<()> {
    let wall = ZoneArgs::default_wall()?;
    let expires = args.expires.map(|it| it.instant(&wall, Side::Future)).transpose();
    let expires = expires.map_err(|problem| Failure::input(format!("--expires: {problem}")))?;
    let body = json!({
        "name": args.name,
        "role": args.role,
        "projects": (!args.project.is_empty()).then_some(args.project),
        "agents": args.agent,
        "expiresAt": expires,
    });
    let answer = args.client.server().await?.post("/api/tokens", &Query::default(), &body).await;
    let answer = answer.map_err(|failure| failure.naming(&OPTIONS))?;
    if args.client.json {
        return print_json(&answer);
    }
    let token: Token = read(&answer)?;
    eprintln!("This is its secret. Keep it: it is never shown again.");
    print(&facts(&[
        ("name", token.name),
        ("role", token.role),
        ("projects", token.projects.map_or_else(|| "all".to_owned(), |it| it.join(", "))),
        ("id", token.token_id.to_string()),
        ("secret", token.secret.unwrap_or_default()),
    ]))
}

async fn recover(args: RecoverArgs) -> anyhow::Result<()> {
    if let Database::Sqlite(path) = &args.database.database {
        anyhow::ensure!(path.exists(), "{} does not exist: `punctual up` makes it, with a token", path.display());
    }
    let (store, file) = (args.database.write()?, args.database.token_file());
    let clock = StoreClock::new(Arc::clone(&store));
    let maker = TokenMaker { store: &*store, ids: &RandomIds, clock: &clock, node: &machine::name() };
    let name = maker.recover(&file).await?;
    if args.json {
        return print_json(&json!({ "name": name, "role": "admin", "file": file }));
    }
    print(&format!(
        "{}: the new token {name}, for an admin. Revoke those that are lost with `punctual token revoke`.\n",
        file.display()
    ))
}

async fn list(args: ListArgs) -> anyhow::Result<()> {
    let body = args.client.server().await?.get("/api/tokens", &Query::default()).await?;
    if args.client.json {
        return print_json(&body);
    }
    let wall = args.zone.wall()?;
    let tokens: Vec<Token> = read(&body)?;
    let rows = tokens.into_iter().map(|token| row(token, &wall));
    let text = table(&COLUMNS, rows);
    print(&format!("{text}\n{}", wall.named()))
}

fn row(token: Token, wall: &Wall) -> Vec<Cell> {
    vec![
        token.name.into(),
        token.role.into(),
        token.projects.map_or_else(|| "all".to_owned(), |it| it.join(", ")).into(),
        wall.date_time(token.created_at).into(),
        token.expires_at.map_or_else(|| "never".to_owned(), |at| wall.date_time(at)).into(),
        token.used_at.map_or_else(|| "never".to_owned(), |at| wall.passed(at)).into(),
        ids::shown(token.token_id).into(),
    ]
}

async fn revoke(args: RevokeArgs) -> anyhow::Result<()> {
    let client = args.client.server().await?;
    let token = find_token(&client, &args.token).await?;
    let question = format!("Revoke {} ({}, {})?", clean(&token.name), token.role, token.token_id);
    Irreversible { shown: "", question: &question, declined: "Nothing was revoked." }.confirm(args.yes)?;
    let query = Query::default().with("force", args.force.then_some(true));
    client.delete(&format!("/api/tokens/{}", token.token_id), &query).await.map_err(|failure| match failure.kind {
        Kind::Conflict => Failure::new(Kind::Conflict, format!("{failure}: --force takes it back all the same")),
        _ => failure,
    })?;
    if args.client.json {
        return print_json(&json!({ "tokenId": token.token_id, "name": token.name, "revoked": true }) as &Value);
    }
    print(&format!("{} allows nothing any more.\n", clean(&token.name)))
}
