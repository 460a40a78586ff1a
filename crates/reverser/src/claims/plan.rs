//! The whole configuration ∩ the whole catalogue → what is to be done.

use std::collections::{BTreeMap, BTreeSet};

use super::catalog::{Catalog, TypeId};
use super::resolve::{Omitted, resolve};
use super::route::{Routes, Selection};
use crate::config::{
    ConfigKind, ConfigSet, Configured, GitDestination, GitRepoConfig, Glob, Id, NamespacedRef, Problem, Reason, Rule,
    RuleScope, check_base_folder, check_branch, check_repo_url, folders_overlap, remote_name,
};

/// One watch: a type in one namespace, or everywhere.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClaimId {
    pub of: TypeId,
    pub namespace: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlanOptions {
    pub omitted: Omitted,
    /// Whether a reference may name another namespace.
    pub cross_namespace: bool,
}

/// A destination that is in force.
#[derive(Clone, PartialEq, Debug)]
pub struct DestinationPlan {
    pub repo: Id,
    pub repo_spec: GitRepoConfig,
    pub spec: GitDestination,
}

pub type RuleRef = (ConfigKind, Id);

/// What became of a rule.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RuleVerdict {
    pub destination: Option<Id>,
    pub claims: BTreeSet<ClaimId>,
    pub waiting: Vec<String>,
    pub problems: Vec<Problem>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Desired {
    pub routes: Routes,
    pub claims: BTreeSet<ClaimId>,
    pub repos: BTreeMap<Id, Result<(), Problem>>,
    pub destinations: BTreeMap<Id, Result<DestinationPlan, Problem>>,
    pub rules: BTreeMap<RuleRef, RuleVerdict>,
}

impl Desired {
    /// The watches that a destination's content comes from.
    pub fn claims_of(&self, destination: &Id) -> BTreeSet<ClaimId> {
        let wanted = self.routes.of_destination(destination);
        wanted.map(|(of, selection)| self.claim(of, selection.namespace.as_deref())).collect()
    }

    /// The same for one type.
    pub fn claims_of_type(&self, destination: &Id, of: &TypeId) -> BTreeSet<ClaimId> {
        let wanted = self.routes.of_destination(destination).filter(|(own, _)| *own == of);
        wanted.map(|(of, selection)| self.claim(of, selection.namespace.as_deref())).collect()
    }

    /// What a destination has of a type, and which watches tell of it: while
    /// this stays, what was compared with Git stays compared.
    pub fn share(&self, destination: &Id, of: &TypeId) -> (Vec<Selection>, BTreeSet<ClaimId>) {
        let wanted = self.routes.of_destination(destination).filter(|(own, _)| *own == of);
        let selections = wanted.map(|(_, selection)| selection.clone()).collect();
        (selections, self.claims_of_type(destination, of))
    }

    /// The watch that tells of this type and namespace: the one of all
    /// namespaces, where there is one.
    pub fn claim(&self, of: &TypeId, namespace: Option<&str>) -> ClaimId {
        let everywhere = ClaimId { of: of.clone(), namespace: None };
        match namespace {
            Some(namespace) if !self.claims.contains(&everywhere) => {
                ClaimId { of: of.clone(), namespace: Some(namespace.into()) }
            }
            _ => everywhere,
        }
    }
}

pub fn plan(config: &ConfigSet, catalog: &Catalog, options: PlanOptions) -> Desired {
    let mut desired = Desired::default();
    for (id, repo) in &config.repos {
        desired.repos.insert(id.clone(), repo.spec.clone().and_then(|spec| check_repo(&spec)));
    }
    plan_destinations(config, options, &mut desired);
    let mut rules = RulePlanner { catalog, options, desired };
    for (id, rule) in &config.rules {
        let parts = rule.spec.as_ref().map(|spec| (&spec.destination_ref, spec.rules.as_slice()));
        rules.plan((ConfigKind::WatchRule, id), parts, |_| Ok(RuleScope::Namespaced));
    }
    for (id, rule) in &config.cluster_rules {
        let parts = rule.spec.as_ref().map(|spec| (&spec.destination_ref, spec.rules.as_slice()));
        rules.plan((ConfigKind::ClusterWatchRule, id), parts, cluster_scope);
    }
    let mut desired = rules.desired;
    desired.claims = claims(&desired.routes);
    name_claims(&mut desired);
    desired
}

