//! Get and list.

use std::sync::Arc;

use tidegate_model::kinds::Scope;
use tidegate_model::{FieldSelector, LabelSelector, ResourceVersion, SelectableField};
use tidegate_store::{ContinueToken, ListRequest, Selection};

use super::error::{ApiError, Code};
use super::kind_ref::{KindRef, check_length};
use super::{Api, Item};
use crate::identity::{Attributes, Session, Verb};

/// As a caller writes it; parsed by [`ListQuery::selection`].
#[derive(Clone, Default, Debug)]
pub struct ListQuery {
    pub namespace: Option<String>,
    pub label_selector: Option<String>,
    pub field_selector: Option<String>,
    pub first: Option<u64>,
    pub after: Option<String>,
}

#[derive(Debug)]
pub struct ListPage {
    pub version: ResourceVersion,
    pub items: Vec<Item>,
    pub end_cursor: Option<String>,
    pub remaining: Option<u64>,
}

impl Api {
    pub fn get(
        &self,
        session: &Session,
        kind: &KindRef,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Item>, ApiError> {
        let key = kind.key(namespace, name)?;
        self.authorize(session, &Attributes::new(Verb::Get, &key.resource).namespace(namespace).name(name))?;
        let found = self.0.store.view().get(&key)?;
        Ok(found.map(|stored| Item::serve(kind, stored)))
    }

    pub async fn list(&self, session: &Session, kind: &KindRef, query: ListQuery) -> Result<ListPage, ApiError> {
        let selection = selection(
            kind,
            query.namespace.as_deref(),
            query.label_selector.as_deref(),
            query.field_selector.as_deref(),
        )?;
        self.authorize(session, &attributes(Verb::List, &selection))?;
        let request = self.list_request(selection, &query)?;
        let _permit = self
            .0
            .list_permits
            .acquire()
            .await
            .map_err(|_| ApiError::new(Code::Unavailable, "the server is shutting down"))?;
        let store = self.0.store.clone();
        let page = tokio::task::spawn_blocking(move || store.list(&request)).await.map_err(|error| {
            ApiError::new(Code::Internal, "the list failed: the server's log has the reason").because(error.to_string())
        })??;
        Ok(ListPage {
            version: page.version,
            items: page.items.into_iter().map(|stored| Item::serve(kind, stored)).collect(),
            end_cursor: page.next.map(|token| token.to_string()),
            remaining: page.remaining,
        })
    }

    fn list_request(&self, selection: Selection, query: &ListQuery) -> Result<ListRequest, ApiError> {
        let options = &self.0.options;
        if query.first == Some(0) {
            return Err(ApiError::bad_request("`first` must be at least 1"));
        }
        let first = query.first.map_or(options.page_objects_max, |first| usize::try_from(first).unwrap_or(usize::MAX));
        let token = query.after.as_deref().map(str::parse::<ContinueToken>).transpose()?;
        Ok(ListRequest {
            selection,
            limit: Some(first.min(options.page_objects_max)),
            bytes_max: Some(options.page_bytes_max),
            token,
        })
    }
}

/// Which objects the arguments of a list or a watch mean.
pub(super) fn selection(
    kind: &KindRef,
    namespace: Option<&str>,
    labels: Option<&str>,
    fields: Option<&str>,
) -> Result<Selection, ApiError> {
    if kind.kind.scope == Scope::Cluster && namespace.is_some() {
        return Err(kind.not_namespaced());
    }
    let labels: LabelSelector =
        labels.unwrap_or_default().parse().map_err(|error| ApiError::bad_request(format!("labelSelector: {error}")))?;
    let fields: FieldSelector =
        fields.unwrap_or_default().parse().map_err(|error| ApiError::bad_request(format!("fieldSelector: {error}")))?;
    let mut selection = Selection::all(kind.kind.resource.clone());
    selection.labels = labels;
    selection.namespace = namespace.map(Into::into);
    narrow(&mut selection, fields)?;
    check_length("namespace", selection.namespace.as_deref())?;
    check_length("metadata.name", selection.name.as_deref())?;
    Ok(selection)
}

/// What is required exactly becomes part of the key range; the rest is left to
/// the store's filter.
fn narrow(selection: &mut Selection, fields: FieldSelector) -> Result<(), ApiError> {
    let contradiction =
        || ApiError::bad_request("fieldSelector: `metadata.namespace` contradicts the `namespace` argument");
    if let Some(wanted) = fields.exact(SelectableField::Namespace) {
        match &selection.namespace {
            Some(namespace) if &**namespace != wanted => return Err(contradiction()),
            _ => selection.namespace = Some(wanted.into()),
        }
    }
    selection.name = fields.exact(SelectableField::Name).map(Arc::from);
    selection.fields = fields;
    Ok(())
}

/// A selection of one name may be granted by name.
pub(super) fn attributes(verb: Verb, selection: &Selection) -> Attributes {
    let attributes = Attributes::new(verb, &selection.resource).namespace(selection.namespace.as_deref());
    match &selection.name {
        Some(name) => attributes.name(name),
        None => attributes,
    }
}
