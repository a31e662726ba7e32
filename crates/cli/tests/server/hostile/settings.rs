//! Hostile values through every key of the configuration. What is refused is said; with all that is let in, a node starts, runs on
//! and starts again.

use super::{CONFIG, Scene};
use crate::client::Client;
use crate::support::Place;

const DOCUMENTATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");

/// Values as TOML writes them.
fn values() -> Vec<String> {
    let texts = [
        "a\\u0000b".to_owned(),
        "\\u0001\\u001b[31m\\u007f".to_owned(),
        "2027-01-01T00:00:00.123456789Z".to_owned(),
        "9999-12-30T22:00:00.999999999Z".to_owned(),
        "-009999-01-02T01:59:59Z".to_owned(),
        "365000d".to_owned(),
        "Infinity".to_owned(),
        "x".repeat(300_000),
    ];
    let others =
        ["9223372036854775807", "99999999999999999999", "-1", "inf", "-inf", "nan", "1e308", "9999-12-31", "true"];
    let nested = format!("{}{}", "[".repeat(60), "]".repeat(60));
    let mut values: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
    values.extend(texts[..3].iter().flat_map(|text| [format!("[\"{text}\"]"), format!("{{ k = \"{text}\" }}")]));
    values.extend(others.map(str::to_owned));
    values.push(nested);
    values.push("{ \"a\\u0000b\" = 1 }".to_owned());
    values
}

/// The keys below a heading of the documentation, which a test holds to those that there are.
fn keys_of(heading: &str) -> Vec<String> {
    let text = std::fs::read_to_string(DOCUMENTATION).unwrap();
    let section = text.split_once(&format!("# `{heading}`\n")).unwrap_or_else(|| panic!("{heading}")).1;
    let section = section.split("\n#").next().unwrap();
    let names = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    names.map(|(name, _)| name.to_owned()).collect()
}

/// Whether a file is let in, also if this machine lacks what it names. If not, it says why, in words of its own.
fn is_right(place: &Place, config: &str) -> bool {
    place.write("punctual.toml", config);
    let output = place.punctual(&["config", "--check"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    assert!(
        [Some(0), Some(1), Some(2)].contains(&code),
        "{code:?}: {said}\n{}",
        config.chars().take(3_000).collect::<String>()
    );
    code != Some(2)
}

/// The configuration with everything that is let in.
fn all_that_is_let_in(place: &Place) -> String {
    let mut config = CONFIG.to_owned();
    let mut let_in = 0;
    for (heading, table) in [
        ("[[schedules]]", "[[schedules]]\nname = \"sN\"\nagent = \"reporter\"\ncron = \"0 9 * * *\"\n"),
        ("[agents.NAME]", "[agents.aN]\nrunner = \"process\"\ncommand = [\"true\"]\n"),
        ("[agents.NAME.limits]", "[agents.aN]\nrunner = \"process\"\ncommand = [\"true\"]\n[agents.aN.limits]\n"),
    ] {
        for key in keys_of(heading) {
            // What makes it fire is one thing.
            let fires = ["times", "every", "at", "after", "immediate"].contains(&key.as_str());
            let is_other =
                |line: &&str| !(line.starts_with(&format!("{key} =")) || fires && line.starts_with("cron ="));
            let lines: Vec<&str> = table.lines().filter(is_other).collect();
            for value in values() {
                let own = lines.join("\n").replace('N', &format!("{key}-{let_in}"));
                let own = format!("{own}\n{key} = {value}\n");
                let is_right = is_right(place, &format!("{CONFIG}{own}"));
                assert!(!(is_right && value.contains("\\u0000")), "NUL is refused: {own}");
                if is_right {
                    let_in += 1;
                    config += &own;
                }
            }
        }
    }
    assert!(20 < let_in, "some of it is no worse than odd: {let_in}");
    config
}

#[test]
fn every_value_of_the_configuration_may_be_hostile_on_both_stores() {
    let scene = Scene::on_sqlite("hostile-settings", CONFIG);
    for heading in ["[engine]", "[limits]", "[prices]", "[conductor]"] {
        for (key, value) in keys_of(heading).iter().flat_map(|key| values().into_iter().map(move |value| (key, value)))
        {
            is_right(&scene.place, &format!("{heading}\n{key} = {value}\n"));
        }
    }
    let config = all_that_is_let_in(&scene.place);
    for scene in [scene, Scene::on_postgres("hostile-settings", CONFIG)] {
        scene.place.write("punctual.toml", &config);
        let server = scene.place.up();
        let api = Client::of(&scene.place);
        assert_eq!(api.get("/api/schedules?size=1000").status, 200);
        scene.is_well(server, &api);
    }
}

#[test]
fn a_nul_in_the_configuration_is_refused_with_its_place() {
    let scene = Scene::on_sqlite("hostile-nul-settings", CONFIG);
    scene.place.write("punctual.toml", "[agents.a]\nrunner = \"process\"\ncommand = [\"true\", \"a\\u0000b\"]\n");
    let output = scene.place.punctual(&["up"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("agents.a.command[1]") && said.contains("NUL"), "{said}");
}
