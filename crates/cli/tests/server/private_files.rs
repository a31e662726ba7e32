//! What agents were told and said: nobody else reads it, no link leads it elsewhere, and no secret is in it.

use std::os::unix::fs::PermissionsExt;

use crate::client::Client;
use crate::support::Place;

#[test]
fn what_lies_beside_an_export_is_not_written_through() {
    let place = Place::new("export-link", "");
    let server = place.up();
    Client::of(&place);
    assert!(server.stop().success());
    place.write("victim", "precious");
    for (command, file) in [("export", "out.jsonl"), ("backup", "out.db")] {
        for name in [format!("{file}.part"), format!("{file}.link")] {
            std::os::unix::fs::symlink(place.path("victim"), place.path(&name)).unwrap();
        }
        let done = place.punctual(&[command, file]);
        assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(place.read("victim"), "precious", "{command}");
        let mode = std::fs::symlink_metadata(place.path(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{command}: nobody else may read it");
        // The place itself may be a link, too: it exists already.
        let refused = place.punctual(&[command, &format!("{file}.link")]);
        assert!(!refused.status.success());
        std::fs::remove_file(place.path("victim")).unwrap();
        let refused = place.punctual(&[command, &format!("{file}.link")]);
        assert!(!refused.status.success() && !place.path("victim").exists(), "{command}: a link that leads nowhere");
        place.write("victim", "precious");
    }
    let left = std::fs::read_dir(place.path("")).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        // The planted one is nobody's but ours.
        name.to_string_lossy().starts_with("out.jsonl")
            && name.to_string_lossy().ends_with(".part")
            && name != "out.jsonl.part"
    });
    assert_eq!(left.count(), 0, "nothing is left behind");
}

/// Prints its secret as programs do that write a header, an address or a dump.
const LEAKY: &str = r#"
for user in ada bo c; do printf '%s:%s' "$user" "$API_KEY" | base64 -w0; echo; done
printf '%s' "$API_KEY" | od -An -v -tx1 | tr -d ' \n' | tr a-f A-F; echo
echo "https://example.org/?key=$(printf '%s' "$API_KEY" | sed 's,/,%2f,g; s,+,%2b,g')"
"#;

#[test]
fn a_secret_is_hidden_however_it_is_written() {
    let config = "[agents.leaky]\nrunner = \"process\"\ncommand = [\"sh\", \"leaky.sh\"]\nsecrets = { API_KEY = { file = \"key\" } }\n";
    let place = Place::new("leaky", config);
    place.write("leaky.sh", LEAKY);
    place.write("key", "canary/7f3a+9c41d8");
    std::fs::set_permissions(place.path("key"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let server = place.up();
    let api = Client::of(&place);
    let run = place.json(&["trigger", "leaky", "--wait", "--json"]);
    let run = run["executionId"].as_str().unwrap_or_else(|| panic!("{run}")).to_owned();
    let printed = api.get(&format!("/api/executions/{run}/output")).json(200).to_string();
    assert_eq!(printed.matches("[secret API_KEY]").count(), 5, "{printed}");
    // The middle of each of the five.
    for left in ["eS83ZjNhKzlj", "cnkvN2YzYSs5", "YXJ5LzdmM2Er", "2F376633612B", "%2f7f3a%2b"] {
        assert!(!printed.contains(left), "{left}: {printed}");
    }
    assert!(server.stop().success());
}
