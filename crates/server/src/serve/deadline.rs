//! A connection whose client has to read: what was written and is not taken within a time ends it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Fails a write that makes no progress. A stream on which there is nothing to write may be silent for ever.
pub(super) struct WriteDeadline<S> {
    stream: S,
    patience: Duration,
    sleep: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl<S> WriteDeadline<S> {
    pub(super) fn new(stream: S, patience: Duration) -> WriteDeadline<S> {
        WriteDeadline { stream, patience, sleep: Box::pin(sleep(patience)), is_waiting: false }
    }

    /// What a write came to, or that it has waited for too long.
    fn in_time<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.is_waiting = false;
            return written;
        }
        if !std::mem::replace(&mut self.is_waiting, true) {
            self.sleep.as_mut().reset(Instant::now() + self.patience);
        }
        ready!(self.sleep.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read what it is sent")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteDeadline<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, to)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteDeadline<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.in_time(written, context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, bytes);
        this.in_time(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        this.in_time(flushed, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let ended = Pin::new(&mut this.stream).poll_shutdown(context);
        this.in_time(ended, context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_reads_slowly_is_waited_for_and_who_does_not_read_is_not() {
        let (ours, mut theirs) = duplex(4);
        let mut stream = WriteDeadline::new(ours, Duration::from_secs(10));
        let writes = tokio::spawn(async move { stream.write_all(&[7; 40]).await });
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_secs(9)).await;
            theirs.read_exact(&mut [0; 4]).await.unwrap();
        }
        assert!(!writes.is_finished(), "it has waited longer than its patience, but never at a stretch");
        tokio::time::sleep(Duration::from_secs(11)).await;
        assert_eq!(writes.await.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_on_both_sides_is_no_fault() {
        let (ours, mut theirs) = duplex(4);
        let mut stream = WriteDeadline::new(ours, Duration::from_secs(10));
        stream.write_all(&[7; 4]).await.unwrap();
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        theirs.read_exact(&mut [0; 4]).await.unwrap();
        stream.write_all(&[7; 4]).await.unwrap();
    }
}
