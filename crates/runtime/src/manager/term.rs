//! One term of the lease: the controllers and savers that run in it, and its
//! renewal.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use super::{Indexers, Inner, Manager, ManagerOptions};
use crate::attended::interrupted;
use crate::clock::stopped;
use crate::driver::{Driver, Job};
use crate::index_saver::{Saver, SaverTerm};
use crate::indexer::Subscription;
use crate::{ApiError, Controller, ControllerReport, Fault, Fence, LeaseRequest};

pub(super) struct Term<'m> {
    manager: &'m Manager,
    fence: Fence,
    drivers: JoinSet<(Arc<str>, Result<(), ApiError>)>,
    running: HashMap<Arc<str>, watch::Sender<bool>>,
    /// One for each durable index, in their order.
    saving: Vec<watch::Sender<bool>>,
}

impl<'m> Term<'m> {
    pub fn new(manager: &'m Manager, fence: Fence) -> Self {
        Self { manager, fence, drivers: JoinSet::new(), running: HashMap::new(), saving: Vec::new() }
    }

    /// `Ok` if it was stopped; an error if it cannot go on.
    pub async fn run(
        &mut self,
        since: Instant,
        indexers: &mut Indexers,
        stop: watch::Receiver<bool>,
    ) -> Result<(), ApiError> {
        let manager = self.manager.clone();
        let (fence, mut stopping) = (self.fence.clone(), stop);
        let renewing = AbortOnJoin(tokio::spawn(async move { manager.renew(&fence, since).await }));
        tokio::pin!(renewing);
        loop {
            indexers.start(self.manager);
            self.start_and_stop();
            tokio::select! {
                biased;
                () = stopped(&mut stopping) => return self.drain().await,
                error = &mut renewing.0 => {
                    return Err(error.unwrap_or_else(|error| ApiError::new(Fault::Unavailable, error.to_string())));
                }
                Some(ended) = self.drivers.join_next() => self.ended(ended)?,
                () = self.manager.0.changed.notified() => {}
            }
        }
    }

    /// What was added and what was removed.
    fn start_and_stop(&mut self) {
        let wanted = self.manager.state(|state| state.controllers.clone());
        for (_, stop) in self.running.iter().filter(|(name, _)| !wanted.contains_key(*name)) {
            stop.send_replace(true);
        }
        for (name, controller) in wanted {
            if !self.running.contains_key(&name) {
                self.start(name, controller);
            }
        }
        let savers = self.manager.state(|state| state.savers.clone());
        for saver in savers.into_iter().skip(self.saving.len()) {
            self.start_saving(saver);
        }
    }

    fn start_saving(&mut self, saver: Saver) {
        let Inner { plane, options, .. } = &*self.manager.0;
        let (stop, stopped) = watch::channel(false);
        let name = saver.name.clone();
        let term = SaverTerm {
            saver,
            plane: plane.clone(),
            fence: self.fence.clone(),
            interval: options.save_interval,
            drain: options.drain,
            stop: stopped,
        };
        self.saving.push(stop);
        self.drivers.spawn(async move { (name, term.run().await) });
    }

    fn start(&mut self, name: Arc<str>, controller: Controller) {
        let Inner { plane, options, .. } = &*self.manager.0;
        let (stop, stopped) = watch::channel(false);
        let (report, reported) = watch::channel(ControllerReport::default());
        let subscriptions =
            controller.indexes.iter().map(|index| Subscription { subscribe: index.subscribe.clone() }).collect();
        let job = Job {
            controller,
            plane: plane.clone(),
            client: self.manager.client(),
            fence: self.fence.clone(),
            save_interval: options.save_interval,
            save_rows_max: options.save_rows_max,
            drain: options.drain,
            wall_ms: options.wall_ms,
            report,
            stop: stopped,
            subscriptions,
        };
        self.manager.state(|state| {
            state.reports.insert(name.clone(), reported);
            state.running.insert(name.clone());
        });
        self.running.insert(name.clone(), stop);
        self.drivers.spawn(async move {
            let outcome = match Driver::start(job).await {
                Ok(driver) => driver.run().await,
                Err(error) => Err(error),
            };
            (name, outcome)
        });
    }

    fn ended(
        &mut self,
        ended: Result<(Arc<str>, Result<(), ApiError>), tokio::task::JoinError>,
    ) -> Result<(), ApiError> {
        match ended {
            Ok((name, outcome)) => {
                self.running.remove(&name);
                self.manager.state(|state| state.running.remove(&name));
                self.manager.0.ended.notify_waiters();
                outcome
            }
            Err(error) => Err(ApiError::new(Fault::Unavailable, format!("a controller failed: {error}"))),
        }
    }

    async fn drain(&mut self) -> Result<(), ApiError> {
        for stop in self.running.values().chain(&self.saving) {
            stop.send_replace(true);
        }
        while let Some(ended) = self.drivers.join_next().await {
            self.ended(ended)?;
        }
        Ok(())
    }
}

struct AbortOnJoin<T>(JoinHandle<T>);

impl<T> Drop for AbortOnJoin<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Manager {
    /// Until the lease is lost, or may be: a term ends here before another
    /// can begin elsewhere, and the server refuses what comes late.
    async fn renew(&self, fence: &Fence, since: Instant) -> ApiError {
        let ManagerOptions { lease_duration, lease_renewal, .. } = self.0.options;
        let mut renewed = since;
        loop {
            tokio::time::sleep(lease_renewal).await;
            let asked = Instant::now();
            let request = LeaseRequest::Renew { fence: fence.clone(), duration: lease_duration };
            let ends = renewed + lease_duration;
            match tokio::time::timeout_at(ends, self.0.plane.lease(&request)).await {
                Ok(Ok(_)) => renewed = asked,
                Ok(Err(error)) if error.is(Fault::LeaseLost) => return error,
                Ok(Err(error)) if Instant::now() >= ends => return error,
                Ok(Err(error)) => interrupted!(error, "the lease was not renewed: trying again"),
                Err(_) => return ApiError::new(Fault::LeaseLost, "the lease was not renewed in time"),
            }
        }
    }
}
