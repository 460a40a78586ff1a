//! A map over many items on all cores, in order.

use std::num::NonZero;
use std::thread;

/// Below this a thread costs more than it saves: parsing and checking one
/// file takes about 50 µs, starting a thread about as long.
const ITEMS_PER_THREAD_MIN: usize = 32;

pub(crate) fn map<T: Sync, R: Send>(items: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = cores.min(items.len() / ITEMS_PER_THREAD_MIN).max(1);
    if threads == 1 {
        return items.iter().map(each).collect();
    }
    let each = &each;
    let chunk = items.len().div_ceil(threads);
    thread::scope(|scope| {
        let run = |chunk: &'_ [T]| chunk.iter().map(each).collect::<Vec<R>>();
        let workers: Vec<_> = items.chunks(chunk).map(|chunk| scope.spawn(move || run(chunk))).collect();
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
            assert_eq!(map(&items, |item| item + 1), items.iter().map(|item| item + 1).collect::<Vec<_>>());
        }
    }
}
