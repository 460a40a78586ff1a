//! One kind's types and root fields, from its structural schema.

use std::sync::Arc;

use tidegate_model::kinds::{Kind, KindVersion, Scope};
use tidegate_model::schema::{Node, NodeKind};

use super::names::{self, Taken};
use super::types::{FieldDef, FieldType, Operation, RootField, Target, TypeDef, TypeName, Types};

/// Objects nested deeper than this are served as `JSON`: no query could reach
/// them within the depth limit anyway.
const TYPE_DEPTH_MAX: usize = 24;

pub struct KindTypes<'a> {
    pub types: &'a mut Types,
    pub taken: &'a mut Taken,
    pub kind: &'a Kind,
    pub version: &'a KindVersion,
}

impl KindTypes<'_> {
    pub fn add(mut self, name: &str) {
        self.add_object(name);
        self.add_wrappers(name);
        self.add_roots(name);
    }

    fn add_object(&mut self, name: &str) {
        let mut def = TypeDef::new(
            name,
            [
                ("apiVersion", FieldDef::new("apiVersion", FieldType::Scalar("String")).required()),
                ("kind", FieldDef::new("kind", FieldType::Scalar("String")).required()),
                ("metadata", FieldDef::new("metadata", FieldType::Object("ObjectMeta".into())).required()),
            ],
        );
        let root = self.version.schema.root();
        def.description = root.description.clone();
        for (key, node) in legal_first(root) {
            if !matches!(key, "apiVersion" | "kind" | "metadata") {
                self.add_field(&mut def, key, node, 1);
            }
        }
        self.types.add(def);
    }

    fn add_field(&mut self, def: &mut TypeDef, key: &str, node: &Node, depth: usize) {
        let mut name = names::field_name(key);
        while def.fields.contains_key(&name) {
            name.push('_');
        }
        let (ty, lists) = self.field_type(&def.name, &name, node, depth);
        let field =
            FieldDef { json_key: key.into(), ty, lists, required: false, description: node.description.clone() };
        def.fields.insert(name, field);
    }

    fn field_type(&mut self, parent: &TypeName, field: &str, node: &Node, depth: usize) -> (FieldType, u8) {
        let scalar = |name| (FieldType::Scalar(name), 0);
        match &node.kind {
            NodeKind::Array(array) => {
                let (ty, lists) = self.field_type(parent, field, &array.items, depth);
                (ty, lists + 1)
            }
            NodeKind::String => scalar("String"),
            NodeKind::Boolean => scalar("Boolean"),
            NodeKind::Number => scalar("Float"),
            NodeKind::Integer => scalar(if node.format.as_deref() == Some("int32") { "Int" } else { "Int64" }),
            NodeKind::Object(object)
                if depth < TYPE_DEPTH_MAX && !object.properties.is_empty() && !node.embedded_resource =>
            {
                (FieldType::Object(self.nested(parent, field, node, depth)), 0)
            }
            _ => scalar("JSON"),
        }
    }

    fn nested(&mut self, parent: &TypeName, field: &str, node: &Node, depth: usize) -> TypeName {
        let name = self.taken.claim(format!("{parent}{}", names::upper_camel(field)));
        let mut def =
            TypeDef { name: name.as_str().into(), description: node.description.clone(), fields: Default::default() };
        for (key, child) in legal_first(node) {
            self.add_field(&mut def, key, child, depth + 1);
        }
        let name = def.name.clone();
        self.types.add(def);
        name
    }

    fn add_wrappers(&mut self, name: &str) {
        let object = || FieldType::Object(name.into());
        self.types.add(super::fixed::connection(&format!("{name}Connection"), object()));
        self.types.add(super::fixed::watch_event(&format!("{name}WatchEvent"), object()));
    }

    fn add_roots(&mut self, name: &str) {
        let kind = self.kind;
        let single = names::lower_camel(name);
        let plural_word = match name.strip_suffix(&*kind.kind) {
            Some(prefix) => format!("{prefix}{}", names::plural_word(&kind.kind, &kind.resource.plural)),
            None => names::plural_word(name, &kind.resource.plural),
        };
        // A plural that reads like the singular (`sheep`) cannot be both.
        let plural_word =
            if names::lower_camel(&plural_word) == single { format!("{plural_word}List") } else { plural_word };
        let object = |ty: String| FieldDef::new("", FieldType::Object(ty.as_str().into()));

        self.root(single, Operation::Get, object(name.to_owned()), format!("One {name}, or null."));
        let list = object(format!("{name}Connection")).required();
        self.root(
            names::lower_camel(&plural_word),
            Operation::List,
            list,
            format!("A snapshot list of {name} objects."),
        );
        let watch = object(format!("{name}WatchEvent")).required();
        self.root(
            format!("watch{}", names::upper_camel(&plural_word)),
            Operation::Watch,
            watch,
            format!("The changes of {name} objects."),
        );
        if self.version.has_status {
            let about = format!("Merges into the status of one {name}.");
            self.root(
                format!("update{name}Status"),
                Operation::UpdateStatus,
                object(name.to_owned()).required(),
                about,
            );
        }
        let about = format!("Adds and removes finalizers of one {name}; null when that removed the object.");
        self.root(format!("update{name}Finalizers"), Operation::UpdateFinalizers, object(name.to_owned()), about);
    }

    fn root(&mut self, name: String, operation: Operation, result: FieldDef, description: String) {
        let api_version: Arc<str> = self.kind.api_version(self.version).into();
        let target =
            Target { api_version, kind: self.kind.kind.clone(), namespaced: self.kind.scope == Scope::Namespaced };
        let name = self.free_root(operation, name);
        self.types.add_root(RootField { name, operation, target: Some(target), result, description });
    }

    /// Two kinds may have distinct names and still one plural.
    fn free_root(&self, operation: Operation, mut name: String) -> String {
        while self.types.root(operation.root(), &name).is_some() {
            name.push('_');
        }
        name
    }
}

/// Properties whose names are GraphQL names, then the others: what had its
/// name first by right keeps it, whatever else is mangled to the same.
fn legal_first(node: &Node) -> Vec<(&str, &Node)> {
    let mut properties: Vec<_> =
        node.properties().into_iter().flatten().map(|(key, child)| (&**key, &**child)).collect();
    properties.sort_by_key(|(key, _)| names::field_name(key) != *key);
    properties
}
