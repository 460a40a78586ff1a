//! Whether a group of processes still does anything.
//!
//! Git's own processes can wait for each other for ever: a host that breaks off
//! in the middle of its answer to a push, because its disk is full, leaves
//! `send-pack` waiting for the helper that waits for it. No limit on the rate
//! of a transfer sees that.

use std::fs;
use std::time::Duration;

use rustix::process::Pid;

/// In the time after which a group is idle.
const LOOKS: u32 = 4;

/// Ends when no process of `group` has computed or moved a byte for `idle_max`;
/// never where the kernel does not tell.
pub(crate) async fn until_idle(group: Pid, idle_max: Duration) {
    let (mut before, mut same) = (spent(group), 0);
    while same < LOOKS {
        tokio::time::sleep(idle_max / LOOKS).await;
        let now = spent(group);
        same = if now.is_some() && now == before { same + 1 } else { 0 };
        before = now;
    }
}

/// Ticks of the processor and bytes of all its processes, added up: what of
/// them does not matter, only that it grows.
fn spent(group: Pid) -> Option<u64> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut of_group = processes.filter_map(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let ticks = ticks(&stat, group.as_raw_nonzero().get())?;
        Some(ticks + bytes(&fs::read_to_string(entry.path().join("io")).ok()?))
    });
    let first = of_group.next()?;
    Some(of_group.fold(first, u64::wrapping_add))
}

/// `pid (name) state ppid pgrp …`; a name may contain brackets.
fn ticks(stat: &str, group: i32) -> Option<u64> {
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let is_of_group = fields.get(2)?.parse() == Ok(group);
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(ticks(11)? + ticks(12)?).filter(|_| is_of_group)
}

/// `rchar: 1`, `wchar: 2`, and others.
fn bytes(io: &str) -> u64 {
    let values = io.lines().filter_map(|line| line.split_once(": "));
    values.filter(|(name, _)| name.ends_with("char")).filter_map(|(_, value)| value.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use tokio::process::{Child, Command};

    use super::*;

    fn group(script: &str) -> (Child, Pid) {
        let child = Command::new("sh").args(["-c", script]).process_group(0).kill_on_drop(true).spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
        (child, pid)
    }

    #[tokio::test]
    async fn who_waits_is_told_from_who_works() {
        // Long enough that the busy one has its turn, also among many.
        let idle_max = Duration::from_secs(2);
        let (_busy, busy) = group("while :; do :; done");
        let (_idle, idle) = group("exec sleep 1000");
        tokio::select! {
            () = until_idle(busy, idle_max) => panic!("it works"),
            () = until_idle(idle, idle_max) => {}
        }
    }

    #[test]
    fn what_the_kernel_tells() {
        let stat = "7 (a) b) S 1 42 42 0 -1 4194560 9 9 9 9 30 12 0 0 20 0 1 0 1";
        assert_eq!((ticks(stat, 42), ticks(stat, 43), ticks("", 42)), (Some(42), None, None));
        assert_eq!(bytes("rchar: 5\nwchar: 7\nsyscr: 100\nwrite_bytes: 9\n"), 12);
    }
}
