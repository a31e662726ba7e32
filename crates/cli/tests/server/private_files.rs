//! Files that hold what agents were told and said: nobody else reads them, and no link leads them elsewhere.

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
