//! Encrypted connections: a real certificate, the real client.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::support::Place;

/// Makes a certificate for this machine that signs itself.
fn certificate(place: &Place) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    place.write("cert.pem", &made.cert.pem());
    place.write("key.pem", &made.signing_key.serialize_pem());
    std::fs::set_permissions(place.path("key.pem"), std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn connections_are_encrypted_with_the_operators_certificate() {
    let place = Place::new("tls", "");
    certificate(&place);
    let server = place.up_with(&["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    place.until("the server is up", |place| place.path("punctual.db.server").exists());
    let url = place.read("punctual.db.server").trim().to_owned();
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");

    // Who trusts the certificate is answered, and nobody else talks to it.
    let trusted = place.punctual_with(&["nodes", "--server", &url, "--json"], &[("PUNCTUAL_CA", "cert.pem")]);
    assert!(trusted.status.success(), "{}", String::from_utf8_lossy(&trusted.stderr));
    let distrusted = place.punctual(&["nodes", "--server", &url]);
    let said = String::from_utf8_lossy(&distrusted.stderr);
    assert_eq!(distrusted.status.code(), Some(3), "{said}");
    assert!(said.contains("is not trusted") && said.contains("PUNCTUAL_CA"), "{said}");
    // The doctor and whoever only looks do not take it for nobody.
    for (args, code) in [(&["doctor", "--server", &url][..], 1), (&["timers"], 3)] {
        let output = place.punctual(args);
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains("is not trusted"), "{args:?}: {said}");
    }
    let clear = place.punctual(&["nodes", "--server", &url.replacen("https", "http", 1)]);
    let said = String::from_utf8_lossy(&clear.stderr);
    assert!(clear.status.code() == Some(3) && said.contains(&format!("try {url}")), "{said}");

    // Whoever says nothing, or speaks in the clear, holds up nobody.
    let address = url.trim_start_matches("https://");
    let silent: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut plain = TcpStream::connect(address).unwrap();
    plain.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    plain.write_all(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut said = vec![];
    plain.read_to_end(&mut said).ok();
    assert!(!String::from_utf8_lossy(&said).contains("200 OK"));
    let again = place.punctual_with(&["nodes", "--server", &url], &[("PUNCTUAL_CA", "cert.pem")]);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    drop(silent);

    // A renewed certificate comes into force by itself.
    certificate(&place);
    place.until("the new one is used", |place| {
        place.punctual_with(&["nodes", "--server", &url], &[("PUNCTUAL_CA", "cert.pem")]).status.success()
    });
    // A broken one is told without anybody coming, and changes nothing.
    place.write("cert.pem", "no certificate");
    place.until("it is told", |place| place.read("log").contains("the new certificate is not taken over"));
    assert!(server.stop().success());
}

/// The line of docs/running.md.
const RECIPE: &str = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 \\
    -keyout key.pem -out cert.pem -subj /CN=punctual.example \\
    -addext subjectAltName=DNS:punctual.example,DNS:localhost,IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE";

#[test]
fn the_certificate_of_the_docs_works_and_that_of_an_authority_is_explained() {
    assert!(include_str!("../../../../docs/running.md").contains(RECIPE), "the docs have another line");
    let place = Place::new("tls-openssl", "");
    let make = |recipe: &str| {
        let line = format!("umask 077 && {recipe} 2>log");
        let made = std::process::Command::new("sh").args(["-c", &line]).current_dir(place.path("")).status();
        made.is_ok_and(|status| status.success())
    };
    if !make(RECIPE) {
        eprintln!("openssl is not at hand: {}", place.read("log"));
        return;
    }
    let ask = |is_good: bool, expected: &str| {
        let server = place.up_with(&["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
        place.until("the server is up", |place| place.path("punctual.db.server").exists());
        let output = place.punctual_with(&["nodes"], &[("PUNCTUAL_CA", "cert.pem")]);
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        assert_eq!(output.status.success(), is_good, "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(server.stop().success());
    };
    ask(true, "0 of 8");
    assert!(make(&RECIPE.replace("CA:FALSE", "CA:TRUE")));
    ask(false, "basicConstraints=critical,CA:FALSE");
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let place = Place::new("tls-open", "");
    certificate(&place);
    std::fs::set_permissions(place.path("key.pem"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = place.punctual(&["up", "--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("chmod 600"));
    let half = place.punctual(&["up", "--tls-cert", "cert.pem"]);
    assert_eq!(half.status.code(), Some(2));
}
