//! The end of what the work prints: always read, mostly forgotten.
//!
//! Invariant: whatever is printed, it costs a bounded amount of memory and becomes text that every store can keep.

use crate::redact::{Redactor, Secrets};
use crate::result::{Kept, RESULT_HEAD, RESULT_TAIL};
use crate::text::without_nul;
use tokio::io::{AsyncRead, AsyncReadExt};

/// What is read at once.
const CHUNK: usize = 64 * 1024;

/// The last bytes of a stream, and how many there were in all.
#[derive(Debug)]
pub(super) struct Tail {
    /// The first bytes.
    head: Vec<u8>,
    bytes: Vec<u8>,
    keep: usize,
    total: u64,
}

impl Tail {
    /// An empty one that keeps at least so many bytes.
    pub(super) fn new(keep: usize) -> Tail {
        Tail { head: Vec::new(), bytes: Vec::new(), keep, total: 0 }
    }

    /// Reads to the end of the stream. What has been read is kept when this is given up in between.
    ///
    /// Secrets are taken out first: nothing behind this has seen them. `print` is told what is left.
    pub(super) async fn fill(&mut self, mut stream: impl AsyncRead + Unpin, secrets: &Secrets, print: impl Fn(&[u8])) {
        let mut redactor = Redactor::new(secrets);
        let mut chunk = vec![0; CHUNK];
        // A pipe has no errors that reading on would cure.
        while let Ok(count @ 1..) = stream.read(&mut chunk).await {
            let clean = redactor.push(&chunk[..count]);
            self.push(&clean);
            print(&clean);
        }
        let rest = redactor.end();
        self.push(&rest);
        print(&rest);
    }

    /// Adds what came next.
    pub(super) fn push(&mut self, more: &[u8]) {
        self.total += more.len() as u64;
        self.head.extend_from_slice(&more[..more.len().min(RESULT_HEAD - self.head.len())]);
        self.bytes.extend_from_slice(&more[more.len().saturating_sub(self.keep)..]);
        // Only when there is twice as much as needed, so that each byte is moved once and not with every push.
        if 2 * self.keep < self.bytes.len() {
            self.bytes.drain(..self.bytes.len() - self.keep);
        }
    }

    /// How many bytes came in all.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The end of it as text of at most `max` bytes, after a mark that says how much is missing.
    ///
    /// What is not UTF-8 is replaced, and so is NUL; other control characters are left for whoever shows the text.
    pub(super) fn text(&self, max: usize) -> String {
        let mut take = max.min(self.bytes.len());
        let text = loop {
            let from = boundary(&self.bytes, self.bytes.len() - take);
            take = self.bytes.len() - from;
            let text = without_nul(String::from_utf8_lossy(&self.bytes[from..]).into_owned());
            // A replaced byte becomes three. Each byte less makes the text shorter by at most that.
            match text.len().saturating_sub(max) {
                0 => break text,
                excess => take -= excess.div_ceil(3),
            }
        };
        match self.total - take as u64 {
            0 => text,
            missing => format!("[… {missing} bytes left out …]\n{text}"),
        }
    }

    /// What a result is looked for in.
    pub(super) fn kept(&self) -> Kept<'_> {
        let tail = &self.bytes[self.bytes.len().saturating_sub(RESULT_TAIL)..];
        Kept { head: &self.head, tail, is_cut: (tail.len() as u64) < self.total }
    }

    /// The last line that is not blank. `None` if there is none, or if its beginning has not been kept.
    pub(super) fn last_line(&self) -> Option<&[u8]> {
        let text = self.bytes.trim_ascii_end();
        let line = match text.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => &text[end + 1..],
            None if self.total == self.bytes.len() as u64 => text,
            None => return None,
        };
        (!line.is_empty()).then_some(line)
    }
}

/// The first place from here on that is not inside of a character.
fn boundary(bytes: &[u8], from: usize) -> usize {
    let inside = bytes[from..].iter().take(3).take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000).count();
    if from == 0 { 0 } else { from + inside }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(keep: usize, pieces: &[&[u8]]) -> Tail {
        let mut tail = Tail::new(keep);
        for piece in pieces {
            tail.push(piece);
        }
        tail
    }

    #[track_caller]
    fn check(max: usize, pieces: &[&[u8]], expected: &str) {
        assert_eq!(tail(max, pieces).text(max), expected);
    }

    #[test]
    fn what_fits_is_kept_as_it_is() {
        check(8, &[], "");
        check(8, &[b"ab\n", b"cd"], "ab\ncd");
        check(8, &[b"12345678"], "12345678");
        check(8, &[b"\x1b[1mred"], "\x1b[1mred");
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        check(4, &[b"12345678"], "[… 4 bytes left out …]\n5678");
        check(4, &[b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8", b"9"], "[… 5 bytes left out …]\n6789");
        check(0, &[b"123"], "[… 3 bytes left out …]\n");
    }

    #[test]
    fn a_cut_does_not_go_through_a_character() {
        check(4, &["aaäöü".as_bytes()], "[… 4 bytes left out …]\nöü");
        check(3, &["aaäöü".as_bytes()], "[… 6 bytes left out …]\nü");
    }

    #[test]
    fn bytes_that_are_no_text_grow_within_the_bound() {
        check(9, &[b"\xff\xfe\0"], "\u{fffd}\u{fffd}\u{2400}");
        check(6, &[b"\xff\xfe\0"], "[… 1 bytes left out …]\n\u{fffd}\u{2400}");
        check(2, &[b"\xff\xff\xff"], "[… 3 bytes left out …]\n");
        for length in 0..200 {
            let bytes: Vec<u8> = (0..length).map(|n: usize| (n * 37 % 256) as u8).collect();
            let text = tail(100, &[&bytes]).text(100);
            assert!(text.len() <= 100 + 40, "{length}: {text:?}");
        }
    }

    #[test]
    fn the_last_line_is_the_last_that_says_something() {
        assert_eq!(tail(100, &[b"a\n{}\n\n  \r\n"]).last_line(), Some(&b"{}"[..]));
        assert_eq!(tail(100, &[b"{}"]).last_line(), Some(&b"{}"[..]));
        assert_eq!(tail(100, &[b"\n \n"]).last_line(), None);
        assert_eq!(tail(2, &[b"a{}{}{}"]).last_line(), None, "its beginning is not known");
    }
}
