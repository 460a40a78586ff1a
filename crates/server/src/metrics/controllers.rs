//! The controllers' own numbers, read when somebody looks.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use tidegate_runtime::{ControllerReport, Manager};

use super::Metrics;
use crate::api::Api;

impl Metrics {
    /// Without an API, a controller is behind by what it has heard of alone.
    pub fn register_controllers(&self, manager: Manager, api: Option<Api>) {
        self.register(Box::new(ControllerCollector { manager, api }));
    }
}

impl Metrics {
    /// Wherever they would run: the store knows of them.
    pub fn register_stopped_controllers(&self, api: Api) {
        self.register(Box::new(StoppedCollector(api)));
    }
}

struct StoppedCollector(Api);

impl Collector for StoppedCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let seen = self.0.seen_controllers().unwrap_or_else(|error| {
            tracing::warn!(%error, "the controllers that do not run cannot be read");
            Vec::new()
        });
        let is_stopped = |report: &ControllerReport| report.stopped.is_some();
        let stopped: Vec<_> = seen.into_iter().map(|seen| seen.report).filter(is_stopped).collect();
        if stopped.is_empty() {
            return Ok(());
        }
        let (one, help) = (ConstGauge::new(1), "Controllers of hooks that cannot run, by reason");
        let mut encoder = encoder.encode_descriptor("controller_stopped", help, None, one.metric_type())?;
        for report in &stopped {
            let reason = report.stopped.as_deref().unwrap_or_default();
            let labels = [("controller", report.controller.as_str()), ("reason", reason)];
            ConstGauge::new(1).encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

impl fmt::Debug for StoppedCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoppedCollector")
    }
}

struct ControllerCollector {
    manager: Manager,
    api: Option<Api>,
}

impl ControllerCollector {
    fn reports(&self) -> Vec<ControllerReport> {
        let mut reports = self.manager.reports();
        if let Some(api) = &self.api {
            reports.iter_mut().for_each(|report| report.behind_since_ms = api.behind_since_ms(report));
        }
        reports
    }
}

impl Collector for ControllerCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let reports = self.reports();
        let leading = ConstGauge::new(i64::from(self.manager.is_leading()));
        let help = "Whether this process runs the controllers, or stands by";
        leading.encode(encoder.encode_descriptor("controller_leading", help, None, leading.metric_type())?)?;
        for (name, help, unit, value) in gauges() {
            family(&mut encoder, &reports, name, help, unit.as_ref(), |report| ConstGauge::new(value(report)))?;
        }
        for (name, help, value) in counters() {
            family(&mut encoder, &reports, name, help, None, |report| ConstCounter::new(value(report)))?;
        }
        Ok(())
    }
}

/// One metric, by controller.
fn family<M: EncodeMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    reports: &[ControllerReport],
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    metric: impl Fn(&ControllerReport) -> M,
) -> Result<(), fmt::Error> {
    let Some(first) = reports.first() else { return Ok(()) };
    let mut encoder = encoder.encode_descriptor(name, help, unit, metric(first).metric_type())?;
    for report in reports {
        let labels = [("controller", report.controller.as_str())];
        metric(report).encode(encoder.encode_family(&labels)?)?;
    }
    Ok(())
}

type Value<T> = fn(&ControllerReport) -> T;

fn gauges() -> [(&'static str, &'static str, Option<Unit>, Value<i64>); 7] {
    let seconds = || Some(Unit::Seconds);
    [
        ("controller_queue_depth", "Keys that wait for a worker", None, |report| count(report.queue_depth)),
        ("controller_in_flight", "Reconciles that run", None, |report| count(report.in_flight)),
        ("controller_delayed", "Keys in a backoff, or waiting for their time", None, |report| count(report.delayed)),
        ("controller_retrying", "Keys whose last attempt failed, and which wait for the next", None, |report| {
            count(report.retrying)
        }),
        ("controller_quarantined", "Keys that are not tried any more", None, |report| count(report.quarantined)),
        ("controller_oldest_waiting", "How long the longest of the waiting keys waits", seconds(), |report| {
            seconds_since(report.oldest_waiting_ms)
        }),
        (
            "controller_behind",
            "How long the oldest change waits that the checkpoint has not passed",
            seconds(),
            |report| seconds_since(report.behind_since_ms),
        ),
    ]
}

fn counters() -> [(&'static str, &'static str, Value<u64>); 3] {
    [
        ("controller_reconciles", "Reconciles that ended, since the lease was taken", |report| report.reconciles),
        ("controller_failures", "Reconciles that failed", |report| report.failures),
        ("controller_panics", "Reconciles that panicked", |report| report.panics),
    ]
}

fn count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn seconds_since(since_ms: Option<u64>) -> i64 {
    let now_ms = u64::try_from(chrono::Utc::now().timestamp_millis()).unwrap_or(0);
    since_ms.map_or(0, |since| i64::try_from(now_ms.saturating_sub(since) / 1_000).unwrap_or(i64::MAX))
}

impl fmt::Debug for ControllerCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ControllerCollector")
    }
}
