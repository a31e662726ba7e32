//! Clients that say nothing, stop in the middle or do not read: the server works, answers others, and stops all the same.

use std::io::{BufRead, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::client::Client;
use crate::support::{Place, rest};

const CONFIG: &str = r#"
[server]
idle_timeout_seconds = 2
write_timeout_seconds = 2

[agents.quick]
runner = "process"
command = ["sh", "-c", "echo '{\"summary\": \"done\"}'"]

[agents.flood]
runner = "process"
command = ["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x | fold -w 100"]
"#;

fn connect(api: &Client) -> TcpStream {
    let stream = TcpStream::connect(api.address()).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// The head of a request, with a token.
fn head(api: &Client, request: &str) -> String {
    format!("{request} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n", api.address(), api.token().unwrap())
}

/// A connection whose client keeps next to nothing of what it is sent.
fn connect_narrow(api: &Client) -> TcpStream {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 4_096).unwrap();
    let address: SocketAddr = api.address().parse().unwrap();
    rustix::net::connect(&socket, &address).unwrap();
    TcpStream::from(socket)
}

/// Waits until the server has cut a connection on which nobody reads.
fn wait_for_cut(place: &Place, stream: &mut TcpStream) {
    stream.set_nonblocking(true).unwrap();
    place.until(
        "the server cuts the connection",
        |_| matches!(stream.write(b"x"), Err(error) if error.kind() != std::io::ErrorKind::WouldBlock),
    );
}

/// Everything that the server sends until it closes.
fn read_all(mut stream: TcpStream) -> String {
    let mut bytes = vec![];
    // A connection that is reset ends too.
    stream.read_to_end(&mut bytes).ok();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn silent_sockets_keep_neither_runs_nor_people_out() {
    const SILENT: u64 = 1_200;
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let enough = (SILENT + 400).min(maximum.unwrap_or(u64::MAX));
    setrlimit(Resource::Nofile, Rlimit { current: Some(enough), maximum }).unwrap();
    // As patient as by default, so that no timeout helps.
    let place = Place::new("silent", &CONFIG.replace("= 2\n", "= 30\n"));
    // As many descriptors as usual.
    let _server = place.up_by(Command::new("sh").args(["-c", "ulimit -n 1024; exec \"$0\" up"]));
    let api = Client::of(&place);
    let mut silent = vec![];
    for _ in 0..SILENT.min(enough - 200) {
        silent.push(connect(&api));
    }
    for _ in 0..5 {
        let run = place.punctual(&["trigger", "quick", "--wait"]);
        assert!(run.status.success(), "{}{}", String::from_utf8_lossy(&run.stderr), place.read("log"));
    }
    assert_eq!(api.get("/health/ready").status, 200);
    assert!(place.read("log").contains("as many as there may be"), "{}", place.read("log"));
    drop(silent);
}

#[test]
fn a_server_that_few_files_are_allowed_serves_fewer_connections_and_says_so() {
    let place = Place::new("few-files", CONFIG);
    let server = place.up_by(Command::new("sh").args(["-c", "ulimit -n 400; exec \"$0\" up"]));
    let api = Client::of(&place);
    let told = "keeps 320 for runs: at most 80 connections are served, not 512";
    assert!(place.read("log").contains(told), "{}", place.read("log"));
    let silent: Vec<TcpStream> = (0..200).map(|_| connect(&api)).collect();
    let run = place.punctual(&["trigger", "quick", "--wait"]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    drop(silent);
    assert!(server.stop().success());
}

#[test]
fn a_head_or_a_body_that_stops_in_the_middle_is_not_waited_for() {
    let place = Place::new("half-sent", CONFIG);
    let server = place.up();
    let api = Client::of(&place);
    let mut half_head = connect(&api);
    half_head.write_all(b"GET /api/schedules HTTP/1.1\r\nHost: local").unwrap();
    let mut half_body = connect(&api);
    let sent = head(&api, "POST /api/schedules") + "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"na";
    half_body.write_all(sent.as_bytes()).unwrap();
    // Whoever sends a byte now and then has the same time for the whole head.
    let mut trickle = connect(&api);
    trickle.write_all(b"GET /api/schedules HTTP/1.1\r\n").unwrap();
    place.until("the head that trickles is cut off", |_| trickle.write_all(b"A: b\r\n").is_err());
    let answer = read_all(half_head);
    assert!(!answer.contains("200 OK"), "{answer}");
    let answer = read_all(half_body);
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("nothing came for 10 seconds"), "{answer}");
    assert!(server.stop().success());
}

#[test]
fn a_client_that_does_not_read_is_cut_and_a_stream_that_is_read_goes_on() {
    let place = Place::new("unread", CONFIG);
    let server = place.up();
    let api = Client::of(&place);
    let run = place.json(&["trigger", "flood", "--wait", "--json"]);
    let run = run["executionId"].as_str().unwrap_or_else(|| panic!("{run}")).to_owned();
    // It follows what happens from now on, and hears of it after longer than any timeout.
    let mut reader = api.stream("/api/journal/stream", &[]);
    let mut unread = connect_narrow(&api);
    let again = head(&api, "GET /api/openapi.json") + "\r\n";
    unread.write_all(again.repeat(100).as_bytes()).unwrap();
    let mut unread_stream = connect_narrow(&api);
    let follow = head(&api, &format!("GET /api/executions/{run}/output/stream?after=0")) + "\r\n";
    unread_stream.write_all(follow.as_bytes()).unwrap();
    wait_for_cut(&place, &mut unread);
    wait_for_cut(&place, &mut unread_stream);
    api.post("/api/executions/trigger", json!({"agentId": "quick"})).json(202);
    let mut line = String::new();
    while !line.contains("EXEC_") {
        line.clear();
        assert!(0 < reader.read_line(&mut line).unwrap(), "the stream has ended");
    }
    assert!(server.stop().success());
}

#[test]
fn a_stop_waits_for_no_half_sent_request_and_the_file_is_free() {
    let place = Place::new("half-stop", CONFIG);
    let server = place.up();
    let api = Client::of(&place);
    let mut open = vec![connect(&api), connect(&api), connect(&api)];
    open[1].write_all(b"GET /api/schedules HTTP/1.1\r\nHost: local").unwrap();
    let sent = head(&api, "POST /api/schedules") + "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"na";
    open[2].write_all(sent.as_bytes()).unwrap();
    let stream = api.stream("/api/journal/stream", &[]);
    // They are all there.
    for _ in 0..5 {
        rest();
    }
    assert!(server.stop().success());
    assert!(place.read("log").trim_end().ends_with("stopped"), "{}", place.read("log"));
    let server = place.up();
    place.until("another server has the file", |place| place.read("log").matches("has joined").count() == 2);
    drop((open, stream));
    assert!(server.stop().success());
}

#[test]
fn a_body_that_is_too_long_is_refused_with_the_limit() {
    let place = Place::new("long-body", CONFIG);
    let server = place.up();
    let api = Client::of(&place);
    let answer = api.post("/api/schedules", json!({"name": "x".repeat(2 * 1024 * 1024)}));
    let problem = answer.json(413);
    assert_eq!(problem["detail"], "the body is longer than 1 MiB (1,048,576 bytes)");
    assert!(server.stop().success());
}

#[test]
fn one_address_has_so_many_connections_unless_it_is_that_of_a_proxy() {
    let config = CONFIG.replace("[server]\n", "[server]\nmax_connections_per_address = 3\n");
    for (args, refused) in [(&[][..], true), (&["--behind-proxy"][..], false)] {
        let place = Place::new("per-address", &config);
        let server = place.up_with(args);
        let api = Client::of(&place);
        let mut streams = vec![];
        for _ in 0..3 {
            let mut stream = api.stream("/api/journal/stream", &[]);
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            assert!(line.contains("200 OK"), "{line}");
            streams.push(stream);
        }
        let answer = api.get("/api/schedules");
        if refused {
            assert_eq!(answer.problem(503), "too_many_connections");
            streams.pop();
            place.until("there is a place again", |_| api.get("/api/schedules").status == 200);
        } else {
            assert_eq!(answer.status, 200);
        }
        drop(streams);
        assert!(server.stop().success());
    }
}

/// Each of them has one answer, not one for everything that was sent ahead.
#[test]
fn wrong_tokens_keep_nobody_out() {
    const GUESSERS: usize = 600;
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let enough = (GUESSERS as u64 + 400).min(maximum.unwrap_or(u64::MAX));
    setrlimit(Resource::Nofile, Rlimit { current: Some(enough), maximum }).unwrap();
    let place = Place::new("guessers", &CONFIG.replace("= 2\n", "= 30\n"));
    let _server = place.up();
    let api = Client::of(&place);
    let guess = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer pt_x\r\n\r\n", api.address());
    let guesses = guess.repeat(60);
    let mut guessers = vec![];
    for _ in 0..GUESSERS.min(enough as usize - 200) {
        let mut guesser = connect(&api);
        // One that is closed already has had its answer.
        guesser.write_all(guesses.as_bytes()).ok();
        guessers.push(guesser);
    }
    // As many as wait at once are answered within seconds; each of the others is gone.
    place.until("others are answered", |_| api.get("/health/live").status == 200);
    let answers = read_all(guessers.pop().unwrap());
    assert!(answers.matches("HTTP/1.1 ").count() <= 1, "{answers}");
    for _ in 0..5 {
        assert_eq!(api.get("/api/nodes").status, 200);
    }
}
