//! Text that every store can keep.

/// What a NUL character is shown as: PostgreSQL keeps none in a text, and no run may be lost to one.
pub(crate) const NUL_SHOWN: &str = "\u{2400}";

/// The text with its NUL characters made visible.
pub(crate) fn without_nul(text: String) -> String {
    if text.contains('\0') { text.replace('\0', NUL_SHOWN) } else { text }
}

/// The beginning of a text, in at most `max` bytes and a mark.
pub(crate) fn cut(text: String, max: usize) -> String {
    if text.len() <= max { text } else { format!("{}…", &text[..text.floor_char_boundary(max)]) }
}
