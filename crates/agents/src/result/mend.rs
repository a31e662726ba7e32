//! JSON as some programs write it: with `NaN`, numbers that no float holds, halves of characters, bare tabs in strings.

/// What a number that no float holds becomes.
const HUGE: f64 = 1e308;

/// The text with what JSON does not have made into what it has; `None` if nothing of the kind is in it.
///
/// What is no number becomes a string that says so, so that whoever wants a number there can tell.
pub(super) fn mend(text: &str) -> Option<String> {
    let mut mended = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '"' => {
                let length = string_length(rest);
                mend_string(&rest[..length], &mut mended);
                length
            }
            first if first.is_ascii_alphanumeric() || matches!(first, '-' | '+' | '.') => {
                let is_word = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '+' | '.');
                let length = rest.find(|char| !is_word(char)).unwrap_or(rest.len());
                mended += &mend_word(&rest[..length]);
                length
            }
            other => {
                mended.push(other);
                other.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    (mended != text).then_some(mended)
}

fn string_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn mend_word(word: &str) -> String {
    match word {
        "NaN" | "Infinity" | "-Infinity" => format!("\"{word}\""),
        _ => match word.parse::<f64>() {
            Ok(number) if number.is_infinite() && word.contains(|char: char| char.is_ascii_digit()) => {
                format!("{:e}", HUGE.copysign(number))
            }
            _ => word.to_owned(),
        },
    }
}

fn mend_string(string: &str, mended: &mut String) {
    let mut rest = string;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '\\' => match (surrogate(rest), surrogate(rest.get(6..).unwrap_or_default())) {
                (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => {
                    *mended += &rest[..12];
                    12
                }
                (Some(_), _) => {
                    *mended += "\\ufffd";
                    6
                }
                (None, _) => {
                    let length = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                    *mended += &rest[..length];
                    length
                }
            },
            '\0'..'\u{20}' => {
                *mended += &format!("\\u{:04x}", u32::from(first));
                1
            }
            other => {
                mended.push(other);
                other.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
}

/// The half of a character that an escape stands for.
fn surrogate(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok().filter(|code| (0xD800..=0xDFFF).contains(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_json_does_not_have_is_changed() {
        for text in [
            r#"{"a": [1, -2.5e3, true, null], "NaN": "NaN, Infinity \ud83d\ude00 \\ud83d \" x"}"#,
            "{}",
            "{\"a",
            "{\"\\",
        ] {
            assert_eq!(mend(text), None, "{text}");
        }
        assert_eq!(mend(r#"["\ud83d\ud83d\ude00\ude00"]"#).unwrap(), r#"["\ufffd\ud83d\ude00\ufffd"]"#);
        assert_eq!(mend("[NaN,-1e400,\"\u{1}\"]").unwrap(), "[\"NaN\",-1e308,\"\\u0001\"]");
    }
}
