//! The types and root fields that do not depend on any kind.

use super::types::{FieldDef, FieldType, Operation, RootField, TypeDef, Types};

/// Names that no kind may take.
pub const RESERVED_TYPES: &[&str] = &[
    "Query",
    "Mutation",
    "Subscription",
    "String",
    "Int",
    "Int64",
    "Float",
    "Boolean",
    "ID",
    "JSON",
    "Resource",
    "ResourceConnection",
    "PageInfo",
    "WatchEvent",
    "WatchEventType",
    "ObjectMeta",
    "Identity",
    "KindInfo",
    "KindColumn",
    "Token",
    "RepositorySync",
    "UpdateResourceStatusInput",
    "UpdateResourceFinalizersInput",
    "UpdateStatusInput",
    "UpdateFinalizersInput",
    "CreateTokenInput",
    "RevokeTokenInput",
    "Controller",
    "ControllerState",
    "ControllerStateRow",
    "ControllerStateChange",
    "Quarantine",
    "QuarantinedKey",
    "LeaseTerm",
    "FenceInput",
    "AcquireLeaseInput",
    "RenewLeaseInput",
    "ReleaseLeaseInput",
    "UpdateControllerStateInput",
    "ReleaseQuarantineInput",
];

pub(super) fn scalar(key: &str, name: &'static str) -> FieldDef {
    FieldDef::new(key, FieldType::Scalar(name))
}

pub(super) fn text(key: &str) -> FieldDef {
    scalar(key, "String")
}

pub(super) fn object(key: &str, name: &str) -> FieldDef {
    FieldDef::new(key, FieldType::Object(name.into()))
}

pub fn add(types: &mut Types) {
    types.add(resource());
    types.add(connection("ResourceConnection", FieldType::Object("Resource".into())));
    types.add(page_info());
    types.add(watch_event("WatchEvent", FieldType::Scalar("JSON")));
    types.add(object_meta());
    types.add(identity());
    types.add(kind_info());
    types.add(kind_column());
    types.add(token());
    types.add(repository_sync());
    super::controllers::add(types);
    for field in generic_roots() {
        types.add_root(field);
    }
}

fn generic_roots() -> Vec<RootField> {
    let root = |name: &str, operation, result, description: &str| RootField {
        name: name.into(),
        operation,
        target: None,
        result,
        description: description.into(),
    };
    vec![
        root("resource", Operation::Get, object("", "Resource"), "One object of any kind, or null."),
        root(
            "resources",
            Operation::List,
            object("", "ResourceConnection").required(),
            "A snapshot list of any kind: every page of one list is of the same resourceVersion.",
        ),
        root(
            "watchResources",
            Operation::Watch,
            object("", "WatchEvent").required(),
            "The changes of any kind, from a resourceVersion or from the current objects on.",
        ),
        root(
            "updateResourceStatus",
            Operation::UpdateStatus,
            object("", "Resource").required(),
            "Merges into the status of one object: a JSON merge patch, conditions by type. The resourceVersion is the precondition.",
        ),
        root(
            "updateResourceFinalizers",
            Operation::UpdateFinalizers,
            object("", "Resource"),
            "Adds and removes finalizers; null when removing the last one removed the object.",
        ),
        root("whoami", Operation::Whoami, object("", "Identity").required(), "Who this request's token is."),
        root("kinds", Operation::Kinds, object("", "KindInfo").required().list(), "The kinds in force."),
        root(
            "createToken",
            Operation::CreateToken,
            object("", "Token").required(),
            "A signed token for a ServiceAccount; needs `create` on `serviceaccounts/token`.",
        ),
        root(
            "revokeToken",
            Operation::RevokeToken,
            scalar("", "Boolean").required(),
            "Revokes a ServiceAccount's token before it expires, and ends its open watches; needs `delete` on `serviceaccounts/token`.",
        ),
        root(
            "syncRepository",
            Operation::SyncRepository,
            object("", "RepositorySync").required(),
            "Brings a repository up to date and says what came of it: a remote one is fetched first. Needs `sync` on `repositories`.",
        ),
    ]
}

fn resource() -> TypeDef {
    let def = TypeDef::new(
        "Resource",
        [
            ("apiVersion", text("apiVersion").required()),
            ("kind", text("kind").required()),
            ("namespace", text("namespace").describe("Null for cluster scope.")),
            ("name", text("name").required()),
            ("uid", text("uid").required()),
            ("resourceVersion", text("resourceVersion").required()),
            ("generation", scalar("generation", "Int64").required()),
            ("object", scalar("object", "JSON").required().describe("The whole object.")),
        ],
    );
    TypeDef { description: Some("An object of any kind.".into()), ..def }
}

