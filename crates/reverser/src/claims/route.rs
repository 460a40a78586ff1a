//! Where an object goes.

use std::collections::{BTreeMap, HashMap};

use super::catalog::TypeId;
use super::resolve::Operations;
use crate::config::Id;

/// A destination's share of a type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selection {
    /// `None` is every namespace, and the only possibility for cluster scope.
    pub namespace: Option<String>,
    pub operations: Operations,
}

/// One destination of an object, and what of it is wanted there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route<'r> {
    pub destination: &'r Id,
    pub operations: Operations,
}

/// By type, so that routing costs what wants the type, not what exists.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Routes {
    types: HashMap<TypeId, BTreeMap<Id, Vec<Selection>>>,
}

impl Routes {
    /// Selections of the same namespace add up.
    pub fn add(&mut self, destination: &Id, id: &TypeId, namespace: Option<&str>, operations: Operations) {
        let selections = self.types.entry(id.clone()).or_default().entry(destination.clone()).or_default();
        match selections.iter_mut().find(|selection| selection.namespace.as_deref() == namespace) {
            Some(known) => known.operations = known.operations.or(operations),
            None => selections.push(Selection { namespace: namespace.map(Into::into), operations }),
        }
    }

    /// Every destination that selects an object of this type and namespace.
    pub fn of<'r>(&'r self, id: &TypeId, namespace: Option<&str>) -> Vec<Route<'r>> {
        let Some(destinations) = self.types.get(id) else { return Vec::new() };
        destinations.iter().filter_map(|(destination, selections)| route(destination, selections, namespace)).collect()
    }

    /// What this destination wants of an object; `None` if it does not select it.
    pub fn operations(&self, destination: &Id, id: &TypeId, namespace: Option<&str>) -> Option<Operations> {
        let selections = self.types.get(id)?.get(destination)?;
        Some(route(destination, selections, namespace)?.operations)
    }

    pub fn types(&self) -> impl Iterator<Item = &TypeId> {
        self.types.keys()
    }

    /// Each namespace in which somebody selects the type; `None` is everywhere.
    pub fn scopes(&self, id: &TypeId) -> impl Iterator<Item = Option<&str>> {
        let destinations = self.types.get(id).into_iter().flat_map(BTreeMap::values);
        destinations.flatten().map(|selection| selection.namespace.as_deref())
    }

    /// Destinations to which a watch of the type in this namespace, or in all,
    /// tells something.
    pub fn told_by(&self, id: &TypeId, namespace: Option<&str>) -> impl Iterator<Item = &Id> {
        let destinations = self.types.get(id).into_iter().flatten();
        let is_told = move |selections: &[Selection]| {
            namespace.is_none() || selections.iter().any(|selection| selection.covers(namespace))
        };
        destinations.filter(move |(_, selections)| is_told(selections)).map(|(id, _)| id)
    }

    /// The types and namespaces of one destination.
    pub fn of_destination(&self, destination: &Id) -> impl Iterator<Item = (&TypeId, &Selection)> {
        self.types.iter().flat_map(move |(id, destinations)| {
            destinations.get(destination).into_iter().flatten().map(move |selection| (id, selection))
        })
    }

    /// Whether an admission of this resource may concern anybody; versions
    /// are ignored, because people write in any that is served.
    pub fn claims(&self, group: &str, resource: &str, namespace: Option<&str>) -> bool {
        self.types.iter().any(|(id, destinations)| {
            id.group == group
                && id.resource == resource
                && destinations.values().flatten().any(|selection| selection.covers(namespace))
        })
    }
}

impl Selection {
    fn covers(&self, namespace: Option<&str>) -> bool {
        self.namespace.is_none() || self.namespace.as_deref() == namespace
    }
}

fn route<'r>(destination: &'r Id, selections: &[Selection], namespace: Option<&str>) -> Option<Route<'r>> {
    let mut covering = selections.iter().filter(|selection| selection.covers(namespace)).peekable();
    covering.peek()?;
    let operations = covering.fold(Operations::default(), |sum, selection| sum.or(selection.operations));
    Some(Route { destination, operations })
}
