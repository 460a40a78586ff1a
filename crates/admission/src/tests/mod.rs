//! Pushes into a small world: a store in memory that applies admitted plans.

mod cases;
mod definitions;
mod namespaces;
mod simulation;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt::Write;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::json;
use tidegate_model::kinds::KindSet;
use tidegate_model::{GroupResource, Object, ObjectKey};

use crate::*;

pub struct World {
    pub kinds: KindSet,
    pub objects: BTreeMap<ObjectKey, Arc<Object>>,
    /// Of whoever pushes.
    pub rules: Rules,
    /// What is in force of each repository: its rules and its tree.
    trees: BTreeMap<Arc<str>, (Rules, Files)>,
    uids: usize,
}

pub type Files = BTreeMap<String, String>;

/// A repository's view of the world.
struct Seen<'w>(&'w World);

impl State for Seen<'_> {
    type Error = Infallible;

    fn current(&self, key: &ObjectKey) -> Result<Option<Arc<Object>>, Infallible> {
        Ok(self.0.objects.get(key).cloned())
    }

    fn defined_at(&self, path: &str) -> Result<Vec<ObjectKey>, Infallible> {
        let here = Provenance { repository: &self.0.rules.repository, path };
        let defined = self.0.objects.iter().filter(|(_, object)| Provenance::of(object) == Some(here));
        Ok(defined.map(|(key, _)| key.clone()).collect())
    }

    fn count(&self, resource: &GroupResource, namespace: Option<&str>) -> Result<u64, Infallible> {
        let fits = |key: &&ObjectKey| {
            key.resource == *resource && namespace.is_none_or(|name| key.namespace.as_deref() == Some(name))
        };
        Ok(self.0.objects.keys().filter(fits).count() as u64)
    }
}

