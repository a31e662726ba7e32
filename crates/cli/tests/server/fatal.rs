//! What the process cannot go on after: it ends, with the reason in the last line of its log.

use std::process::Command;

use punctual_lab::postgres::{Durability, Server as Postgres};
use tokio::runtime::Builder;

use crate::support::{Place, is_alive};

const CONFIG: &str = r#"
[engine]
drain_seconds = 1

[agents.slow]
runner = "process"
command = ["sh", "-c", "echo $$ > pid; sleep 600"]

[agents.wordy]
runner = "process"
command = ["sh", "-c", "head -c 300000 /dev/urandom | base64 -w 200; sleep 0.1"]
max_concurrent = 4

[[schedules]]
name = "long"
agent = "slow"
immediate = true
timeout = "1h"

[[schedules]]
name = "often"
agent = "wordy"
every = "1s"
"#;

fn last_line(place: &Place) -> String {
    place.read("log").lines().last().unwrap_or_default().to_owned()
}

/// A limit on the size of files makes writes fail in a way that is not a full disk, without any privilege.
#[test]
fn a_disk_that_fails_ends_the_process_with_the_reason_and_what_is_at_work() {
    let place = Place::new("disk-fails", CONFIG);
    // Made before, so that only what comes afterwards is too large.
    let server = place.up();
    place.until("it is at work", |place| !place.read("pid").is_empty());
    let process = place.read("pid").trim().to_owned();
    assert!(server.stop().success());
    assert!(!is_alive(&process));
    place.write("pid", "");
    let size = std::fs::metadata(place.path("punctual.db")).unwrap().len();
    // In units of 512 bytes, as POSIX has it; some shells count in 1024.
    let limit = (size + 200_000) / 512;
    let start = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" up");
    let mut server = place.up_by(Command::new("sh").args(["-c", &start]));
    let status = server.wait();
    assert_eq!(status.code(), Some(1), "{}", place.read("log"));
    let told = last_line(&place);
    assert!(told.contains("ERROR") && told.contains("the disk failed while"), "{told}");
    let process = place.read("pid").trim().to_owned();
    place.until("its work has ended", |_| process.is_empty() || !is_alive(&process));
    assert!(!place.path("punctual.db.server").exists(), "nobody is sent to a server that is gone");
    // Another start finds everything as it was acknowledged.
    place.verify();
    let server = place.up();
    place.until("it has joined", |place| 3 <= place.read("log").matches("has joined").count());
    assert!(server.stop().success());
    place.verify();
}

/// Another program holds the file while the server starts: it waits, and says so.
#[test]
fn a_file_that_is_held_by_another_program_is_waited_for() {
    let place = Place::new("busy-file", "");
    let server = place.up();
    place.until("it has joined", |place| place.read("log").contains("has joined"));
    assert!(server.stop().success());
    let holder = rusqlite::Connection::open(place.path("punctual.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut server = place.up();
    place.until("it says that it waits", |place| place.read("log").contains("the node could not join"));
    assert!(server.is_running());
    holder.execute_batch("ROLLBACK").unwrap();
    place.until("it has joined", |place| place.read("log").matches("has joined").count() == 2);
    assert!(server.stop().success());
}

/// PostgreSQL answers, and does not let a node join for a while.
#[test]
fn joining_is_tried_again_until_postgres_lets_the_node_join() {
    let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
    let place = Place::new("busy-postgres", "").with_database(&postgres.address());
    let server = place.up();
    place.until("it has joined", |place| place.read("log").contains("has joined"));
    assert!(server.stop().success());
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (client, mut connection) =
        runtime.block_on(tokio_postgres::connect(&postgres.address(), tokio_postgres::NoTls)).unwrap();
    let lock = async {
        tokio::select! {
            _ = &mut connection => panic!("the connection is gone"),
            locked = client.batch_execute("BEGIN; LOCK TABLE nodes IN EXCLUSIVE MODE") => locked.unwrap(),
        }
    };
    // It is held until the connection ends.
    runtime.block_on(lock);
    let mut server = place.up();
    place.until("it says that it waits", |place| place.read("log").contains("the node could not join"));
    assert!(server.is_running());
    drop((client, connection, runtime));
    place.until("it has joined", |place| place.read("log").matches("has joined").count() == 2);
    assert!(server.stop().success());
}
