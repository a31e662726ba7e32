//! Redaction: the secrets that work was given do not come back in what it prints.
//!
//! In: bytes as they come, cut anywhere. Out: the same without the secrets, each replaced by its name, in whatever way it is
//! written down ([`forms`]). A secret that is cut between two reads is found all the same: what may be its beginning is held back
//! until it is clear. That is never more than a few times the longest secret.

mod forms;

use std::fmt;

use self::forms::{Form, Found};

/// A shorter value would be found everywhere.
pub(crate) const SECRET_MIN: usize = 6;

/// What is looked for. It shows itself without what it hides.
#[derive(Clone)]
pub(crate) struct Secrets {
    /// Each form of each secret, and what stands in its place.
    patterns: Vec<(Form, String)>,
    /// Which bytes a form can begin with: most of what is printed is passed over by this alone.
    begins: [bool; 256],
}

impl Default for Secrets {
    fn default() -> Secrets {
        Secrets { patterns: vec![], begins: [false; 256] }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} patterns)", self.patterns.len())
    }
}

impl Secrets {
    /// Also hides this value, and the ways in which programs write it down.
    pub(crate) fn hide(&mut self, name: &str, value: &str) {
        let value = value.trim();
        if SECRET_MIN <= value.len() {
            Form::all(value).into_iter().for_each(|form| self.add(form, format!("[secret {name}]")));
        }
    }

    /// Also hides what others hide.
    pub(crate) fn hide_all(&mut self, others: &Secrets) {
        others.patterns.iter().for_each(|(form, name)| self.add(form.clone(), name.clone()));
    }

    fn add(&mut self, form: Form, name: String) {
        // Of two secrets that are the same, the first gives its name.
        if !self.patterns.iter().any(|(known, _)| *known == form) {
            form.begins().into_iter().for_each(|byte| self.begins[usize::from(byte)] = true);
            self.patterns.push((form, name));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// A whole text without the secrets.
    pub(crate) fn redact(&self, text: &str) -> String {
        let mut redactor = Redactor::new(self);
        let mut clean = redactor.push(text.as_bytes());
        clean.extend(redactor.end());
        String::from_utf8_lossy(&clean).into_owned()
    }

    /// The longest secret that a text begins with, and what stands in its place; or that more of it has to come first.
    fn find(&self, text: &[u8], is_all: bool) -> Option<Result<(usize, &str), Undecided>> {
        if !self.begins[usize::from(text[0])] {
            return None;
        }
        let mut longest: Option<(usize, &str)> = None;
        for (form, name) in &self.patterns {
            match form.find(text) {
                Found::Whole(length) if longest.is_none_or(|(longest, _)| longest < length) => {
                    longest = Some((length, name));
                }
                // It may be a longer one.
                Found::Part if !is_all => return Some(Err(Undecided)),
                Found::Whole(_) | Found::Part | Found::Nothing => {}
            }
        }
        longest.map(Ok)
    }
}

/// More has to come before it is clear.
struct Undecided;

/// Takes a stream without its secrets.
#[derive(Debug)]
pub(crate) struct Redactor<'a> {
    secrets: &'a Secrets,
    /// The end of what came, which may be the beginning of a secret.
    held: Vec<u8>,
}

impl<'a> Redactor<'a> {
    pub(crate) fn new(secrets: &'a Secrets) -> Redactor<'a> {
        Redactor { secrets, held: vec![] }
    }

    /// Takes in what came next, and gives what is clear.
    pub(crate) fn push(&mut self, more: &[u8]) -> Vec<u8> {
        if self.secrets.is_empty() {
            return more.to_vec();
        }
        self.held.extend_from_slice(more);
        self.clear(false)
    }

    /// Nothing more comes: what was held back was none, or the beginning of a longer one.
    pub(crate) fn end(&mut self) -> Vec<u8> {
        self.clear(true)
    }

    fn clear(&mut self, is_all: bool) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.held);
        let mut clean = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            match self.secrets.find(&bytes[at..], is_all) {
                None => {
                    clean.push(bytes[at]);
                    at += 1;
                }
                Some(Ok((length, name))) => {
                    clean.extend_from_slice(name.as_bytes());
                    at += length;
                }
                Some(Err(Undecided)) => break,
            }
        }
        self.held = bytes.split_off(at);
        clean
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secrets() -> Secrets {
        let mut secrets = Secrets::default();
        secrets.hide("KEY", "sk-1234/abc+xyz\"?");
        secrets.hide("LONG", "sk-1234/abc+xyz\"?-and-more");
        secrets.hide("SHORT", "abc");
        secrets
    }

