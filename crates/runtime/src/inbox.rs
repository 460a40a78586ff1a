//! What a controller's reader and its indexes say, in turn.

use tokio::sync::mpsc;

use crate::Touched;
use crate::reader::Feed;

pub(crate) struct Inbox {
    feed: mpsc::Receiver<Feed>,
    touches: mpsc::Receiver<Touched>,
    touches_first: bool,
}

pub(crate) enum Heard {
    Feed(Feed),
    Touched(Touched),
}

impl Inbox {
    pub fn new(feed: mpsc::Receiver<Feed>, touches: mpsc::Receiver<Touched>) -> Self {
        Self { feed, touches, touches_first: false }
    }

    /// If both have something to say, neither waits for the end of the other.
    /// Cancel safe.
    pub async fn next(&mut self) -> Heard {
        self.touches_first = !self.touches_first;
        if self.touches_first
            && let Ok(touched) = self.touches.try_recv()
        {
            return Heard::Touched(touched);
        }
        tokio::select! {
            biased;
            Some(feed) = self.feed.recv() => Heard::Feed(feed),
            Some(touched) = self.touches.recv() => Heard::Touched(touched),
            // The reader has ended, and the manager with it.
            else => std::future::pending().await,
        }
    }
}