impl World {
    /// With the namespace `default`, as after the first start.
    pub fn new() -> Self {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "uid": "uid-0", "generation": 1}});
        let key = ObjectKey::new(GroupResource::new("", "namespaces"), None, "default");
        let objects = [(key, Arc::new(Object::from_value(namespace).unwrap()))].into();
        let rules = Rules::unrestricted("default", "all");
        Self { kinds: KindSet::builtin(), objects, rules, trees: BTreeMap::new(), uids: 0 }
    }

    /// What happened, a line each, or the diagnostics.
    pub fn push(&mut self, files: &[(&str, &str)], removed: &[&str]) -> String {
        let texts = files.iter().map(|(path, text)| File { path, bytes: text.as_bytes() }).collect();
        let mut change = Change { files: texts, removed: removed.to_vec(), ..Change::default() };
        let Ok(needs) = needs(&self.kinds, &Seen(self), &self.rules, &change);
        change.concerned = self.concerned(&needs, &change.paths().collect());
        let Ok(verdict) = plan(&self.kinds, &Seen(self), &self.rules, &change);
        match verdict {
            Verdict::Reject(diagnostics) => diagnostics.iter().map(|diagnostic| format!("! {diagnostic}\n")).collect(),
            Verdict::Admit(plan) => {
                self.remember(files, removed);
                self.apply(plan)
            }
        }
    }

    /// The files that a plan wants to see, but for those that are pushed.
    fn concerned<'w>(&'w self, needs: &Needs, touched: &BTreeSet<&str>) -> Vec<Concerned<'w>> {
        let concerned = self.objects.iter().filter(|(key, _)| needs.kinds.contains(&key.resource));
        let sources: BTreeSet<(&str, &str)> = concerned
            .filter_map(|(_, object)| Provenance::of(object))
            .map(|source| (source.repository, source.path))
            .collect();
        let is_one = |repository: &Arc<str>, path: &str| {
            let is_wanted = sources.contains(&(&**repository, path)) || needs.repositories.contains(repository);
            is_wanted && (*repository != self.rules.repository || !touched.contains(path))
        };
        let concerned = |(name, (rules, tree)): (&Arc<str>, &'w (Rules, Files))| {
            let files = tree.iter().filter(|(path, _)| is_one(name, path));
            Concerned { rules, files: files.map(|(path, text)| File { path, bytes: text.as_bytes() }).collect() }
        };
        self.trees.iter().map(concerned).collect()
    }

    fn remember(&mut self, files: &[(&str, &str)], removed: &[&str]) {
        let rules = self.rules.clone();
        let (_, tree) = self.trees.entry(rules.repository.clone()).or_insert((rules, Files::new()));
        tree.extend(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())));
        tree.retain(|path, _| !removed.contains(&&**path));
    }

    pub fn is_terminating(&self, namespace: &str) -> bool {
        let found = self.objects.get(&crate::places::namespace_key(namespace));
        found.is_some_and(|object| object.deletion_timestamp().is_some())
    }

    /// What their controller does: a terminating namespace goes when it is
    /// empty.
    pub fn finish_namespaces(&mut self) {
        let inside: BTreeSet<Arc<str>> = self.objects.keys().filter_map(|key| key.namespace.clone()).collect();
        let is_done = |key: &ObjectKey, object: &Object| {
            crate::places::is_namespace(key) && object.deletion_timestamp().is_some() && !inside.contains(&key.name)
        };
        self.objects.retain(|key, object| !is_done(key, object));
    }

    pub fn edit(&mut self, name: &str, edit: impl FnOnce(&mut Object)) {
        let object = self.objects.iter_mut().find(|(key, _)| &*key.name == name).unwrap().1;
        edit(Arc::make_mut(object));
    }

    fn apply(&mut self, plan: Plan) -> String {
        let mut log: String = plan.warnings.iter().map(|warning| format!("? {warning}\n")).collect();
        let now = DateTime::<Utc>::UNIX_EPOCH;
        for put in plan.puts {
            self.uids += 1;
            let uid = format!("uid-{}", self.uids);
            let owner = match &put.cause {
                Cause::Definition { owner: Some(owner), .. } => owner.clone(),
                _ => self.rules.repository.clone(),
            };
            let source = Provenance { repository: &owner, path: &put.place.path };
            let stamp = Stamp { now, new_uid: &uid, source, change: LastChange::default() };
            let (what, next) =
                match next_object(&put.desired, self.objects.get(&put.key).map(|object| &**object), &stamp) {
                    Outcome::Create(next) => ("create", next),
                    Outcome::Update(next) => ("update", next),
                    Outcome::Unchanged => {
                        writeln!(log, "unchanged {}", put.key).unwrap();
                        continue;
                    }
                    Outcome::Terminating => panic!("the plan lets pass what is being deleted: {}", put.key),
                };
            writeln!(
                log,
                "{what} {} generation {} from {}:{}",
                put.key,
                next.generation(),
                put.place.path,
                put.place.line
            )
            .unwrap();
            self.objects.insert(put.key, Arc::new(next));
        }
        for key in plan.deletes {
            match delete_object(&self.objects[&key], now) {
                Deletion::Remove => drop(self.objects.remove(&key)),
                Deletion::Stamp(stamped) => drop(self.objects.insert(key.clone(), Arc::new(stamped))),
                Deletion::Waiting => panic!("the plan deletes twice: {key}"),
            }
            writeln!(log, "delete {key}").unwrap();
        }
        for key in plan.drains {
            let drained = drain_namespace(&self.objects[&key], now).expect("the plan drains what is there");
            self.objects.insert(key.clone(), Arc::new(drained));
            writeln!(log, "drain {key}").unwrap();
        }
        self.kinds = plan.kinds;
        log
    }
}

pub fn file(kind: &str, name: &str, spec: &str) -> String {
    format!("apiVersion: catalog.gitstore.dev/v1beta1\nkind: {kind}\nmetadata:\n  name: {name}\nspec: {spec}\n")
}

pub fn namespace(name: &str) -> String {
    format!("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n")
}

/// A definition of `Widget`s of `example.com`, with `scope`.
pub fn widgets(scope: &str, versions: &[&str]) -> String {
    let version = |(at, name): (usize, &&str)| {
        format!(
            "  - {{name: {name}, served: true, storage: {}, schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, properties: {{size: {{type: integer}}}}}}}}}}}}}}\n",
            at == 0
        )
    };
    let versions: String = versions.iter().enumerate().map(version).collect();
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: widgets.example.com\nspec:\n  group: example.com\n  scope: {scope}\n  names: {{kind: Widget, plural: widgets}}\n  versions:\n{versions}"
    )
}

pub fn widget(name: &str, version: &str) -> String {
    format!("apiVersion: example.com/{version}\nkind: Widget\nmetadata:\n  name: {name}\nspec:\n  size: 1\n")
}
