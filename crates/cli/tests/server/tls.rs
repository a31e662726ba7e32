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
    assert!(server.stop().success());
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
