//! Output: what work prints goes to the store as it comes, so that whoever asks any node can follow it.
//!
//! In: bytes, from [`Printer`]s. Out: pieces of text in the store, the end of each attempt. Invariant: whatever is printed, the work
//! never waits for it, and it costs a bounded amount of memory; of what comes faster than it can be written, the end is kept. Only
//! the end of an attempt waits, for a bounded time, until its output is stored: who hears of the end finds all of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::SignedDuration;
use punctual_core::{RunId, storable};
pub use punctual_store::Stream;
use punctual_store::{Piece, Store};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::batch;
use crate::clock::Clock;
use crate::planner::later;

/// How much of the end of each attempt is kept, in bytes.
pub const OUTPUT_MAX: u64 = 1024 * 1024;

/// How long what was printed waits for more, so that it is written together.
const WRITE_AFTER: SignedDuration = SignedDuration::from_millis(250);

/// As much is written at once without waiting for more.
const WRITE_AT_ONCE: usize = 256 * 1024;

/// The longest that the end of an attempt waits for its output to be stored.
const FLUSH_MAX: SignedDuration = SignedDuration::from_secs(5);

/// The longest text of one piece.
const PIECE_MAX: usize = 16 * 1024;

/// Takes what one attempt prints.
#[derive(Debug, Clone)]
pub struct Printer {
    to: Option<Arc<Tray>>,
    run: RunId,
    epoch: u64,
    attempt: u32,
    /// How many bytes were printed so far.
    total: Arc<AtomicU64>,
}

/// What was printed and is not written yet: of each stream of an attempt the end, so that the last words of a flood are never lost.
#[derive(Debug, Default)]
struct Tray {
    /// By attempt and stream, in the order in which they came.
    pending: Mutex<Vec<Pending>>,
    /// Attempts that have ended, each with who waits until its output is stored.
    flushes: Mutex<Vec<Flush>>,
    changed: Notify,
}

/// An attempt that has ended and whose output is to be stored now.
#[derive(Debug)]
struct Flush {
    run: RunId,
    epoch: u64,
    done: oneshot::Sender<()>,
}

/// What one stream of an attempt has printed and is not written yet.
#[derive(Debug)]
struct Pending {
    run: RunId,
    epoch: u64,
    attempt: u32,
    stream: Stream,
    bytes: Vec<u8>,
    ends_at: u64,
    /// Whether it has waited for the end of its line before.
    has_waited: bool,
}

impl Printer {
    /// One whose prints nobody sees.
    pub fn nowhere() -> Printer {
        Printer { to: None, run: RunId(uuid::Uuid::nil()), epoch: 0, attempt: 0, total: Arc::default() }
    }

    /// One whose prints go to whoever holds the other end: for tests of runners.
    pub fn overheard() -> (Printer, Overheard) {
        let tray = Arc::new(Tray::default());
        (Printer { to: Some(Arc::clone(&tray)), ..Printer::nowhere() }, Overheard(tray))
    }

    /// Takes what was printed. It never waits for the store: of what comes faster than it can be written, the end is kept.
    pub fn print(&self, stream: Stream, bytes: &[u8]) {
        let length = bytes.len() as u64;
        let ends_at = self.total.fetch_add(length, Ordering::Relaxed) + length;
        let Some(tray) = self.to.as_ref().filter(|_| !bytes.is_empty()) else { return };
        let Printer { run, epoch, attempt, .. } = *self;
        let mut pending = tray.lock();
        let place = pending.iter().position(|it| (it.run, it.epoch, it.stream) == (run, epoch, stream));
        let place = place.unwrap_or_else(|| {
            pending.push(Pending { run, epoch, attempt, stream, bytes: vec![], ends_at, has_waited: false });
            pending.len() - 1
        });
        let own = &mut pending[place];
        own.bytes.extend_from_slice(bytes);
        // As far as it is known: the other stream may be a moment ahead.
        own.ends_at = own.ends_at.max(ends_at);
        let too_many = own.bytes.len().saturating_sub(OUTPUT_MAX as usize);
        own.bytes.drain(..too_many);
        drop(pending);
        tray.changed.notify_one();
    }

