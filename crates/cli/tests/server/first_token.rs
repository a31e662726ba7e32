//! Who gets the first token: one for a database, however many servers start, and a way back when it is lost.

use std::os::unix::fs::PermissionsExt;

use punctual_lab::postgres::{Durability, Server as Postgres};

use crate::client::Client;
use crate::support::Place;

fn admins(place: &Place) -> Vec<String> {
    let tokens = place.json(&["token", "list", "--json"]);
    let all = tokens.as_array().unwrap().iter().filter(|token| token["role"] == "admin");
    all.map(|token| token["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn servers_that_start_together_on_one_database_make_one_token() {
    let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
    let places: Vec<Place> = (0..4)
        .map(|number| Place::new(&format!("first-token-{number}"), "").with_database(&postgres.address()))
        .collect();
    let name = |number: usize| format!("node-{number}");
    let servers: Vec<_> =
        places.iter().enumerate().map(|(number, place)| place.up_with(&["--name", &name(number)])).collect();
    for place in &places {
        place.until("it has joined", |place| place.read("log").contains("has joined"));
    }
    let with: Vec<usize> = (0..4).filter(|number| places[*number].path("punctual.token").exists()).collect();
    let [only] = with[..] else { panic!("{with:?} have a token") };
    assert_eq!(admins(&places[only]), [format!("operator@{}", name(only))]);
    let without = places.iter().enumerate().filter(|(number, _)| *number != only);
    for (_, place) in without {
        let log = place.read("log");
        assert!(log.contains("token      none in punctual.token") && log.contains("punctual token recover"), "{log}");
    }
    servers.into_iter().for_each(|server| assert!(server.stop().success()));
}

#[test]
fn a_token_that_is_lost_is_not_made_again_by_a_start_and_can_be_recovered() {
    lost_and_recovered(&Place::new("lost-token", ""), "punctual.db.token");
}

#[test]
fn a_token_that_is_lost_is_not_made_again_by_a_start_and_can_be_recovered_on_postgres() {
    let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
    lost_and_recovered(&Place::new("lost-token-pg", "").with_database(&postgres.address()), "punctual.token");
}

fn lost_and_recovered(place: &Place, file: &str) {
    let server = place.up();
    assert_eq!(Client::of(place).get("/api/tokens").json(200).as_array().unwrap().len(), 1);
    if file == "punctual.db.token" {
        let refused = place.punctual(&["token", "recover"]);
        assert!(String::from_utf8_lossy(&refused.stderr).contains("in use by another Punctual server"));
    }
    let refused = place.punctual(&["token", "recover"]);
    assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
    assert!(server.stop().success());
    std::fs::remove_file(place.path(file)).unwrap();
    for round in 2..4 {
        let server = place.up();
        place.until("it has joined", |place| place.read("log").matches("has joined").count() == round);
        assert!(!place.path(file).exists(), "no start makes another");
        assert!(place.read("log").contains("there is no token here"));
        assert!(server.stop().success());
    }
    let recovered = place.json(&["token", "recover", "--json"]);
    assert_eq!(recovered["role"], "admin");
    let mode = std::fs::metadata(place.path(file)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let server = place.up();
    place.until("it has joined", |place| place.read("log").matches("has joined").count() == 4);
    assert_eq!(admins(place).len(), 2, "the lost one is there until it is revoked");
    assert!(server.stop().success());
    place.verify();
}

/// The last admin goes, and the next start makes one again, within the day in which the first request is remembered.
#[test]
fn a_database_without_an_admin_gets_one_with_the_next_start() {
    let place = Place::new("no-admin", "");
    for round in 1..4 {
        let server = place.up();
        place.until("it has joined", |place| place.read("log").matches("has joined").count() == round);
        let names = admins(&place);
        assert_eq!(names.len(), 1, "{names:?}");
        let revoked = place.punctual(&["token", "revoke", &names[0], "--force", "--yes"]);
        assert!(revoked.status.success(), "{}", String::from_utf8_lossy(&revoked.stderr));
        assert!(server.stop().success());
    }
}
