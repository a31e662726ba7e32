//! A hash that never changes: jitter must be the same on every node, in every release, after every restart.

/// FNV-1a over 64 bits with a final mix, so that neighbouring inputs do not give neighbouring values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StableHash(u64);

impl StableHash {
    pub(crate) fn new() -> StableHash {
        StableHash(0xcbf2_9ce4_8422_2325)
    }

    #[must_use]
    pub(crate) fn bytes(self, bytes: &[u8]) -> StableHash {
        StableHash(bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)))
    }

    pub(crate) fn finish(self) -> u64 {
        let mut hash = self.0;
        hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^ hash >> 33
    }
}

/// What would be written is hashed instead.
impl std::fmt::Write for StableHash {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        *self = self.bytes(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_it_has_always_been() {
        // The published vectors of FNV-1a, then our own mix.
        assert_eq!(StableHash::new().bytes(b"a").0, 0xaf63_dc4c_8601_ec8c);
        assert_eq!(StableHash::new().bytes(b"foo").bytes(b"bar").0, 0x8594_4171_f739_67e8);
        assert_eq!(StableHash::new().bytes(b"foobar").finish(), 0x2c22_1949_22d1_672b);
    }
}
