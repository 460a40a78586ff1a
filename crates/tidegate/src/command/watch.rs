//! `tidegate watch`.

use std::io;

use anyhow::{Context, Result, bail};
use tokio::time::Instant;

use super::select::{namespaces, narrowed, selection};
use crate::cli::WatchArgs;
use crate::client::connect;
use crate::client::watch::{self, Flow, From};
use crate::output::{WatchPrinter, gone};
use crate::units::show_duration;

pub async fn run(args: WatchArgs) -> Result<()> {
    let deadline = args.timeout.map(|timeout| Instant::now() + timeout);
    let client = connect(&args.connection)?;
    let selection = narrowed(selection(&client, &args.select).await?, args.select.name());
    let mut printer =
        WatchPrinter::new(io::stdout().lock(), args.output, selection.kind.clone(), namespaces(&args.select));
    let mut shown = 0;
    let events = watch::run(&client, &selection, from(&args), |event| {
        printer.print(&event)?;
        shown += 1;
        Ok(if args.count == Some(shown) { Flow::Stop } else { Flow::Continue })
    });
    let is_timed_out = tokio::select! {
        ended = events => return ended,
        interrupted = tokio::signal::ctrl_c() => interrupted.map(|()| false).context("failed to listen for Ctrl-C")?,
        () = reached(deadline) => true,
        () = gone() => return Ok(()),
    };
    match (is_timed_out, args.count, args.timeout) {
        (true, Some(count), Some(timeout)) => bail!("{shown} of {count} events came within {}", show_duration(timeout)),
        _ => Ok(()),
    }
}

fn from(args: &WatchArgs) -> From {
    match &args.since {
        Some(version) => From::Since(version.clone()),
        None if args.no_initial => From::Now,
        None => From::Initial,
    }
}

async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
