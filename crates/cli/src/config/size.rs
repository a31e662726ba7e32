//! Sizes as people write them: `512MiB`, `1GiB`, `100MB`.

use std::fmt;

/// A number of bytes, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Size {
    /// How many.
    pub(crate) bytes: u64,
}

const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

impl Size {
    /// Reads a whole number and a unit; `None` for anything else, for nothing, and for more than there is.
    pub(super) fn parse(text: &str) -> Option<Size> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let (_, size) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim_start()))?;
        let bytes = number.parse::<u64>().ok()?.checked_mul(*size)?;
        (0 < bytes && bytes <= i64::MAX as u64).then_some(Size { bytes })
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, size): &&(&str, u64)| self.bytes.is_multiple_of(*size);
        let (unit, size) = UNITS.iter().find(fits).expect("one byte fits all");
        write!(f, "{}{unit}", self.bytes / size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        for (text, bytes, written) in [
            ("1GiB", 1 << 30, "1GiB"),
            ("1536 mib", 1536 << 20, "1536MiB"),
            ("100MB", 100_000_000, "100MB"),
            ("64kb", 64_000, "64KB"),
            ("1B", 1, "1B"),
        ] {
            let size = Size::parse(text).unwrap();
            assert_eq!((size.bytes, size.to_string().as_str()), (bytes, written), "{text}");
            assert_eq!(Size::parse(written), Some(size), "{text}");
        }
        for text in ["", "1", "GiB", "0MiB", "-1MiB", "1.5GiB", "1GiBs", "99999999TiB", "1é"] {
            assert_eq!(Size::parse(text), None, "{text}");
        }
    }
}