    /// Waits until all that was printed is stored, but not longer than [`FLUSH_MAX`]. Whether it is stored, or will never be.
    pub(crate) async fn flush(&self, clock: &dyn Clock) -> bool {
        let Some(tray) = self.to.as_ref().filter(|_| 0 < self.total.load(Ordering::Relaxed)) else { return true };
        let (done, is_done) = oneshot::channel();
        tray.flushes().push(Flush { run: self.run, epoch: self.epoch, done });
        tray.changed.notify_one();
        tokio::select! {
            biased;
            // A writer that fails drops who waits: it writes nothing more.
            _ = is_done => true,
            () = clock.sleep_until(later(clock.now(), FLUSH_MAX)) => false,
        }
    }
}

impl Tray {
    fn lock(&self) -> MutexGuard<'_, Vec<Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flushes(&self) -> MutexGuard<'_, Vec<Flush>> {
        self.flushes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the end of an attempt waits for its output.
    fn is_waited_for(&self) -> bool {
        !self.flushes().is_empty()
    }

    fn size(&self) -> usize {
        self.lock().iter().map(|pending| pending.bytes.len()).sum()
    }
}

/// Hears what a printer takes.
#[derive(Debug)]
pub struct Overheard(Arc<Tray>);

impl Overheard {
    /// What was printed since it was last asked, stream by stream.
    pub fn text(&mut self) -> String {
        let prints = std::mem::take(&mut *self.0.lock());
        prints.iter().map(|pending| String::from_utf8_lossy(&pending.bytes).into_owned()).collect()
    }
}

/// Where the printers of a node come from.
#[derive(Debug, Clone)]
pub(crate) struct Press(Arc<Tray>);

impl Press {
    /// A press, and what has to run to bring what is printed to the store. It ends with `stop`, when all is written.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
    ) -> (Press, impl Future<Output = ()> + Send + 'static) {
        let tray = Arc::new(Tray::default());
        let writer = Writer { store, clock, tray: Arc::clone(&tray) };
        (Press(tray), writer.run(stop))
    }

    /// A printer for an attempt.
    pub(crate) fn printer(&self, run: RunId, epoch: u64, attempt: u32) -> Printer {
        Printer { to: Some(Arc::clone(&self.0)), run, epoch, attempt, total: Arc::default() }
    }
}

/// Brings what is printed to the store.
struct Writer {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    tray: Arc<Tray>,
}

impl Writer {
    async fn run(self, stop: CancellationToken) {
        loop {
            // What waits for the end of its line is written with the next look, whether that has come or not.
            while self.tray.size() == 0 && !self.tray.is_waited_for() && !stop.is_cancelled() {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => {}
                    () = self.tray.changed.notified() => {}
                }
            }
            self.gather(&stop).await;
            let is_stopping = stop.is_cancelled();
            self.write(is_stopping).await;
            if is_stopping && self.tray.size() == 0 && !self.tray.is_waited_for() {
                return;
            }
        }
    }

    /// Waits a little for more, unless the end of an attempt waits.
    async fn gather(&self, stop: &CancellationToken) {
        let until = later(self.clock.now(), WRITE_AFTER);
        while self.tray.size() < WRITE_AT_ONCE && !self.tray.is_waited_for() {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.clock.sleep_until(until) => return,
                () = self.tray.changed.notified() => {}
            }
        }
    }

    /// Writes whole lines, what has waited long enough for the end of its line, and all of what has ended.
    async fn write(&self, all: bool) {
        let flushes = std::mem::take(&mut *self.tray.flushes());
        let has_ended = |run, epoch| flushes.iter().any(|flush| (flush.run, flush.epoch) == (run, epoch));
        let pieces = self.pieces(|pending| all || has_ended(pending.run, pending.epoch));
        if !pieces.is_empty() {
            self.store(&pieces).await;
        }
        // Who waits may have given up.
        for flush in flushes {
            flush.done.send(()).ok();
        }
    }

    async fn store(&self, pieces: &[Piece]) {
        let print = |pieces: Vec<Piece>| async move {
            let count = pieces.len();
            self.store.print(pieces, OUTPUT_MAX).await.map(|()| vec![(); count])
        };
        let lost = match batch::write(pieces, print).await {
            Ok(written) => written.into_iter().filter_map(Result::err).map(|error| (1, error)).collect(),
            Err(error) => vec![(pieces.len(), error)],
        };
        for (count, error) in lost {
            warn!(%error, "{count} pieces of output could not be kept; the end of each attempt is in its report");
        }
    }

    /// Takes what is ready to be written.
    fn pieces(&self, all: impl Fn(&Pending) -> bool) -> Vec<Piece> {
        let at = self.clock.now();
        let mut waiting = self.tray.lock();
        let mut pieces = vec![];
        for pending in waiting.iter_mut() {
            let ready = pending.ready(all(pending));
            pending.has_waited = true;
            let text: Vec<u8> = pending.bytes.drain(..ready).collect();
            let end = pending.ends_at - pending.bytes.len() as u64;
            pieces.extend(pending.pieces(&text, end, at));
        }
        waiting.retain(|pending| !pending.bytes.is_empty());
        pieces
    }
}

