//! The kinds that ship inside the binary, as definitions like anybody's.
//!
//! What a definition cannot say is in the table below: the core group has no
//! name, some names follow another syntax, and the kind of definitions checks
//! what it defines.

use std::sync::LazyLock;

use super::{Kind, KindSet, NameSyntax};
use crate::{FieldError, Object, yaml};

macro_rules! definitions {
    ($($name:literal: $syntax:ident),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../builtin/", $name, ".yaml")), NameSyntax::$syntax)),*]
    };
}

const DEFINITIONS: &[(&str, &str, NameSyntax)] = definitions! {
    "namespaces": Label,
    "serviceaccounts": Subdomain,
    "customresourcedefinitions": Subdomain,
    "clusterroles": PathSegment,
    "clusterrolebindings": PathSegment,
    "roles": PathSegment,
    "rolebindings": PathSegment,
    "leases": Subdomain,
    "repositories": Subdomain,
    "reconcilehooks": Subdomain,
    "products": Subdomain,
    "productvariants": Subdomain,
    "categorytaxonomies": Subdomain,
    "collections": Subdomain,
    "files": Subdomain,
};

static KINDS: LazyLock<KindSet> = LazyLock::new(|| KindSet::of(DEFINITIONS.iter().map(load)));

pub(super) fn kinds() -> &'static KindSet {
    &KINDS
}

fn load((name, text, name_syntax): &(&str, &str, NameSyntax)) -> Kind {
    let definition = yaml::parse(text).unwrap_or_else(|error| panic!("built-in {name} is not YAML: {error}"));
    let root = definition.as_object().expect("a definition is an object");
    let kind = Kind::from_builtin(root).unwrap_or_else(|errors| panic!("built-in {name}: {errors:?}"));
    let extra = (*name == "customresourcedefinitions").then_some(check_definition as fn(&Object) -> _);
    Kind { name_syntax: *name_syntax, extra, ..kind }
}

fn check_definition(crd: &Object) -> Vec<FieldError> {
    Kind::from_crd(crd).err().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Scope;
    use crate::schema::Schema;

    #[test]
    fn every_definition_loads_and_is_found() {
        let table = [
            ("v1", "Namespace", Scope::Cluster, true),
            ("v1", "ServiceAccount", Scope::Namespaced, true),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition", Scope::Cluster, true),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", Scope::Cluster, false),
            ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", Scope::Cluster, false),
            ("rbac.authorization.k8s.io/v1", "Role", Scope::Namespaced, false),
            ("rbac.authorization.k8s.io/v1", "RoleBinding", Scope::Namespaced, false),
            ("coordination.k8s.io/v1", "Lease", Scope::Namespaced, false),
            ("tidegate.dev/v1", "Repository", Scope::Namespaced, true),
            ("tidegate.dev/v1", "ReconcileHook", Scope::Cluster, true),
            ("catalog.gitstore.dev/v1beta1", "Product", Scope::Namespaced, true),
            ("catalog.gitstore.dev/v1beta1", "ProductVariant", Scope::Namespaced, true),
            ("catalog.gitstore.dev/v1beta1", "CategoryTaxonomy", Scope::Namespaced, true),
            ("catalog.gitstore.dev/v1beta1", "Collection", Scope::Namespaced, true),
            ("catalog.gitstore.dev/v1beta1", "File", Scope::Namespaced, true),
        ];
        let kinds = KindSet::builtin();
        assert_eq!(kinds.len(), table.len());
        for (api_version, name, scope, has_status) in table {
            let (kind, version) = kinds.by_gvk(api_version, name).expect(name);
            assert_eq!((kind.scope, version.has_status), (scope, has_status), "{name}");
            assert_eq!(kind.api_version(version), api_version);
            assert_eq!(version.has_status, has_status_schema(&version.schema), "{name}");
        }
    }

    fn has_status_schema(schema: &Schema) -> bool {
        schema.root().property("status").is_some()
    }

    #[test]
    fn markdown_kinds_declare_a_body() {
        for kind in KindSet::builtin().iter() {
            let is_catalogue = &*kind.resource.group == "catalog.gitstore.dev";
            assert_eq!(kind.storage_version().has_body(), is_catalogue, "{}", kind.resource);
        }
    }
}
