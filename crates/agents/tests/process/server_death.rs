//! The server dies, and nothing of its runs lives on.

use std::process::{Child, Command, Stdio};

use crate::lab::{STAND_IN, living, parent, until};

/// A server with one run under way.
fn serve(marker: &str, script: &str) -> Child {
    let mut command = Command::new(STAND_IN);
    command.args(["serve", marker, script]).stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().unwrap()
}

async fn dies(name: &str, script: &str, processes: usize) {
    let marker = format!("{name}-{}", uuid::Uuid::now_v7());
    let mut server = serve(&marker, script);
    until("the work is under way", || processes <= living(&marker).len()).await;
    let pids = living(&marker);
    let supervisor = pids.iter().filter_map(|pid| parent(*pid)).find(|parent| !pids.contains(parent)).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    until("all of the run is gone", || living(&marker).is_empty()).await;
    until("its supervisor is gone", || parent(supervisor).is_none()).await;
}

#[tokio::test]
async fn a_killed_server_leaves_nothing_behind() {
    dies("polite", "sleep 1000 & setsid sleep 1000 & wait", 3).await;
}

#[tokio::test]
async fn a_killed_server_leaves_nothing_deaf_behind() {
    let script =
        "trap '' TERM HUP; setsid sh -c 'sleep 1000; sleep 1000' & (setsid sleep 1000 &); sleep 1000; sleep 1000";
    dies("deaf", script, 5).await;
}

#[tokio::test]
async fn a_killed_server_leaves_nothing_silent_behind() {
    // Without any output, nobody would ever notice a closed pipe.
    dies("silent", "exec >/dev/null 2>&1 </dev/null; sleep 1000; sleep 1000", 2).await;
}