fn check_repo(spec: &GitRepoConfig) -> Result<(), Problem> {
    check_repo_url(&spec.repo_url)?;
    if spec.allowed_branches.is_empty() {
        return Err(Problem::new(Reason::InvalidSpec, "spec.allowedBranches is empty: name at least one"));
    }
    for pattern in &spec.allowed_branches {
        Glob::new(pattern).map_err(|why| Problem::new(Reason::InvalidSpec, format!("spec.allowedBranches: {why}")))?;
    }
    Ok(())
}

/// The older of two that overlap is in force; a tie is decided by name.
fn plan_destinations(config: &ConfigSet, options: PlanOptions, desired: &mut Desired) {
    let mut by_age: Vec<_> = config.destinations.iter().collect();
    by_age.sort_by_key(|(id, destination)| (destination.meta.created.clone(), (*id).clone()));
    let mut taken: Vec<(String, String, String, Id)> = Vec::new();
    for (id, destination) in by_age {
        let planned = check_destination(id, destination, config, desired, options).and_then(|plan| {
            let place = (remote_name(&plan.repo_spec.repo_url), plan.spec.branch.clone());
            let overlaps = taken.iter().find(|(remote, branch, folder, _)| {
                (remote, branch) == (&place.0, &place.1) && folders_overlap(folder, &plan.spec.base_folder)
            });
            if let Some((_, branch, folder, other)) = overlaps {
                let message = format!(
                    "spec.baseFolder `{}` overlaps `{folder}` of GitDestination {other}, which is older, on branch \
                     `{branch}` of the same repository: choose another folder",
                    plan.spec.base_folder
                );
                return Err(Problem::new(Reason::FolderOverlaps, message));
            }
            taken.push((place.0, place.1, plan.spec.base_folder.clone(), id.clone()));
            Ok(plan)
        });
        desired.destinations.insert(id.clone(), planned);
    }
}

fn check_destination(
    id: &Id,
    destination: &Configured<GitDestination>,
    config: &ConfigSet,
    desired: &Desired,
    options: PlanOptions,
) -> Result<DestinationPlan, Problem> {
    let spec = destination.spec.clone()?;
    check_branch(&spec.branch)?;
    check_base_folder(&spec.base_folder)?;
    let repo = target(&spec.repo_ref, &id.namespace, "spec.repoRef", options)?;
    let found = config.repos.get(&repo).and_then(|repo| repo.spec.as_ref().ok());
    let Some(repo_spec) = found.cloned() else {
        let message = format!("GitRepoConfig {repo} does not exist: create it, or correct spec.repoRef");
        return Err(Problem::new(Reason::RepoConfigNotFound, message));
    };
    if let Some(Err(problem)) = desired.repos.get(&repo) {
        let message = format!("GitRepoConfig {repo}: {}", problem.message);
        return Err(Problem::new(Reason::RepoConfigNotReady, message));
    }
    let allows = |pattern: &String| Glob::new(pattern).is_ok_and(|glob| glob.matches(&spec.branch));
    if !repo_spec.allowed_branches.iter().any(allows) {
        let allowed = repo_spec.allowed_branches.join(", ");
        let message = format!("spec.branch `{}` is not within allowedBranches of {repo} ({allowed})", spec.branch);
        return Err(Problem::new(Reason::BranchNotAllowed, message));
    }
    if spec.encryption.as_ref().is_some_and(|encryption| encryption.recipients.is_empty()) {
        let message = "spec.encryption.recipients is empty: name at least one age recipient (age1…)";
        return Err(Problem::new(Reason::EncryptionInvalid, message));
    }
    Ok(DestinationPlan { repo, repo_spec, spec })
}

