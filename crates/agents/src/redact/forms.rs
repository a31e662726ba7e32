//! The ways in which programs write a secret down: as it is, in JSON, in an address, in Base64 within something longer, in hex.

/// A secret in one way of writing it, which may have several spellings.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Form {
    /// As it is, with any of its characters escaped as JSON has it.
    Json(Vec<char>),
    /// As it is, with any of its bytes escaped as in an address.
    Percent(Vec<u8>),
    /// In either alphabet of Base64, broken into lines or not: what depends on nothing but the secret, where it begins at one
    /// of the three places in a group.
    Base64(Vec<u8>),
    /// Two digits a byte, in either case.
    Hex(Vec<u8>),
}

/// What a text begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The secret, in so many bytes.
    Whole(usize),
    /// The text ends within what may be the secret.
    Part,
    /// Something else.
    Nothing,
}

/// What comes next in a text.
enum Next {
    /// What is looked for, in so many bytes.
    Same(usize),
    /// The text ends.
    Ended,
    Different,
}

impl Form {
    /// All forms of a secret.
    pub(super) fn all(value: &str) -> Vec<Form> {
        let bytes = value.as_bytes();
        let mut forms = vec![
            Form::Json(value.chars().collect()),
            Form::Percent(bytes.to_vec()),
            Form::Hex(value.bytes().flat_map(|byte| [byte >> 4, byte & 15]).collect()),
        ];
        forms.extend((0..3).map(|skipped| Form::Base64(base64(bytes, skipped))));
        forms
    }

    /// The bytes that it can begin with.
    pub(super) fn begins(&self) -> Vec<u8> {
        (0..=u8::MAX).filter(|byte| self.find(&[*byte]) != Found::Nothing).collect()
    }

    /// Whether a text begins with it.
    pub(super) fn find(&self, text: &[u8]) -> Found {
        match self {
            Form::Json(characters) => walk(text, characters, |rest, it| json(rest, *it)),
            Form::Percent(bytes) => walk(text, bytes, |rest, it| percent(rest, *it)),
            Form::Hex(digits) => walk(text, digits, |rest, it| one(rest, |byte| hex_value(byte) == Some(*it))),
            Form::Base64(digits) => walk(text, digits, |rest, it| base64_digit(rest, *it, rest.len() < text.len())),
        }
    }
}

/// Looks for one thing after the other.
fn walk<T>(text: &[u8], things: &[T], next: impl Fn(&[u8], &T) -> Next) -> Found {
    let mut at = 0;
    for thing in things {
        match next(&text[at..], thing) {
            Next::Same(length) => at += length,
            Next::Ended => return Found::Part,
            Next::Different => return Found::Nothing,
        }
    }
    Found::Whole(at)
}

fn one(text: &[u8], is_it: impl Fn(u8) -> bool) -> Next {
    match text.first() {
        None => Next::Ended,
        Some(byte) if is_it(*byte) => Next::Same(1),
        Some(_) => Next::Different,
    }
}

/// What a text has to have next, byte by byte.
fn exactly(text: &[u8], wanted: &[u8]) -> Next {
    let length = text.len().min(wanted.len());
    match text[..length] == wanted[..length] {
        true if length == wanted.len() => Next::Same(length),
        true => Next::Ended,
        false => Next::Different,
    }
}

/// A character as it is, or escaped: `\n`, `\/`, `\u00e9`, or two of those for one that is far out.
fn json(text: &[u8], character: char) -> Next {
    if text.first() != Some(&b'\\') {
        return exactly(text, character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    let short = match character {
        '"' | '\\' | '/' => Some(character as u8),
        '\u{8}' => Some(b'b'),
        '\u{c}' => Some(b'f'),
        '\n' => Some(b'n'),
        '\r' => Some(b'r'),
        '\t' => Some(b't'),
        _ => None,
    };
    match text.get(1) {
        None => Next::Ended,
        Some(byte) if Some(*byte) == short => Next::Same(2),
        Some(b'u') => {
            let mut units = [0; 2];
            let units = character.encode_utf16(&mut units);
            units_escaped(text, units)
        }
        // A backslash as it is.
        Some(_) if character == '\\' => Next::Same(1),
        Some(_) => Next::Different,
    }
}

/// `\uXXXX` for each unit, its digits in either case.
fn units_escaped(text: &[u8], units: &[u16]) -> Next {
    let wanted: Vec<u8> = units.iter().flat_map(|unit| format!("\\u{unit:04x}").into_bytes()).collect();
    let length = text.len().min(wanted.len());
    exactly(&text[..length].to_ascii_lowercase(), &wanted)
}

/// A byte as it is, as `%2F` in either case, or as the `+` of a space in a form.
fn percent(text: &[u8], byte: u8) -> Next {
    match text {
        [] => Next::Ended,
        [first, ..] if *first == byte && byte != b'%' => Next::Same(1),
        [b'+', ..] if byte == b' ' => Next::Same(1),
        [b'%', rest @ ..] => {
            let wanted = [byte >> 4, byte & 15];
            let given = rest.iter().take(2).map(|digit| hex_value(*digit));
            let is_same = given.zip(wanted).all(|(given, wanted)| given == Some(wanted));
            match rest.len() {
                0 | 1 if is_same => Next::Ended,
                _ if is_same => Next::Same(3),
                _ if byte == b'%' => Next::Same(1),
                _ => Next::Different,
            }
        }
        _ => Next::Different,
    }
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// A digit of either alphabet; within a secret a line may end before it.
fn base64_digit(text: &[u8], value: u8, is_within: bool) -> Next {
    let breaks = if is_within { text.iter().take(2).take_while(|byte| b"\r\n".contains(byte)).count() } else { 0 };
    match one(&text[breaks..], |byte| base64_value(byte) == Some(value)) {
        Next::Same(length) => Next::Same(breaks + length),
        other => other,
    }
}

fn base64_value(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

/// The digits of Base64 that depend on nothing but these bytes, where so many bytes of a group are before them.
fn base64(bytes: &[u8], skipped: usize) -> Vec<u8> {
    let (first, end) = (skipped * 8, (skipped + bytes.len()) * 8);
    let bit = |index: usize| bytes[(index - first) / 8] >> (7 - index % 8) & 1;
    let digits = first.div_ceil(6)..end / 6;
    digits.map(|digit| (digit * 6..digit * 6 + 6).fold(0, |value, index| value << 1 | bit(index))).collect()
}