impl Pending {
    /// How many bytes are written now.
    fn ready(&self, all: bool) -> usize {
        if all {
            return self.bytes.len();
        }
        let lines = self.bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let waits_in_vain = self.has_waited || PIECE_MAX < self.bytes.len() - lines;
        if 0 < lines || !waits_in_vain { lines } else { whole_characters(&self.bytes) }
    }

    /// Text that ends at a place, in pieces of a good size.
    fn pieces(&self, text: &[u8], end: u64, at: jiff::Timestamp) -> Vec<Piece> {
        let mut pieces = vec![];
        let mut rest = text;
        while !rest.is_empty() {
            let length = match rest.get(..PIECE_MAX) {
                None => rest.len(),
                Some(most) => match most.iter().rposition(|byte| *byte == b'\n') {
                    Some(end) => end + 1,
                    None => whole_characters(most),
                },
            };
            let (piece, behind) = rest.split_at(length);
            rest = behind;
            pieces.push(Piece {
                run: self.run,
                epoch: self.epoch,
                attempt: self.attempt,
                stream: self.stream,
                at,
                ends_at: end - rest.len() as u64,
                text: storable::text(String::from_utf8_lossy(piece).into_owned()),
            });
        }
        pieces
    }
}

/// How many bytes hold whole characters; all, if a cut at the end of a character is not what makes them no text.
fn whole_characters(bytes: &[u8]) -> usize {
    let start = bytes.len().saturating_sub(3);
    let cut = (start..bytes.len()).rev().find(|index| bytes[*index] & 0b1100_0000 != 0b1000_0000);
    let Some(index) = cut else { return bytes.len() };
    let needs = match bytes[index] {
        0b1100_0000..=0b1101_1111 => 2,
        0b1110_0000..=0b1110_1111 => 3,
        0b1111_0000..=0b1111_0111 => 4,
        _ => 1,
    };
    if index + needs <= bytes.len() || index == 0 { bytes.len() } else { index }
}

#[cfg(test)]
mod tests {
    use punctual_store::memory::MemoryStore;
    use punctual_store::{Output, PrintedPiece};
    use uuid::Uuid;

    use super::*;
    use crate::clock::SystemClock;

    const RUN: RunId = RunId(Uuid::from_u128(1));

    /// Prints on a press, stops it, and gives what is in the store.
    async fn printed(print: impl AsyncFnOnce(Printer)) -> Vec<PrintedPiece> {
        let store = Arc::new(MemoryStore::new());
        let stop = CancellationToken::new();
        let (press, writer) = Press::new(store.clone(), Arc::new(SystemClock), stop.clone());
        let writing = tokio::spawn(writer);
        print(press.printer(RUN, 1, 1)).await;
        stop.cancel();
        writing.await.unwrap();
        store.printed(RUN, 0, 1_000_000).await.unwrap()
    }

