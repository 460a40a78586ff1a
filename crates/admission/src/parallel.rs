//! A map over many items on all cores, in order.

use std::num::NonZero;
use std::thread;

/// Below this a thread costs more than it saves: parsing and checking one
/// file takes about 50 µs, starting a thread about as long.
const ITEMS_PER_THREAD_MIN: usize = 32;

/// Each item is gone when its result is there.
pub(crate) fn map<T: Send, R: Send>(items: Vec<T>, each: impl Fn(T) -> R + Sync) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = cores.min(items.len() / ITEMS_PER_THREAD_MIN).max(1);
    if threads == 1 {
        return items.into_iter().map(each).collect();
    }
    let each = &each;
    let chunk = items.len().div_ceil(threads);
    let mut items = items.into_iter();
    thread::scope(|scope| {
        let run = |chunk: Vec<T>| chunk.into_iter().map(each).collect::<Vec<R>>();
        let chunks = (0..threads).map(|_| items.by_ref().take(chunk).collect::<Vec<T>>());
        let workers: Vec<_> = chunks.map(|chunk| scope.spawn(move || run(chunk))).collect();
        let join = |worker: thread::ScopedJoinHandle<'_, Vec<R>>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().flat_map(join).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_order() {
        for length in [0, 1, 31, 32, 1000] {
            let items: Vec<usize> = (0..length).collect();
            assert_eq!(map(items.clone(), |item| item + 1), items.iter().map(|item| item + 1).collect::<Vec<_>>());
        }
    }
}
