//! Redaction: the secrets that work was given do not come back in what it prints.
//!
//! In: bytes as they come, cut anywhere. Out: the same without the secrets, each replaced by its name. A secret that is cut
//! between two reads is found all the same: what may be its beginning is held back until it is clear.

use std::fmt;

/// A shorter value would be found everywhere.
pub(crate) const SECRET_MIN: usize = 6;

/// What is looked for. It shows itself without what it hides.
#[derive(Clone, Default)]
pub(crate) struct Secrets {
    patterns: Vec<(Vec<u8>, String)>,
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
        if value.len() < SECRET_MIN {
            return;
        }
        let json = serde_json::to_string(value).unwrap_or_default();
        let forms = [
            value.to_owned(),
            json[1..json.len() - 1].to_owned(),
            percent_encoded(value),
            base64(value.as_bytes(), b'+', b'/'),
            base64(value.as_bytes(), b'-', b'_'),
            value.bytes().map(|byte| format!("{byte:02x}")).collect(),
        ];
        for form in forms {
            if !self.patterns.iter().any(|(known, _)| *known == form.as_bytes()) {
                self.patterns.push((form.into_bytes(), format!("[secret {name}]")));
            }
        }
        // Of two that begin alike, the longer one is meant.
        self.patterns.sort_by_key(|(pattern, _)| std::cmp::Reverse(pattern.len()));
    }

    /// Also hides what others hide.
    pub(crate) fn hide_all(&mut self, others: &Secrets) {
        for pattern in &others.patterns {
            if !self.patterns.contains(pattern) {
                self.patterns.push(pattern.clone());
            }
        }
        self.patterns.sort_by_key(|(pattern, _)| std::cmp::Reverse(pattern.len()));
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
}

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
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(more);
        let mut clean = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let mut patterns = self.secrets.patterns.iter();
            if let Some((pattern, name)) = patterns.clone().find(|(pattern, _)| rest.starts_with(pattern)) {
                // A longer one may be about to come.
                let is_longer = |(other, _): &(Vec<u8>, String)| pattern.len() < other.len() && other.starts_with(rest);
                if patterns.any(is_longer) {
                    break;
                }
                clean.extend_from_slice(name.as_bytes());
                at += pattern.len();
            } else if patterns.any(|(pattern, _)| pattern.starts_with(rest)) {
                break;
            } else {
                clean.push(rest[0]);
                at += 1;
            }
        }
        self.held = bytes.split_off(at);
        clean
    }

    /// Nothing more comes: what was held back was none, or the beginning of a longer one.
    pub(crate) fn end(&mut self) -> Vec<u8> {
        let mut clean = vec![];
        let mut rest = &std::mem::take(&mut self.held)[..];
        while let Some(first) = rest.first() {
            match self.secrets.patterns.iter().find(|(pattern, _)| rest.starts_with(pattern)) {
                Some((pattern, name)) => {
                    clean.extend_from_slice(name.as_bytes());
                    rest = &rest[pattern.len()..];
                }
                None => {
                    clean.push(*first);
                    rest = &rest[1..];
                }
            }
        }
        clean
    }
}

fn percent_encoded(value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    value
        .bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Base64 without what a text around it would change: the last bits of a group that is not full.
fn base64(bytes: &[u8], plus: u8, slash: u8) -> String {
    let digit = |value: u32| match value & 63 {
        it @ 0..26 => b'A' + it as u8,
        it @ 26..52 => b'a' + (it - 26) as u8,
        it @ 52..62 => b'0' + (it - 52) as u8,
        62 => plus,
        _ => slash,
    };
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let value = group.iter().fold(0_u32, |value, byte| value << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        let digits = group.len() * 8 / 6;
        (0..digits).for_each(|index| text.push(char::from(digit(value >> (18 - 6 * index)))));
    }
    text
}

#[cfg(test)]
mod tests {
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
}