    fn text_of(printed: &[PrintedPiece], stream: Stream) -> String {
        printed.iter().filter(|it| it.piece.stream == stream).map(|it| it.piece.text.as_str()).collect()
    }

    #[tokio::test]
    async fn what_is_printed_arrives_by_stream_and_in_order() {
        let printed = printed(async |printer: Printer| {
            printer.print(Stream::Stdout, b"one\ntw");
            printer.print(Stream::Stderr, b"oh\n");
            printer.print(Stream::Stdout, b"o\nthree");
        })
        .await;
        assert_eq!(text_of(&printed, Stream::Stdout), "one\ntwo\nthree");
        assert_eq!(text_of(&printed, Stream::Stderr), "oh\n");
        assert!(printed.iter().any(|it| it.piece.ends_at == 16), "{printed:?}");
    }

    #[tokio::test]
    async fn what_is_no_text_becomes_text_and_no_character_is_cut() {
        let printed = printed(async |printer: Printer| {
            for byte in "ä€😀".repeat(PIECE_MAX).bytes().collect::<Vec<u8>>().chunks(60_001) {
                printer.print(Stream::Stdout, byte);
            }
            printer.print(Stream::Stdout, b"\0\xff");
        })
        .await;
        let text = text_of(&printed, Stream::Stdout);
        assert!(text.ends_with("ä€😀\u{2400}\u{fffd}"));
        assert_eq!(text.matches('\u{fffd}').count(), 1, "only what was none");
        assert!(printed.iter().all(|it| it.piece.text.len() <= PIECE_MAX + 6));
    }

    #[tokio::test]
    async fn of_a_flood_the_end_is_kept_and_nobody_waits_for_it() {
        let printed = printed(async |printer: Printer| {
            let chunk = vec![b'x'; 64 * 1024];
            (0..1_000).for_each(|_| printer.print(Stream::Stdout, &chunk));
            printer.print(Stream::Stdout, b"the end\n");
        })
        .await;
        assert!(text_of(&printed, Stream::Stdout).ends_with("xthe end\n"), "the last words are never lost");
        let size: usize = printed.iter().map(|it| it.piece.text.len()).sum();
        assert!(0 < size && size as u64 <= OUTPUT_MAX + PIECE_MAX as u64, "{size}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_has_ended_finds_its_output_stored() {
        let store = Arc::new(MemoryStore::new());
        let (press, writer) = Press::new(store.clone(), Arc::new(SystemClock), CancellationToken::new());
        tokio::spawn(writer);
        let (printer, other) = (press.printer(RUN, 1, 1), press.printer(RunId(Uuid::from_u128(2)), 1, 1));
        assert!(printer.flush(&SystemClock).await, "who printed nothing waits for nothing");
        for (text, all) in [(&b"one\nno end"[..], "one\nno end"), (b" of it", "one\nno end of it")] {
            printer.print(Stream::Stdout, text);
            other.print(Stream::Stdout, b"half a line");
            assert!(printer.flush(&SystemClock).await);
            assert_eq!(text_of(&store.printed(RUN, 0, 1_000_000).await.unwrap(), Stream::Stdout), all);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_does_not_wait_for_a_writer_that_hangs_or_is_gone() {
        let stop = CancellationToken::new();
        let (press, writer) = Press::new(Arc::new(MemoryStore::new()), Arc::new(SystemClock), stop.clone());
        let printer = press.printer(RUN, 1, 1);
        printer.print(Stream::Stdout, b"unheard\n");
        // Nobody drives the writer.
        assert!(!printer.flush(&SystemClock).await);
        stop.cancel();
        writer.await;
    }

    #[test]
    fn only_a_cut_character_waits_for_its_rest() {
        for (bytes, whole) in [
            (&b"abc"[..], 3),
            (b"ab\xc3", 2),
            (b"ab\xc3\xa4", 4),
            (b"ab\xe2\x82", 2),
            (b"ab\xf0\x9f\x98", 2),
            (b"\xf0", 1),
            (b"ab\xff", 3),
            (b"", 0),
        ] {
            assert_eq!(whole_characters(bytes), whole, "{bytes:?}");
        }
    }
}
