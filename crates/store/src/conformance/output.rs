//! Claims about what runs print.
#![expect(missing_docs, reason = "the names are the claims")]

use jiff::SignedDuration;
use punctual_core::RunId;
use uuid::Uuid;

use super::bench::ALL;
use super::{Bench, block_on};
use crate::{Piece, Stream};

const RUN: RunId = RunId(Uuid::from_u128(7));

fn piece(bench: &Bench, epoch: u64, ends_at: u64, text: &str) -> Piece {
    let (at, stream) = (bench.now, if epoch == 1 { Stream::Stdout } else { Stream::Stderr });
    Piece { run: RUN, epoch, attempt: 1, stream, at, ends_at, text: text.to_owned() }
}

fn texts(bench: &Bench, run: RunId, after: u64, limit: usize) -> Vec<String> {
    let printed = block_on(bench.store.printed(run, after, limit)).unwrap();
    printed.into_iter().map(|it| it.piece.text).collect()
}

pub fn what_a_run_prints_is_read_in_its_order(bench: &mut Bench) {
    let other = Piece { run: RunId(Uuid::from_u128(8)), ..piece(bench, 1, 3, "else") };
    let pieces = vec![piece(bench, 1, 3, "one"), other, piece(bench, 1, 6, "two"), piece(bench, 2, 5, "three")];
    block_on(bench.store.print(pieces.clone(), 100)).unwrap();
    assert_eq!(texts(bench, RUN, 0, ALL), ["one", "two", "three"]);
    assert_eq!(texts(bench, RUN, 0, 2), ["one", "two"]);
    let printed = block_on(bench.store.printed(RUN, 0, ALL)).unwrap();
    assert_eq!(printed[2].piece, pieces[3]);
    assert_eq!(texts(bench, RUN, printed[0].seq, ALL), ["two", "three"]);
    // A writer that does not know whether it was heard says it again.
    block_on(bench.store.print(pieces, 100)).unwrap();
    assert_eq!(block_on(bench.store.printed(RUN, 0, ALL)).unwrap(), printed);
    block_on(bench.store.print(vec![], 100)).unwrap();
}

pub fn of_much_output_the_end_is_kept(bench: &mut Bench) {
    for end in 1..=10 {
        block_on(bench.store.print(vec![piece(bench, 1, 10 * end, &format!("{end}"))], 35)).unwrap();
    }
    assert_eq!(texts(bench, RUN, 0, ALL), ["7", "8", "9", "10"], "what has its end in the last 35 bytes");
    block_on(bench.store.print(vec![piece(bench, 2, 10, "again")], 35)).unwrap();
    assert_eq!(texts(bench, RUN, 0, ALL).len(), 5, "another attempt has its own");
}

pub fn output_is_forgotten_in_time(bench: &mut Bench) {
    block_on(bench.store.print(vec![piece(bench, 1, 3, "one")], 100)).unwrap();
    let before = bench.now + SignedDuration::from_secs(30);
    bench.pass(60);
    block_on(bench.store.print(vec![piece(bench, 1, 6, "two")], 100)).unwrap();
    assert_eq!(block_on(bench.store.forget_output(before)).unwrap(), 1);
    assert_eq!(texts(bench, RUN, 0, ALL), ["two"]);
}
