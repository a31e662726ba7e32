//! Work is fenced in time also when nothing of the node's runtime runs any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use async_trait::async_trait;
use punctual_core::Elapsed;
use punctual_core::run::{Report, Terms};
use punctual_core::schedule::{Schedule, Trigger, Work};
use punctual_core::time::Zones;
use punctual_engine::clock::{Clock, SystemClock};
use punctual_engine::edit::Editor;
use punctual_engine::ids::RandomIds;
use punctual_engine::node::{self, Parts};
use punctual_engine::runner::{Assignment, Ending, Finish, Runner, Runners, Stop, StopLevel};
use punctual_engine::settings::Settings;
use punctual_engine::spawn::TokioSpawn;
use punctual_store::memory::MemoryStore;
use tokio_util::sync::CancellationToken;

/// More than anything here takes, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(60);

const WORKERS: usize = 2;

/// Work that goes on until it is stopped, and tells what it is told, wherever that is done.
struct Tells(Mutex<mpsc::Sender<StopLevel>>);

#[async_trait]
impl Runner for Tells {
    async fn run(&self, _: Assignment, mut stop: Stop) -> Finish {
        let told = self.0.lock().expect("nobody panics with it").clone();
        told.send(StopLevel::GoOn).ok();
        stop.call_directly(move |level| told.send(level).unwrap_or_default());
        stop.reached(StopLevel::Ask).await;
        Finish { ending: Ending::Stopped, report: Report::default() }
    }
}

#[test]
fn work_is_fenced_when_every_thread_of_the_runtime_is_busy() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    let (told, levels) = mpsc::channel();
    let runner: Arc<dyn Runner> = Arc::new(Tells(Mutex::new(told)));
    let mut settings = Settings::new("a", BTreeSet::from(["reporter".to_owned()]), Zones::bundled());
    settings.lease = Elapsed::from_seconds(3);
    let parts = Parts {
        store: Arc::new(MemoryStore::new()),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        settings: Arc::new(settings),
        runners: Arc::new(Runners::new(BTreeMap::from([("reporter".to_owned(), runner)]))),
        nudges: Arc::default(),
        spawn: Arc::new(TokioSpawn),
        meters: Arc::default(),
    };
    let (stop, is_over) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
    let running = runtime.spawn(node::run(parts.clone(), stop.clone()));
    let now = SystemClock.now();
    let work = Work::Agent {
        agent: "reporter".into(),
        prompt: Default::default(),
        inputs: Default::default(),
        inputs_policy: Default::default(),
    };
    let terms = Terms::of(&Schedule::draft(
        work,
        Trigger::Immediate(punctual_core::schedule::Immediate { at: now }),
        "UTC",
        now,
    ));
    let editor = Editor::new(Arc::clone(&parts.store), Arc::clone(&parts.ids), Arc::clone(&parts.settings));
    runtime.block_on(editor.run_agent(terms, now)).expect("a run can be asked for");
    parts.nudges.runs_changed();
    assert_eq!(levels.recv_timeout(PATIENCE), Ok(StopLevel::GoOn), "it has begun");

    // From here on no task of the runtime runs: neither the loop that renews the lease nor the work itself.
    for _ in 0..WORKERS {
        let is_over = Arc::clone(&is_over);
        runtime.spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
    }
    assert_eq!(levels.recv_timeout(PATIENCE), Ok(StopLevel::Ask));
    assert_eq!(levels.recv_timeout(PATIENCE), Ok(StopLevel::Now));

    is_over.store(true, Ordering::Relaxed);
    stop.cancel();
    runtime.block_on(running).expect("it does not panic").expect("it stops");
}
