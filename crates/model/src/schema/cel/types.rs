//! What is known of a value before it is there: its place in the schema.

use super::super::node::{Additional, Node, NodeKind};
use super::expr::Field;

/// What is known of a value before it is there.
#[derive(Clone, Copy)]
pub(super) enum Type<'n> {
    Unknown,
    Node(&'n Node),
    /// A whole object, which has more than its schema says.
    Object(&'n Node),
}

/// The type of a field, or why there is no such field.
pub(super) fn field_type<'n>(of: Type<'n>, field: &Field) -> Result<Type<'n>, String> {
    let (node, is_object) = match of {
        Type::Unknown => return Ok(Type::Unknown),
        Type::Node(node) => (node, node.embedded_resource),
        Type::Object(node) => (node, true),
    };
    let NodeKind::Object(object) = &node.kind else {
        return match node.kind {
            NodeKind::Any => Ok(Type::Unknown),
            _ => Err(format!("undefined field '{}': the value is of type {}", field.written, node.type_name())),
        };
    };
    if is_object && matches!(&*field.unescaped, "apiVersion" | "kind" | "metadata") {
        return Ok(Type::Unknown);
    }
    match (object.properties.get(&*field.unescaped), &object.additional) {
        (Some(child), _) | (None, Additional::Of(child)) => Ok(Type::Node(child)),
        (None, Additional::Unspecified) if !node.preserve_unknown => {
            Err(format!("undefined field '{}'", field.written))
        }
        (None, _) => Ok(Type::Unknown),
    }
}

/// The type of a list's items or of a map's values.
pub(super) fn element_type(of: Type) -> Type {
    let (Type::Node(node) | Type::Object(node)) = of else { return Type::Unknown };
    match &node.kind {
        NodeKind::Array(array) => Type::Node(&array.items),
        NodeKind::Object(object) => match &object.additional {
            Additional::Of(child) => Type::Node(child),
            Additional::Unspecified | Additional::Any => Type::Unknown,
        },
        _ => Type::Unknown,
    }
}

/// Kubernetes' escaping of names that CEL cannot spell: `__namespace__`,
/// `a__dash__b`, `a__dot__b`, `a__slash__b`, `a__underscores__b`.
pub(super) fn unescape(name: &str) -> String {
    const RESERVED: [&str; 21] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    let word = name.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"));
    if let Some(word) = word.filter(|word| RESERVED.contains(word)) {
        return word.to_owned();
    }
    name.replace("__underscores__", "\0")
        .replace("__dot__", ".")
        .replace("__dash__", "-")
        .replace("__slash__", "/")
        .replace('\0', "__")
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn names_are_unescaped() {
        let table = [
            ("namespace", "namespace"),
            ("__namespace__", "namespace"),
            ("foo__dash__bar", "foo-bar"),
            ("a__dot__b__slash__c", "a.b/c"),
            ("x__underscores__y", "x__y"),
            ("my_field", "my_field"),
        ];
        for (escaped, plain) in table {
            assert_eq!(unescape(escaped), plain);
        }
    }
}
