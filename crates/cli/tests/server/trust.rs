//! Where a token goes: to servers that were named, to the one of the database, and to nobody else.

use std::fs::{self, Permissions};
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use crate::stand_in::{Asked, StandIn};
use crate::support::Place;

const CONFIG: &str = "[agents.quick]\nrunner = \"process\"\ncommand = [\"true\"]\n";

const TOKEN: &str = "pt_this_is_nobody_elses_and_long_enough_to_be_one";

/// Listens, and keeps all that anybody sends.
struct Spy {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Spy {
    fn on(address: &str) -> Option<Spy> {
        let listener = TcpListener::bind(address).ok()?;
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(vec![]));
        let kept = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
                let mut bytes = vec![];
                stream.read_to_end(&mut bytes).ok();
                kept.lock().unwrap().extend(bytes);
            }
        });
        Some(Spy { address, heard })
    }

    fn heard(&self) -> String {
        String::from_utf8_lossy(&self.heard.lock().unwrap()).into_owned()
    }
}

/// A folder with a database that no server serves.
fn database(test: &str) -> Place {
    let place = Place::new(test, CONFIG);
    let server = place.up();
    place.until("the server has joined", |place| place.read("log").contains("has joined"));
    assert!(server.stop().success());
    place
}

/// What commands say that look, change something and ask for secrets.
fn asks(place: &Place, expected: &str, looking: i32) {
    for (args, code) in
        [(&["plan"][..], looking), (&["trigger", "quick"], 3), (&["token", "list"], 3), (&["doctor"], 1)]
    {
        let output = place.punctual_with(args, &[("PUNCTUAL_TOKEN", TOKEN)]);
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?} does not say {expected:?}: {said}");
    }
}

#[test]
fn a_record_that_others_could_have_written_is_not_followed() {
    let place = database("trust-record");
    let spy = Spy::on("127.0.0.1:0").unwrap();
    let record = place.path("punctual.db.server");
    let plant = |mode: u32| {
        fs::remove_file(&record).ok();
        place.write("punctual.db.server", &format!("http://{}\n", spy.address));
        fs::set_permissions(&record, Permissions::from_mode(mode)).unwrap();
    };
    for mode in [0o666, 0o660, 0o602] {
        plant(mode);
        asks(&place, "can be written by others", 3);
    }
    plant(0o600);
    fs::rename(&record, place.path("elsewhere")).unwrap();
    symlink(place.path("elsewhere"), &record).unwrap();
    asks(&place, "is a symbolic link", 3);
    fs::remove_file(&record).unwrap();
    assert!(Command::new("mkfifo").arg(&record).status().unwrap().success());
    asks(&place, "is no ordinary file", 3);
    // Only the superuser can give a file away.
    plant(0o600);
    if chown(&record, Some(12_345), None).is_ok() {
        asks(&place, "belongs to another user", 3);
    }
    fs::remove_file(&record).unwrap();
    place.write("punctual.db.server", "https://punctual.invalid:8470\n");
    asks(&place, "--server https://punctual.invalid:8470", 3);
    place.write("punctual.db.server", "what?\n");
    asks(&place, "holds no address of a server", 3);
    // A record that lies beside no database is nobody's.
    plant(0o600);
    fs::rename(place.path("punctual.db"), place.path("moved.db")).unwrap();
    asks(&place, "punctual.db does not exist", 3);
    assert_eq!(spy.heard(), "", "nobody who was not named may be asked anything");
}

#[test]
fn without_a_server_here_nobody_is_asked() {
    let place = database("trust-none");
    // The usual port may be somebody else's. Where it is taken, whoever has it cannot tell us what it heard.
    let spy = Spy::on("127.0.0.1:8470");
    asks(&place, "no server is running here", 0);
    let empty = Place::new("trust-empty", CONFIG);
    asks(&empty, "no server is running here, and punctual.db does not exist", 3);
    if let Some(spy) = spy {
        assert!(!spy.heard().contains(TOKEN), "{}", spy.heard());
    }
}

fn says_little(asked: &Asked) -> Option<(&'static str, String)> {
    let body = match asked.line.as_str() {
        "GET /health/live" => json!({"status": "up", "version": "0"}),
        "GET /api/tokens" => json!([]),
        _ => return None,
    };
    Some(("application/json", body.to_string()))
}

#[test]
fn a_token_goes_to_whom_was_named_and_to_the_server_of_the_database() {
    let place = database("trust-given");
    let given = StandIn::new(says_little);
    let token = [("PUNCTUAL_TOKEN", TOKEN)];
    let named = place.punctual_with(&["token", "list", "--server", &given.url], &token);
    assert!(named.status.success(), "{named:?}");
    let by_variable = place.punctual_with(&["token", "list"], &[token[0], ("PUNCTUAL_URL", given.url.as_str())]);
    assert!(by_variable.status.success(), "{by_variable:?}");
    place.write("punctual.db.server", &given.url);
    fs::set_permissions(place.path("punctual.db.server"), Permissions::from_mode(0o600)).unwrap();
    let found = place.punctual_with(&["token", "list"], &token);
    assert!(found.status.success(), "{found:?}");
    let asked = given.asked("GET /api/tokens");
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|it| it.head.contains(&format!("bearer {TOKEN}"))), "{asked:?}");
}

#[test]
fn a_token_that_others_can_read_is_not_used() {
    let place = database("trust-token");
    let given = StandIn::new(says_little);
    let file = place.path("punctual.db.token");
    let list = ["token", "list", "--server", &given.url];
    assert!(place.punctual(&list).status.success());
    assert!(given.asked("GET /api/tokens")[0].head.contains("authorization: bearer "));
    for mode in [0o644, 0o640, 0o620] {
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let before = given.asked("GET /api/tokens").len();
        place.punctual(&list);
        let asked = given.asked("GET /api/tokens");
        assert!(asked[before..].iter().all(|it| !it.head.contains("authorization")), "{mode:o}: {asked:?}");
    }
    // A real server says what was tried.
    let server = place.up();
    place.until("it is up", |place| place.path("punctual.db.server").exists());
    let refused = place.punctual(&["token", "list"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(4), "{said}");
    assert!(said.contains("punctual.db.token can be written by others") && said.contains("chmod 600"), "{said}");
    assert!(server.stop().success());
}
