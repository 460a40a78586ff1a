//! The GraphQL types as plain data, derived from the kinds in force.
//!
//! Both the schema that clients introspect and the compiled selections that
//! encode answers come from this one description, so they cannot disagree.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tidegate_model::kinds::{Kind, KindVersion};

use super::fixed;
use super::kind_types::KindTypes;
use super::names::{self, Taken};

pub type TypeName = Arc<str>;

#[derive(Clone, Debug)]
pub enum FieldType {
    Scalar(&'static str),
    Enum(&'static str),
    Object(TypeName),
}

#[derive(Clone, Debug)]
pub struct FieldDef {
    /// The member of the JSON object that this field reads.
    pub json_key: Arc<str>,
    pub ty: FieldType,
    /// `[[T]]` has two.
    pub lists: u8,
    pub required: bool,
    pub description: Option<Arc<str>>,
}

impl FieldDef {
    pub fn new(json_key: &str, ty: FieldType) -> Self {
        Self { json_key: json_key.into(), ty, lists: 0, required: false, description: None }
    }

    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    #[must_use]
    pub fn list(mut self) -> Self {
        self.lists += 1;
        self
    }

    #[must_use]
    pub fn describe(mut self, text: &str) -> Self {
        self.description = Some(text.into());
        self
    }
}

#[derive(Clone, Debug)]
pub struct TypeDef {
    pub name: TypeName,
    pub description: Option<Arc<str>>,
    pub fields: BTreeMap<String, FieldDef>,
}

impl TypeDef {
    pub fn new(name: &str, fields: impl IntoIterator<Item = (&'static str, FieldDef)>) -> Self {
        let fields = fields.into_iter().map(|(name, field)| (name.to_owned(), field)).collect();
        Self { name: name.into(), description: None, fields }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Root {
    Query,
    Mutation,
    Subscription,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    Get,
    List,
    Watch,
    UpdateStatus,
    UpdateFinalizers,
    Whoami,
    Kinds,
    CreateToken,
    RevokeToken,
    SyncRepository,
    Controllers,
    Quarantine,
    ControllerState,
    ControllerStateRows,
    AcquireLease,
    RenewLease,
    ReleaseLease,
    UpdateControllerState,
    ReleaseQuarantine,
}

impl Operation {
    pub fn root(self) -> Root {
        match self {
            Self::Get
            | Self::List
            | Self::Whoami
            | Self::Kinds
            | Self::Controllers
            | Self::Quarantine
            | Self::ControllerState
            | Self::ControllerStateRows => Root::Query,
            Self::Watch => Root::Subscription,
            Self::UpdateStatus
            | Self::UpdateFinalizers
            | Self::CreateToken
            | Self::RevokeToken
            | Self::SyncRepository
            | Self::AcquireLease
            | Self::RenewLease
            | Self::ReleaseLease
            | Self::UpdateControllerState
            | Self::ReleaseQuarantine => Root::Mutation,
        }
    }

    /// For metrics: few, fixed words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::UpdateStatus => "update_status",
            Self::UpdateFinalizers => "update_finalizers",
            Self::Whoami => "whoami",
            Self::Kinds => "kinds",
            Self::CreateToken => "create_token",
            Self::RevokeToken => "revoke_token",
            Self::SyncRepository => "sync_repository",
            Self::Controllers => "controllers",
            Self::Quarantine => "quarantine",
            Self::ControllerState => "controller_state",
            Self::ControllerStateRows => "controller_state_rows",
            Self::AcquireLease => "acquire_lease",
            Self::RenewLease => "renew_lease",
            Self::ReleaseLease => "release_lease",
            Self::UpdateControllerState => "update_controller_state",
            Self::ReleaseQuarantine => "release_quarantine",
        }
    }
}

/// The kind that a typed root field is about.
#[derive(Clone, Debug)]
pub struct Target {
    pub api_version: Arc<str>,
    pub kind: Arc<str>,
    pub namespaced: bool,
}

#[derive(Clone, Debug)]
pub struct RootField {
    pub name: String,
    pub operation: Operation,
    /// `None` for the generic fields, whose arguments name the kind.
    pub target: Option<Target>,
    pub result: FieldDef,
    pub description: String,
}

/// Everything that the schema has.
#[derive(Default)]
pub struct Types {
    pub objects: BTreeMap<TypeName, TypeDef>,
    pub roots: HashMap<(Root, String), RootField>,
}

impl Types {
    /// `kinds` in the order in which they came into force: the first of two
    /// kinds with one name keeps the short name, the second is prefixed by its
    /// group.
    pub fn build(kinds: &[Arc<Kind>]) -> Self {
        let mut types = Self::default();
        let mut taken = Taken::default();
        for name in fixed::RESERVED_TYPES {
            taken.claim((*name).to_owned());
        }
        fixed::add(&mut types);
        // Kinds claim their names before any nested type may take one.
        let named: Vec<_> =
            kinds.iter().filter_map(|kind| Some((claim_kind(&mut taken, kind), kind, preferred(kind)?))).collect();
        for (name, kind, version) in named {
            KindTypes { types: &mut types, taken: &mut taken, kind, version }.add(&name);
        }
        types
    }

    pub fn add(&mut self, def: TypeDef) {
        self.objects.insert(def.name.clone(), def);
    }

    pub fn add_root(&mut self, field: RootField) {
        self.roots.insert((field.operation.root(), field.name.clone()), field);
    }

    pub fn root(&self, root: Root, name: &str) -> Option<&RootField> {
        self.roots.get(&(root, name.to_owned()))
    }
}

/// The version that the typed fields speak: the stored one if it is served.
fn preferred(kind: &Kind) -> Option<&KindVersion> {
    let storage = kind.versions.get(kind.storage).filter(|version| version.served);
    storage.or_else(|| kind.versions.iter().find(|version| version.served))
}

fn claim_kind(taken: &mut Taken, kind: &Kind) -> String {
    let short = names::upper_camel(&names::field_name(&kind.kind));
    let free = |name: &str| {
        [name.to_owned(), format!("{name}Connection"), format!("{name}WatchEvent")].iter().all(|n| taken.is_free(n))
    };
    let name = if free(&short) { short } else { format!("{}{short}", names::group_word(&kind.resource.group)) };
    let name = taken.claim(name);
    taken.claim(format!("{name}Connection"));
    taken.claim(format!("{name}WatchEvent"));
    name
}
