//! Output: what work prints goes to the store as it comes, so that whoever asks any node can follow it.
//!
//! In: bytes, from [`Printer`]s. Out: pieces of text in the store, the end of each attempt. Invariant: whatever is printed, the work
//! never waits for it, and it costs a bounded amount of memory; what comes faster than it can be written is left out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::SignedDuration;
use punctual_core::RunId;
pub use punctual_store::Stream;
use punctual_store::{Piece, Store};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::clock::Clock;
use crate::planner::later;

/// How much of the end of each attempt is kept, in bytes.
pub const OUTPUT_MAX: u64 = 1024 * 1024;

/// How long what was printed waits for more, so that it is written together.
const WRITE_AFTER: SignedDuration = SignedDuration::from_millis(250);

/// As much is written at once without waiting for more.
const WRITE_AT_ONCE: usize = 256 * 1024;

/// How many prints may wait to be taken in.
const WAITING_MAX: usize = 256;

/// The longest text of one piece.
const PIECE_MAX: usize = 16 * 1024;

/// Takes what one attempt prints.
#[derive(Debug, Clone)]
pub struct Printer {
    to: Option<mpsc::Sender<Print>>,
    run: RunId,
    epoch: u64,
    attempt: u32,
    /// How many bytes were printed so far.
    total: Arc<AtomicU64>,
}

/// What was printed at once.
#[derive(Debug)]
struct Print {
    run: RunId,
    epoch: u64,
    attempt: u32,
    stream: Stream,
    bytes: Vec<u8>,
    ends_at: u64,
}

impl Printer {
    /// One whose prints nobody sees.
    pub fn nowhere() -> Printer {
        Printer { to: None, run: RunId(uuid::Uuid::nil()), epoch: 0, attempt: 0, total: Arc::default() }
    }

    /// One whose prints go to whoever holds the other end: for tests of runners.
    pub fn overheard() -> (Printer, Overheard) {
        let (to, from) = mpsc::channel(WAITING_MAX);
        (Printer { to: Some(to), ..Printer::nowhere() }, Overheard(from))
    }

    /// Takes what was printed. It never waits: what nobody has time for is left out.
    pub fn print(&self, stream: Stream, bytes: &[u8]) {
        let length = bytes.len() as u64;
        let ends_at = self.total.fetch_add(length, Ordering::Relaxed) + length;
        let Some(to) = self.to.as_ref().filter(|_| !bytes.is_empty()) else { return };
        let (run, epoch, attempt, bytes) = (self.run, self.epoch, self.attempt, bytes.to_vec());
        to.try_send(Print { run, epoch, attempt, stream, bytes, ends_at }).ok();
    }
}

/// Hears what a printer takes.
#[derive(Debug)]
pub struct Overheard(mpsc::Receiver<Print>);

impl Overheard {
    /// What was printed since it was last asked, both streams in order.
    pub fn text(&mut self) -> String {
        let prints = std::iter::from_fn(|| self.0.try_recv().ok());
        prints.map(|print| String::from_utf8_lossy(&print.bytes).into_owned()).collect()
    }
}

/// Where the printers of a node come from.
#[derive(Debug, Clone)]
pub(crate) struct Press(mpsc::Sender<Print>);

impl Press {
    /// A press, and what has to run to bring what is printed to the store. It ends with `stop`, when all is written.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
    ) -> (Press, impl Future<Output = ()> + Send + 'static) {
        let (to, from) = mpsc::channel(WAITING_MAX);
        let writer = Writer { store, clock, from, pending: vec![], size: 0 };
        (Press(to), writer.run(stop))
    }

    /// A printer for an attempt.
    pub(crate) fn printer(&self, run: RunId, epoch: u64, attempt: u32) -> Printer {
        Printer { to: Some(self.0.clone()), run, epoch, attempt, total: Arc::default() }
    }
}

/// Brings what is printed to the store.
struct Writer {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    from: mpsc::Receiver<Print>,
    /// What waits, by attempt and stream, in the order in which they came.
    pending: Vec<Pending>,
    size: usize,
}

/// What one stream of an attempt has printed and is not written yet.
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

impl Writer {
    async fn run(mut self, stop: CancellationToken) {
        loop {
            let is_stopping = tokio::select! {
                biased;
                () = stop.cancelled() => true,
                print = self.from.recv() => match print {
                    Some(print) => { self.take(print); false }
                    None => true,
                },
            };
            if !is_stopping {
                self.gather(&stop).await;
            }
            while let Ok(print) = self.from.try_recv() {
                self.take(print);
            }
            self.write(is_stopping).await;
            if is_stopping {
                return;
            }
            // What waits for the end of its line is written with the next look, whether that has come or not.
            while !self.pending.is_empty() {
                self.gather(&stop).await;
                self.write(stop.is_cancelled()).await;
            }
        }
    }

    /// Waits a little for more.
    async fn gather(&mut self, stop: &CancellationToken) {
        let clock = Arc::clone(&self.clock);
        let until = later(clock.now(), WRITE_AFTER);
        while self.size < WRITE_AT_ONCE {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = clock.sleep_until(until) => return,
                print = self.from.recv() => match print {
                    Some(print) => self.take(print),
                    None => return,
                },
            }
        }
    }

    fn take(&mut self, print: Print) {
        let Print { run, epoch, attempt, stream, bytes, ends_at } = print;
        self.size += bytes.len();
        let is_same = |it: &&mut Pending| (it.run, it.epoch, it.stream) == (run, epoch, stream);
        // What does not follow on what is there had something left out before it.
        match self.pending.iter_mut().find(is_same) {
            Some(pending) => {
                pending.bytes.extend_from_slice(&bytes);
                pending.ends_at = ends_at;
            }
            None => self.pending.push(Pending { run, epoch, attempt, stream, bytes, ends_at, has_waited: false }),
        }
    }

    /// Writes whole lines, and what has waited long enough for the end of its line.
    async fn write(&mut self, all: bool) {
        let at = self.clock.now();
        let mut pieces = vec![];
        for pending in &mut self.pending {
            let ready = pending.ready(all);
            pending.has_waited = true;
            let text: Vec<u8> = pending.bytes.drain(..ready).collect();
            let end = pending.ends_at - pending.bytes.len() as u64;
            pieces.extend(pending.pieces(&text, end, at));
        }
        self.pending.retain(|pending| !pending.bytes.is_empty());
        self.size = self.pending.iter().map(|pending| pending.bytes.len()).sum();
        if pieces.is_empty() {
            return;
        }
        let count = pieces.len();
        if let Err(error) = self.store.print(pieces, OUTPUT_MAX).await {
            warn!(%error, "{count} pieces of output could not be kept; the end of each attempt is in its report");
        }
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
                // PostgreSQL keeps no NUL in a text.
                text: String::from_utf8_lossy(piece).replace('\0', "\u{2400}"),
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
    async fn a_flood_is_bounded_and_nobody_waits_for_it() {
        let printed = printed(async |printer: Printer| {
            let chunk = vec![b'x'; 64 * 1024];
            (0..1_000).for_each(|_| printer.print(Stream::Stdout, &chunk));
        })
        .await;
        let size: usize = printed.iter().map(|it| it.piece.text.len()).sum();
        assert!(0 < size && size as u64 <= OUTPUT_MAX + PIECE_MAX as u64, "{size}");
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