fn target(reference: &NamespacedRef, own: &str, field: &str, options: PlanOptions) -> Result<Id, Problem> {
    let namespace = reference.namespace.as_deref().unwrap_or(own);
    if namespace.is_empty() {
        return Err(Problem::new(Reason::InvalidSpec, format!("{field}.namespace is required in a ClusterWatchRule")));
    }
    if !options.cross_namespace && !own.is_empty() && namespace != own {
        let message = format!("{field}.namespace `{namespace}` is another one, which this operator does not allow");
        return Err(Problem::new(Reason::CrossNamespaceRefused, message));
    }
    Ok(Id::new(namespace, &reference.name))
}

fn cluster_scope(rule: &Rule) -> Result<RuleScope, Problem> {
    rule.scope.ok_or_else(|| Problem::new(Reason::InvalidRule, "rules[].scope is required: Cluster or Namespaced"))
}

/// What rules are planned with, and what has come of it.
struct RulePlanner<'p> {
    catalog: &'p Catalog,
    options: PlanOptions,
    desired: Desired,
}

impl RulePlanner<'_> {
    fn plan(
        &mut self,
        (kind, id): (ConfigKind, &Id),
        parts: Result<(&NamespacedRef, &[Rule]), &Problem>,
        scope: impl Fn(&Rule) -> Result<RuleScope, Problem>,
    ) {
        let mut verdict = RuleVerdict::default();
        let target = parts.map_err(Clone::clone).and_then(|(reference, rules)| {
            let destination = target(reference, &id.namespace, "spec.destinationRef", self.options)?;
            check_target(&destination, &self.desired)?;
            Ok((destination, rules))
        });
        match target {
            Ok((destination, rules)) => {
                // A namespaced rule is bounded to its own namespace; a cluster rule has none.
                let namespace = (!id.namespace.is_empty()).then_some(id.namespace.as_str());
                for rule in rules {
                    match scope(rule) {
                        Ok(scope) => self.select((rule, scope), &destination, namespace, &mut verdict),
                        Err(problem) => verdict.problems.push(problem),
                    }
                }
                verdict.destination = Some(destination);
            }
            Err(problem) => verdict.problems.push(problem),
        }
        self.desired.rules.insert((kind, id.clone()), verdict);
    }

    fn select(
        &mut self,
        (rule, scope): (&Rule, RuleScope),
        destination: &Id,
        namespace: Option<&str>,
        verdict: &mut RuleVerdict,
    ) {
        let resolved = resolve(rule, scope, self.options.omitted, self.catalog);
        for (of, selected) in resolved.selected {
            self.desired.routes.add(destination, &of, namespace, selected.operations);
            verdict.claims.insert(ClaimId { of, namespace: namespace.map(Into::into) });
        }
        verdict.waiting.extend(resolved.waiting);
        verdict.problems.extend(resolved.problems);
    }
}

fn check_target(destination: &Id, desired: &Desired) -> Result<(), Problem> {
    match desired.destinations.get(destination) {
        Some(Ok(_)) => Ok(()),
        Some(Err(problem)) => {
            let message = format!("GitDestination {destination}: {}", problem.message);
            Err(Problem::new(Reason::DestinationNotReady, message))
        }
        None => {
            let message = format!("GitDestination {destination} does not exist: create it, or correct destinationRef");
            Err(Problem::new(Reason::DestinationNotFound, message))
        }
    }
}

/// A watch of all namespaces makes those of single ones superfluous.
fn claims(routes: &Routes) -> BTreeSet<ClaimId> {
    let mut claims = BTreeSet::new();
    for of in routes.types() {
        let everywhere = routes.scopes(of).any(|scope| scope.is_none());
        if everywhere {
            claims.insert(ClaimId { of: of.clone(), namespace: None });
            continue;
        }
        let namespaces = routes.scopes(of).flatten();
        claims.extend(namespaces.map(|namespace| ClaimId { of: of.clone(), namespace: Some(namespace.into()) }));
    }
    claims
}

/// Verdicts name the watch that serves them.
fn name_claims(desired: &mut Desired) {
    let rules = std::mem::take(&mut desired.rules);
    desired.rules = rules
        .into_iter()
        .map(|(rule, mut verdict)| {
            let named = verdict.claims.iter().map(|claim| desired.claim(&claim.of, claim.namespace.as_deref()));
            verdict.claims = named.collect();
            (rule, verdict)
        })
        .collect();
}
