//! Processes that race for runs: each has one winner, and no limit is exceeded.
//!
//! The racers are this program, started again.

mod postgres_support;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use punctual_core::plan::Limits;
use punctual_core::run::RunEvent;
use punctual_core::{NodeId, RunId};
use punctual_store::conformance::bench::agents;
use punctual_store::conformance::{Bench, block_on};
use punctual_store::{Decision, RunWritten};
use uuid::Uuid;

use postgres_support::runs::request;
use postgres_support::told::Told;
use postgres_support::{assert_clean, fresh_schema, open, rounds};

/// What a racer is told, and nobody else: its number and the address.
const RACER: &str = "PUNCTUAL_TEST_RACER";

/// As many runs may be held at once, by all racers together.
const MOST: u32 = 3;

/// Takes one run after the other until nobody listens, and says which.
#[test]
fn a_racer_holds_what_it_was_given() {
    let Ok(told) = std::env::var(RACER) else { return };
    let (number, address) = told.split_once(' ').expect("both were told");
    let node = NodeId(Uuid::from_u128(number.parse().expect("it is a number")));
    let mut bench = Bench::new(Box::new(open(address)));
    bench.limits = Limits { global: Some(MOST), ..Limits::default() };
    bench.joined(&bench.sign(node, number)).expect("a node can join");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = std::io::stdin().lines().count();
            is_over.store(true, Ordering::Relaxed);
        });
        while !is_over.load(Ordering::Relaxed) {
            for claimed in bench.ask_for(node, 2, &agents()).expect("it lives").runs {
                assert_ne!(bench.settle(&claimed.run, Decision::Start), RunWritten::Stale);
                assert_ne!(bench.finish(&claimed.run, RunEvent::Succeeded), RunWritten::Stale);
                println!("won {}", claimed.run.id.0);
            }
        }
    });
}

/// Processes that race, and who wins what.
struct Race {
    bench: Bench,
    racers: Vec<Child>,
    wins: Receiver<(usize, RunId)>,
}

impl Race {
    fn begin(racers: usize) -> Race {
        let address = fresh_schema();
        let bench = Bench::new(Box::new(open(&address)));
        let (tell, wins) = channel();
        let start = |number: usize| {
            let mut racer = Command::new(std::env::current_exe().expect("a program knows where it is"));
            racer.args(["--exact", "a_racer_holds_what_it_was_given", "--nocapture"]);
            racer.env(RACER, format!("{} {address}", number + 1)).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut racer = racer.spawn().expect("it can be started again");
            listen(number, &mut racer, tell.clone());
            racer
        };
        Race { bench, racers: (0..racers).map(start).collect(), wins }
    }

    fn ask(&self, number: u64) {
        let asked = block_on(self.bench.store.ask(self.bench.now, request(number.into()), None));
        assert!(asked.expect("the store answers"));
    }

    /// Ends the race, and checks what was said and what was written. How often each has won.
    fn end(mut self, count: u64, mut wins: Vec<(usize, RunId)>) -> Vec<usize> {
        while wins.len() < count as usize {
            wins.push(self.wins.recv().expect("somebody still runs"));
        }
        self.racers.iter_mut().for_each(|racer| drop(racer.stdin.take()));
        for racer in &mut self.racers {
            assert!(
                racer.wait().expect("it can be waited for").success(),
                "a racer was told that its run is another's"
            );
        }
        assert_eq!(self.wins.try_iter().collect::<Vec<_>>(), [], "a run was won twice");
        let runs: BTreeSet<RunId> = (1..=count).map(|number| RunId(Uuid::from_u128(number.into()))).collect();
        assert_eq!(wins.iter().map(|(_, run)| *run).collect::<BTreeSet<_>>(), runs);
        let mut most = 0;
        let told = Told::by(&self.bench.entries(), |_, held| most = most.max(held.len()));
        told.assert_once(&runs);
        assert!(most <= MOST as usize, "{most} were held at once");
        assert_clean(&*self.bench.store);
        (0..self.racers.len()).map(|racer| wins.iter().filter(|(winner, _)| *winner == racer).count()).collect()
    }
}

impl Drop for Race {
    /// Nobody runs on when a test has failed.
    fn drop(&mut self) {
        for racer in &mut self.racers {
            let _ = racer.kill();
            let _ = racer.wait();
        }
    }
}

fn listen(number: usize, racer: &mut Child, tell: Sender<(usize, RunId)>) {
    let said = racer.stdout.take().expect("its output is ours");
    std::thread::spawn(move || {
        for line in BufReader::new(said).lines().map_while(Result::ok) {
            if let Some(run) = line.strip_prefix("won ") {
                let _ = tell.send((number, RunId(run.parse().expect("it is an id"))));
            }
        }
    });
}

#[test]
fn two_processes_that_race_for_one_run_have_one_winner_each_time() {
    let race = Race::begin(2);
    let count = 1_000 * rounds(2);
    let mut wins = vec![];
    for number in 1..=count {
        // The next one comes when both have nothing else to do.
        race.ask(number);
        wins.push(race.wins.recv().expect("somebody runs"));
    }
    let wins = race.end(count, wins);
    println!("of {count} rounds, {wins:?} were won");
    assert!(wins.iter().all(|wins| 0 < *wins), "nobody raced");
}

#[test]
fn four_processes_never_hold_more_than_they_may() {
    let race = Race::begin(4);
    let count = 250 * rounds(2);
    (1..=count).for_each(|number| race.ask(number));
    let wins = race.end(count, vec![]);
    println!("of {count} runs, {wins:?} were taken");
    assert!(wins.iter().filter(|wins| 0 < **wins).count() > 1, "nobody raced");
}
