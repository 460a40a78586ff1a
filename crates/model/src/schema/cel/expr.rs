//! A rule's expression, ready to run: variables are slots, macros are folds,
//! constant patterns are compiled.

use std::sync::Arc;

use super::super::checks::Pattern;

#[derive(Debug)]
pub(super) enum Expr {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    Text(Box<str>),
    Bytes(Box<[u8]>),
    /// `int`, `string`, … as a value, to compare `type(x)` with.
    Type(&'static str),
    /// A variable, by its place on the stack.
    Slot(usize),
    Select(Box<Expr>, Field, Access),
    Index(Box<Expr>, Box<Expr>, Access),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    And(Box<(Expr, Expr)>),
    Or(Box<(Expr, Expr)>),
    Conditional(Box<(Expr, Expr, Expr)>),
    Binary(Operator, Box<(Expr, Expr)>),
    Matches(Box<Expr>, Pattern),
    Call(Arc<Call>),
    List(Box<[Expr]>),
    Map(Box<[(Expr, Expr)]>),
    Fold(Box<Fold>),
    /// `cel.bind(x, init, body)`: one more slot while the body runs.
    Bind(Box<(Expr, Expr)>),
    /// `optional.optMap(x, body)`.
    OptionalMap(Box<(Expr, Expr)>, OptionalResult),
}

/// A field by the name in the rule. In an object of specified fields the name
/// is escaped (`__namespace__`), in a map it is the key as it is.
#[derive(Debug)]
pub(super) struct Field {
    pub written: Box<str>,
    pub unescaped: Box<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// An absent value is an error.
    Value,
    /// `has(x.y)`.
    Presence,
    /// `x.?y`, `x[?y]`.
    Optional,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
}

#[derive(Debug)]
pub(super) struct Call {
    pub function: Box<str>,
    /// With a target, `args[0]` is it.
    pub is_method: bool,
    pub args: Box<[Expr]>,
}

/// A macro over the elements of a list or the keys of a map. Each element, or
/// key and value, takes the next slots while the body runs.
#[derive(Debug)]
pub(super) struct Fold {
    pub kind: FoldKind,
    pub range: Expr,
    pub variables: Variables,
    pub filter: Option<Expr>,
    pub body: Expr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variables {
    /// The element of a list, the key of a map.
    One,
    /// Index and element, key and value.
    Two,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoldKind {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionalResult {
    /// `optMap`: the body's value.
    Value,
    /// `optFlatMap`: the body is an optional itself.
    Optional,
}