pub fn connection(name: &str, node: FieldType) -> TypeDef {
    TypeDef::new(
        name,
        [
            (
                "resourceVersion",
                text("resourceVersion")
                    .required()
                    .describe("The version that every page of this list shows; watch from it without a gap."),
            ),
            ("nodes", FieldDef::new("nodes", node).required().list()),
            ("pageInfo", object("pageInfo", "PageInfo").required()),
            (
                "remainingCount",
                scalar("remainingCount", "Int64").describe("How many objects follow this page; null with a selector."),
            ),
        ],
    )
}

fn page_info() -> TypeDef {
    TypeDef::new(
        "PageInfo",
        [
            ("hasNextPage", scalar("hasNextPage", "Boolean").required()),
            ("endCursor", text("endCursor").describe("Pass it as `after` for the next page.")),
        ],
    )
}

pub fn watch_event(name: &str, node: FieldType) -> TypeDef {
    TypeDef::new(
        name,
        [
            ("type", FieldDef::new("type", FieldType::Enum("WatchEventType")).required()),
            ("kind", text("kind").required()),
            ("namespace", text("namespace")),
            ("name", text("name").describe("Null for a BOOKMARK.")),
            (
                "resourceVersion",
                text("resourceVersion").required().describe("Resume from here after a lost connection."),
            ),
            ("object", FieldDef::new("object", node).describe("Null for a BOOKMARK; the last state for a DELETED.")),
            (
                "initialEventsEnd",
                scalar("initialEventsEnd", "Boolean")
                    .required()
                    .describe("True on the BOOKMARK that ends the initial list."),
            ),
        ],
    )
}

fn object_meta() -> TypeDef {
    TypeDef::new(
        "ObjectMeta",
        [
            ("name", text("name").required()),
            ("namespace", text("namespace")),
            ("uid", text("uid").required()),
            ("resourceVersion", text("resourceVersion").required()),
            ("generation", scalar("generation", "Int64").required()),
            ("creationTimestamp", text("creationTimestamp").required()),
            ("deletionTimestamp", text("deletionTimestamp")),
            ("labels", scalar("labels", "JSON")),
            ("annotations", scalar("annotations", "JSON")),
            ("finalizers", text("finalizers").list()),
            ("ownerReferences", scalar("ownerReferences", "JSON").list()),
        ],
    )
}

fn identity() -> TypeDef {
    TypeDef::new(
        "Identity",
        [
            ("user", text("user").required()),
            ("groups", text("groups").required().list()),
            ("tokenId", text("tokenId")),
            ("expiresAt", text("expiresAt")),
        ],
    )
}

fn kind_info() -> TypeDef {
    TypeDef::new(
        "KindInfo",
        [
            ("apiVersion", text("apiVersion").required()),
            ("kind", text("kind").required()),
            ("group", text("group").required()),
            ("plural", text("plural").required()),
            ("singular", text("singular").required()),
            ("shortNames", text("shortNames").required().list()),
            ("namespaced", scalar("namespaced", "Boolean").required()),
            ("hasStatus", scalar("hasStatus", "Boolean").required()),
            ("columns", object("columns", "KindColumn").required().list()),
        ],
    )
}

fn kind_column() -> TypeDef {
    TypeDef::new(
        "KindColumn",
        [
            ("name", text("name").required()),
            ("type", text("type").required()),
            ("jsonPath", text("jsonPath").required()),
            ("priority", scalar("priority", "Int").required()),
        ],
    )
}

fn token() -> TypeDef {
    TypeDef::new(
        "Token",
        [
            ("token", text("token").required()),
            ("id", text("id").required().describe("For `revokeToken`.")),
            ("expiresAt", text("expiresAt").required()),
        ],
    )
}

fn repository_sync() -> TypeDef {
    TypeDef::new(
        "RepositorySync",
        [
            (
                "inForce",
                scalar("inForce", "Boolean").required().describe("Whether the commit that was found is in force."),
            ),
            (
                "reason",
                text("reason")
                    .required()
                    .describe("`InForce`, `Invalid`, or why nothing was found, as in a condition."),
            ),
            ("message", text("message").required()),
            (
                "problems",
                text("problems").required().list().describe("Of a commit that is refused: the first 50, then a count."),
            ),
            ("commit", text("commit").describe("The head of the branch; null if nothing was found.")),
            ("resourceVersion", text("resourceVersion").describe("The version at which it is visible.")),
            ("created", scalar("created", "Int64").required()),
            ("updated", scalar("updated", "Int64").required()),
            ("deleted", scalar("deleted", "Int64").required()),
            ("objects", scalar("objects", "Int64").describe("How many objects the repository defines.")),
            ("files", scalar("files", "Int64").describe("In how many files.")),
        ],
    )
}