    #[test]
    fn a_secret_is_found_in_every_way_of_writing_it() {
        let value = "sk-1234/abc+xyz\"?";
        for (form, rest) in [
            (value, ""),
            (r#"sk-1234/abc+xyz\"?"#, ""),
            ("sk-1234%2Fabc%2Bxyz%22%3F", ""),
            // The last digit also depends on what follows.
            ("c2stMTIzNC9hYmMreHl6Ij8=", "8="),
            ("736b2d313233342f6162632b78797a223f", ""),
        ] {
            let text = format!("before {form} after abc");
            assert_eq!(secrets().redact(&text), format!("before [secret KEY]{rest} after abc"), "{form}");
        }
        assert_eq!(secrets().redact("sk-1234/abc+xyz\"?-and-more"), "[secret LONG]");
        assert_eq!(secrets().redact("sk-1234/abc+xyz\"?-and-mor"), "[secret KEY]-and-mor");
    }

    #[test]
    fn a_secret_is_found_wherever_it_is_cut() {
        let secrets = secrets();
        let text = b"x sk-1234/abc+xyz\"? y sk-1234/abc+xyz\"?-and-more sk-12 z sk-1234";
        let whole = secrets.redact(std::str::from_utf8(text).unwrap());
        assert_eq!(whole, "x [secret KEY] y [secret LONG] sk-12 z sk-1234");
        for first in 0..text.len() {
            for second in first..text.len() {
                let mut redactor = Redactor::new(&secrets);
                let mut clean = redactor.push(&text[..first]);
                clean.extend(redactor.push(&text[first..second]));
                clean.extend(redactor.push(&text[second..]));
                clean.extend(redactor.end());
                assert_eq!(String::from_utf8_lossy(&clean), whole, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn nothing_shows_what_is_hidden() {
        assert!(!format!("{:?}", secrets()).contains("1234"));
    }

    #[test]
    fn every_spelling_of_a_secret_is_found() {
        let mut secrets = Secrets::default();
        secrets.hide("KEY", "s3cret/é+ 😀\"x");
        for text in [
            // JSON with everything escaped that may be.
            r#"{"key":"s3cret\/\u00e9+ \ud83d\uDE00\u0022x"}"#,
            r#"{"key":"s3cret/é+ 😀\"x"}"#,
            // Addresses, as different programs escape them.
            "?key=s3cret%2f%c3%a9%2b%20%f0%9f%98%80%22x&",
            "?key=s3cret%2F%C3%A9%2B+%F0%9F%98%80%22x&",
            "?key=%73%33%63%72%65%74%2F%C3%A9%2B%20%F0%9F%98%80%22%78&",
            "7333637265742FC3A92B20F09F9880227 8 7333637265742FC3A92B20F09F98802278",
        ] {
            let clean = secrets.redact(text);
            assert!(clean.contains("[secret KEY]") && !clean.contains("3cret"), "{text}: {clean}");
        }
    }

    #[test]
    fn a_secret_within_something_longer_is_found_in_base64() {
        let mut secrets = Secrets::default();
        secrets.hide("KEY", "hunter2-hunter2");
        // `Authorization: Basic` of ada:…, bo:… and c:….
        for (header, rest) in [
            ("YWRhOmh1bnRlcjItaHVudGVyMg==", "YWRhOm"),
            ("Ym86aHVudGVyMi1odW50ZXIy", "Ym86"),
            ("YzpodW50ZXIyLWh1bnRlcjI", "Yzpo"),
        ] {
            let clean = secrets.redact(&format!("Basic {header}."));
            assert!(clean.starts_with("Basic ") && clean.contains("[secret KEY]"), "{header}: {clean}");
            assert!(!clean.contains("bnRl") && !clean.contains("dW50"), "{header}: {clean}, more than {rest} is left");
        }
        assert!(secrets.redact("YWRhOmh1bnRl\r\ncjItaHVudGVyMg==").contains("[secret KEY]"), "in lines");
    }

    /// How a program writes bytes down.
    #[derive(Debug, Clone, Copy)]
    enum Writing {
        Plain,
        Json,
        Percent { is_upper: bool, all: bool },
        Hex { is_upper: bool },
        Base64 { is_url: bool, pads: bool, lines: bool },
    }

    impl Writing {
        fn of(self, text: &str) -> String {
            match self {
                Writing::Plain => text.to_owned(),
                Writing::Json => serde_json::to_string(text).unwrap(),
                Writing::Percent { is_upper, all } => {
                    let plain = |byte: u8| !all && (byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
                    let escaped = |byte: u8| if is_upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
                    text.bytes().map(|byte| if plain(byte) { char::from(byte).into() } else { escaped(byte) }).collect()
                }
                Writing::Hex { is_upper } => text
                    .bytes()
                    .map(|byte| if is_upper { format!("{byte:02X}") } else { format!("{byte:02x}") })
                    .collect(),
                Writing::Base64 { is_url, pads, lines } => encoded(text.as_bytes(), is_url, pads, lines),
            }
        }
    }

    /// Base64 by the book.
    fn encoded(bytes: &[u8], is_url: bool, pads: bool, lines: bool) -> String {
        let alphabet: Vec<char> =
            ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(if is_url { ['-', '_'] } else { ['+', '/'] }).collect();
        let mut text = String::new();
        for group in bytes.chunks(3) {
            let padded = [group[0], *group.get(1).unwrap_or(&0), *group.get(2).unwrap_or(&0)];
            let value = u32::from_be_bytes([0, padded[0], padded[1], padded[2]]);
            let digits = group.len() + 1;
            (0..digits).for_each(|digit| text.push(alphabet[(value >> (18 - 6 * digit) & 63) as usize]));
            (digits..4).filter(|_| pads).for_each(|_| text.push('='));
            if lines && text.len() % 77 == 76 {
                text.push('\n');
            }
        }
        text
    }

    fn writings() -> impl Strategy<Value = Writing> {
        prop_oneof![
            Just(Writing::Plain),
            Just(Writing::Json),
            any::<(bool, bool)>().prop_map(|(is_upper, all)| Writing::Percent { is_upper, all }),
            any::<bool>().prop_map(|is_upper| Writing::Hex { is_upper }),
            any::<(bool, bool, bool)>().prop_map(|(is_url, pads, lines)| Writing::Base64 { is_url, pads, lines }),
        ]
    }

    proptest! {
        /// Whatever is around it, however it is written and wherever the reads are cut, no secret comes through.
        #[test]
        fn no_secret_comes_through(
            secret in "[!-~é😀]([ -~é😀]{4,90})[!-~é😀]",
            before in "[ -~]{0,8}",
            after in "[ -~]{0,8}",
            writing in writings(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let mut secrets = Secrets::default();
            secrets.hide("K", &secret);
            let text = writing.of(&format!("{before}{secret}{after}"));
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            places.extend([0, text.len()]);
            places.sort_unstable();
            let mut redactor = Redactor::new(&secrets);
            let mut clean: Vec<u8> =
                places.windows(2).flat_map(|cut| redactor.push(&text.as_bytes()[cut[0]..cut[1]])).collect();
            prop_assert!(redactor.held.len() <= 6 * secret.len() + 64, "{} bytes are held", redactor.held.len());
            clean.extend(redactor.end());
            let clean = String::from_utf8_lossy(&clean).into_owned();
            prop_assert_eq!(&clean, &secrets.redact(&text), "cuts make no difference");
            prop_assert!(clean.contains("[secret K]"), "{} in {}", clean, text);
            // Not even most of it is left: at an edge of Base64 a digit has some bits of it.
            let left = clean.replace("[secret K]", "").replace('\n', "").len();
            let around = writing.of(&format!("{before}{after}")).replace('\n', "").len();
            prop_assert!(left <= around + 8, "{} of {} in {}", left, around, clean);
        }

        /// What is no secret comes through as it was.
        #[test]
        fn everything_else_comes_through(text in "[a-f ]{0,200}", cut in any::<prop::sample::Index>()) {
            let mut secrets = Secrets::default();
            secrets.hide("K", "Zzzzzz-not-in-there");
            let (first, second) = text.split_at(cut.index(text.len() + 1));
            let mut redactor = Redactor::new(&secrets);
            let mut clean = redactor.push(first.as_bytes());
            clean.extend(redactor.push(second.as_bytes()));
            clean.extend(redactor.end());
            prop_assert_eq!(String::from_utf8_lossy(&clean), text);
        }
    }
}
