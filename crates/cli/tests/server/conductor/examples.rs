//! The examples that are shipped: saved, fired, and seeded by their own script.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use super::{On, Scene, now};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/conductor");

/// The fewest that there may be.
const EXAMPLES_MIN: usize = 8;

/// The files of a folder of the examples, each with the name that it has to have, sorted by it.
fn examples(folder: &str) -> Vec<(String, Value)> {
    let files = std::fs::read_dir(Path::new(FOLDER).join(folder)).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    let read = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).unwrap();
        let example: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        (file.file_stem().unwrap().to_str().unwrap().to_owned(), example)
    };
    let examples: Vec<(String, Value)> = files.into_iter().map(read).collect();
    assert!(EXAMPLES_MIN <= examples.len(), "there are {} {folder}", examples.len());
    examples
}

/// All tasks of a list, with those inside of forks and loops.
fn tasks(list: &Value) -> Vec<&Value> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let inner = |task| {
        let task: &Value = task;
        let branches = task["forkTasks"].as_array().map(Vec::as_slice).unwrap_or_default();
        branches.iter().chain([&task["loopOver"]]).flat_map(tasks).collect::<Vec<_>>()
    };
    list.iter().flat_map(|task| [vec![task], inner(task)].concat()).collect()
}

#[test]
fn every_schedule_has_its_workflow_and_every_workflow_is_whole() {
    let (schedules, workflows) = (examples("schedules"), examples("workflows"));
    let mut kinds = BTreeSet::new();
    for (file, workflow) in &workflows {
        assert_eq!((&workflow["name"], &workflow["version"]), (&json!(file), &json!(1)));
        assert_eq!(workflow["schemaVersion"], 2, "{file}");
        let tasks = tasks(&workflow["tasks"]);
        let names: BTreeSet<&str> = tasks.iter().map(|task| task["taskReferenceName"].as_str().unwrap()).collect();
        assert_eq!(names.len(), tasks.len(), "{file}: one name for each task");
        for task in &tasks {
            kinds.insert(task["type"].as_str().unwrap());
            let awaited = task["joinOn"].as_array().map(Vec::as_slice).unwrap_or_default();
            assert!(awaited.iter().all(|name| names.contains(name.as_str().unwrap())), "{file}: {task}");
            assert_eq!(task["type"] == "DO_WHILE", task["loopCondition"].is_string(), "{file}: {task}");
        }
    }
    assert!(["FORK_JOIN", "JOIN", "DO_WHILE"].iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
    let started: BTreeSet<&str> =
        schedules.iter().map(|(_, it)| it["startWorkflowRequest"]["name"].as_str().unwrap()).collect();
    assert_eq!(started, workflows.iter().map(|(name, _)| name.as_str()).collect(), "none is missing, and none is idle");
}

#[test]
fn every_example_is_saved_as_it_stands_and_starts_what_it_says() {
    let scene = Scene::new("examples", On::Sqlite);
    let examples = examples("schedules");
    // Some are due each minute, and none is to begin as it stands.
    scene.api.get("/api/scheduler/admin/pause").json(200);
    for (file, example) in &examples {
        assert_eq!(example["name"], json!(file));
        let (path, now) = (format!("/api/scheduler/schedules/{file}"), now().as_second() * 1_000);
        let (mut saved, mut times) = (Value::Null, Value::Null);
        // Between two requests a slot may pass; not twice.
        scene.place.until(&format!("{file} tells its next time"), |_| {
            scene.api.delete(&path);
            saved = scene.save(example.clone()).json(200);
            times = scene.api.get(&format!("{path}/next-execution-times?count=1")).json(200);
            saved["nextRunTime"] == if example["paused"] == true { Value::Null } else { times[0].clone() }
        });
        assert!(now < times[0].as_i64().unwrap(), "{file}: {times}");
        // Of what an example says, nothing is lost.
        for (field, value) in example.as_object().unwrap() {
            assert_eq!(&saved[field], value, "{file}: {field}");
        }
        assert!(saved.get("warnings").is_none(), "{saved}");
        assert_eq!(scene.api.delete(&path).status, 200);
    }
    scene.api.get("/api/scheduler/admin/resume").json(200);
    // The same, once and soon.
    for (_, example) in &examples {
        let soon = (now().as_second() + 2) * 1_000;
        let mut wanted = example.clone();
        let once = json!({
            "cronExpression": "* * * * * *", "cronSchedules": [], "zoneId": "UTC", "paused": false,
            "scheduleStartTime": soon, "scheduleEndTime": soon + 1,
        });
        wanted.as_object_mut().unwrap().extend(once.as_object().unwrap().clone());
        scene.save(wanted).json(200);
    }
    scene.place.until("each is started", |_| examples.len() <= scene.conductor.starts().len());
    let starts = scene.conductor.starts();
    for (file, example) in &examples {
        let start = starts.iter().find(|start| start.body["input"]["_startedByScheduler"] == json!(file));
        let body = &start.unwrap_or_else(|| panic!("{file} was not started")).body;
        let slot = body["input"]["scheduledTime"].as_i64().unwrap().to_string();
        // What is a text may name the slot; all else is as it stands.
        let request = example["startWorkflowRequest"].to_string().replace("${scheduledTime}", &slot);
        let request: Value = serde_json::from_str(&request).unwrap();
        for field in ["name", "version", "correlationId", "priority", "taskToDomain"] {
            assert_eq!(body[field], request[field], "{file}: {field}");
        }
        for (field, value) in request["input"].as_object().unwrap() {
            assert_eq!(&body["input"][field], value, "{file}: input.{field}");
        }
    }
    assert_eq!(starts.len(), examples.len(), "each is started once");
    // Those that are followed end with their workflows.
    starts.iter().for_each(|start| scene.conductor.finish(&start.id, "COMPLETED"));
    for (file, _) in &examples {
        assert_eq!(scene.until_ended(file, 1)[0]["state"], "EXECUTED", "{file}");
    }
    scene.end();
}

/// Runs the script from elsewhere, as somebody with such variables.
fn seed(variables: &[(&str, &str)]) -> Output {
    let mut shell = Command::new("sh");
    shell.arg(format!("{FOLDER}/seed.sh")).current_dir("/").stdin(Stdio::null());
    for variable in ["PUNCTUAL_URL", "PUNCTUAL_TOKEN", "CONDUCTOR_URL"] {
        shell.env_remove(variable);
    }
    shell.envs(variables.iter().copied()).output().expect("there is a shell")
}

#[test]
fn the_script_saves_every_example_and_registers_every_workflow() {
    let scene = Scene::new("seed", On::Sqlite);
    let (url, conductor) = (scene.api.url(), scene.conductor.url());
    let token = scene.api.token().unwrap();
    let access = [("PUNCTUAL_URL", url.as_str()), ("PUNCTUAL_TOKEN", token)];
    let schedules = examples("schedules");
    let lines = |what: &str, end: &str, examples: &[(String, Value)]| -> Vec<String> {
        examples.iter().map(|(name, _)| format!("{what} {name}: {end}")).collect()
    };
    let said = |output: &Output| {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(said(&seed(&access)), lines("schedule", "saved", &schedules));
    assert_eq!(scene.conductor.definitions(), Vec::<Value>::new(), "no Conductor was named");
    // Once more, with one.
    let workflows = examples("workflows");
    let both = [access[0], access[1], ("CONDUCTOR_URL", &conductor)];
    let expected = [lines("workflow", "registered", &workflows), lines("schedule", "saved", &schedules)].concat();
    assert_eq!(said(&seed(&both)), expected);
    assert_eq!(scene.conductor.definitions(), workflows.into_iter().map(|(_, it)| it).collect::<Vec<_>>());
    let saved = scene.api.get("/api/scheduler/schedules").json(200);
    let saved: Vec<&Value> = saved.as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(saved, schedules.iter().map(|(_, it)| &it["name"]).collect::<Vec<_>>());
    // What cannot be done is told.
    let told = |variables: &[(&str, &str)]| {
        let output = seed(variables);
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(told(&access[..1]).contains("PUNCTUAL_TOKEN"));
    let refused = told(&[access[0], ("PUNCTUAL_TOKEN", "pt_wrong")]);
    assert!(refused.contains("401") && refused.contains(&schedules[0].0), "{refused}");
    scene.end();
}
