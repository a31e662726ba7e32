//! Text that every store can keep.

pub(crate) use punctual_core::storable::text as without_nul;

/// The beginning of a text, in at most `max` bytes and a mark.
pub(crate) fn cut(text: String, max: usize) -> String {
    if text.len() <= max { text } else { format!("{}…", &text[..text.floor_char_boundary(max)]) }
}
