//! Printing.

use std::io;

/// Whoever reads no further, like `head`, has had enough: that is no error.
pub(crate) fn unless_closed(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
