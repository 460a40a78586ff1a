//! How many objects a push brings, read ahead of git.
//!
//! Git decides by this number how it unpacks a push, and so do we how it is
//! checked. Where the beginning of the request does not tell, nothing is
//! assumed.

use std::io;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt, stream};

/// `PACK`, a version and the number of objects, each of four bytes.
const HEADER_BYTES: usize = 12;

/// The number, if the first piece of the body has it, and the body as it was.
/// A client that sends nothing within `wait` is for whoever reads on.
pub async fn object_count(body: Body, wait: Duration) -> (Option<u32>, Body) {
    let mut rest = body.into_data_stream();
    let Ok(first) = tokio::time::timeout(wait, rest.next()).await else { return (None, Body::from_stream(rest)) };
    let count = match &first {
        Some(Ok(chunk)) => count(chunk),
        _ => None,
    };
    let first = first.map(|chunk| chunk.map_err(io::Error::other));
    let rest = rest.map(|chunk| chunk.map_err(io::Error::other));
    (count, Body::from_stream(stream::iter(first).chain(rest)))
}

/// After the commands, which end with `0000`, and the options of the push, if
/// there are any, which do, too.
fn count(chunk: &Bytes) -> Option<u32> {
    let mut rest: &[u8] = chunk;
    while !rest.starts_with(b"PACK") {
        let length = usize::from_str_radix(std::str::from_utf8(rest.get(..4)?).ok()?, 16).ok()?;
        rest = rest.get(length.max(4)..)?;
    }
    let count = rest.get(8..HEADER_BYTES)?;
    Some(u32::from_be_bytes(count.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(count: u32) -> Vec<u8> {
        [b"PACK\0\0\0\x02", &count.to_be_bytes()[..], b"objects"].concat()
    }

    async fn check(pieces: Vec<Vec<u8>>, expected: Option<u32>) {
        let whole = pieces.concat();
        let body = Body::from_stream(stream::iter(pieces.into_iter().map(io::Result::Ok)));
        let (count, body) = object_count(body, Duration::from_secs(60)).await;
        assert_eq!(count, expected, "{whole:?}");
        assert_eq!(axum::body::to_bytes(body, usize::MAX).await.unwrap(), whole, "nothing of it is lost");
    }

    #[tokio::test]
    async fn what_a_request_begins_with() {
        let commands = b"000ahello\n0009again0000".to_vec();
        check(vec![[commands.clone(), pack(7)].concat()], Some(7)).await;
        check(vec![[commands.clone(), b"0009abcde0000".to_vec(), pack(100)].concat(), b"more".to_vec()], Some(100))
            .await;
        check(vec![[commands.clone(), pack(7)[..11].to_vec()].concat(), pack(7)[11..].to_vec()], None).await;
        check(vec![commands.clone(), pack(7)], None).await;
        check(vec![b"0000".to_vec()], None).await;
        check(vec![b"00".to_vec()], None).await;
        check(vec![b"zzzz".to_vec(), pack(7)], None).await;
        check(Vec::new(), None).await;
    }
}
