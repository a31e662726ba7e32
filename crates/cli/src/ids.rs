//! Ids as people read and type them.
//!
//! Ids begin with their time: those of one evening look alike at the front and differ at the end. So a terminal shows the end
//! of an id, and a piece of one is either end of it.

use uuid::Uuid;

use crate::screen::Screen;

/// How many letters of an id are shown where there is little place: 32 bits.
const SHORT: usize = 8;

/// A shorter piece is more likely a slip.
const PIECE_MIN: usize = 4;

/// The id as it is shown: its end on a terminal, and whole in a file, in a pipe and with `--wide`.
pub(crate) fn shown(id: Uuid) -> String {
    if Screen::get().width.is_some() { short(id) } else { id.to_string() }
}

/// The end of an id.
pub(crate) fn short(id: Uuid) -> String {
    let text = id.to_string();
    text[text.len() - SHORT..].to_owned()
}

/// Whether a text may be the beginning or the end of an id.
pub(crate) fn is_piece(text: &str) -> bool {
    PIECE_MIN <= text.len() && text.chars().all(|it| it.is_ascii_hexdigit() || it == '-')
}

/// Whether an id, in its usual form, begins or ends with a text.
pub(crate) fn has_piece(id: &str, text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    is_piece(&text) && (id.starts_with(&text) || id.ends_with(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_known_by_both_its_ends() {
        let id = "01a1e55f-1449-71ab-bba6-2fd20e7c946f";
        assert_eq!(short(id.parse().unwrap()), "0e7c946f");
        for piece in ["0e7c946f", "946f", "01a1", "01A1E55F-1449", "2FD20E7C946F", id] {
            assert!(has_piece(id, piece), "{piece}");
        }
        for other in ["e55f", "46f", "0e7c946e", "reporter", "", "71ab"] {
            assert!(!has_piece(id, other), "{other}");
        }
    }
}
