//! The one place that knows `kube-cel`: its parser, and the function libraries
//! of Kubernetes that we do not have ourselves.
//!
//! We do not use its interpreter: that one has no budget, copies what it
//! selects, and panics on some expressions that parse.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use kube_cel::KubeCelExt;
use kube_cel::cel::objects::{Key, Map, OptionalValue};
use kube_cel::cel::{Context, ExecutionError, ParseErrors, Value, parser::Parser};

use super::machine::{Fail, error};
use super::value::Val;

pub(super) use kube_cel::cel::IdedExpr as Ast;
pub(super) use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr as AstExpr, LiteralValue, operators,
};

pub(super) type Foreign = Value;

/// Bytes of one expression; the longest of the CRDs we test with has 1,270.
const EXPRESSION_BYTES_MAX: usize = 16 << 10;
/// Operators, brackets and dots of one expression; the longest has 385. The
/// parser recurses over chains (`1+1+1`): a stack of 2 MiB holds ~4,000.
const SYMBOLS_MAX: usize = 1_000;
/// `a in a in a` is a chain without symbols.
const WORDS_MAX: usize = 2_000;
/// Brackets inside each other; the parser gives up at 96, slowly.
const BRACKETS_MAX: usize = 64;
/// The parser panics where 96 conditionals follow each other.
const CONDITIONALS_MAX: usize = 64;
const PARSE_MESSAGE_LENGTH_MAX: usize = 300;

static LIBRARY: LazyLock<Context<'static>> = LazyLock::new(|| Context::default().with_all());

pub(super) fn parse(text: &str) -> Result<Ast, String> {
    if text.trim().is_empty() {
        return Err("must not be empty".into());
    }
    check_size(text)?;
    // A foreign parser over foreign text: a panic there is an answer too.
    let parsed = catch_unwind(AssertUnwindSafe(|| Parser::new().enable_optional_syntax(true).parse(text)));
    match parsed {
        Ok(Ok(ast)) => Ok(ast),
        Ok(Err(errors)) => Err(first_error(&errors)),
        Err(_) => Err("cannot be parsed".into()),
    }
}

/// Strings count too: telling them apart is the parser's work, and a hostile
/// text would be told apart wrongly.
fn check_size(text: &str) -> Result<(), String> {
    let (mut symbols, mut conditionals, mut depth, mut depth_max) = (0, 0, 0_usize, 0);
    for byte in text.bytes().filter(u8::is_ascii_punctuation) {
        symbols += 1;
        match byte {
            b'?' => conditionals += 1,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth_max = depth_max.max(depth);
    }
    let limits = [
        (text.len(), EXPRESSION_BYTES_MAX, "bytes"),
        (symbols, SYMBOLS_MAX, "operators and brackets"),
        (text.split_whitespace().count(), WORDS_MAX, "words"),
        (conditionals, CONDITIONALS_MAX, "conditionals"),
        (depth_max, BRACKETS_MAX, "brackets inside each other"),
    ];
    match limits.iter().find(|(count, max, _)| count > max) {
        Some((_, max, what)) => Err(format!("must not have more than {max} {what}: split it")),
        None => Ok(()),
    }
}

/// Its place and what is wrong there; the rest usually follows from it.
fn first_error(errors: &ParseErrors) -> String {
    let first = errors.errors.first();
    first.map_or_else(|| "cannot be parsed".into(), |e| one_line(&format!("{}:{}: {}", e.pos.0, e.pos.1, e.msg)))
}

fn one_line(message: &str) -> String {
    let words: Vec<&str> = message.split_whitespace().collect();
    words.join(" ").chars().take(PARSE_MESSAGE_LENGTH_MAX).collect()
}

/// Whether a library has `function`: a call without arguments fails either
/// way, but in different words.
pub(super) fn knows(function: &str) -> bool {
    let outcome = execute(&call_ast(function, None, 0), &LIBRARY);
    !matches!(outcome, Err(ExecutionError::UndeclaredReference(_)))
}

/// Calls a library function. With `is_method`, the first argument is the
/// target.
pub(super) fn call<'a>(function: &str, is_method: bool, args: &[Val<'a>]) -> Result<Val<'a>, Fail> {
    let mut scope = LIBRARY.new_inner_scope();
    for (at, arg) in args.iter().enumerate() {
        scope.add_variable_from_value(format!("@{at}"), to_foreign(arg));
    }
    let target = is_method.then_some(0);
    let ast = call_ast(function, target, args.len());
    match execute(&ast, &scope) {
        Ok(value) => Ok(from_foreign(&value)),
        Err(reason) => error(one_line(&reason.to_string())),
    }
}

/// `@0.f(@1)` or `f(@0, @1)`.
fn call_ast(function: &str, target: Option<usize>, args: usize) -> Ast {
    let variable = |at: usize| Ast { id: 0, expr: AstExpr::Ident(format!("@{at}")) };
    let first = usize::from(target.is_some());
    let call = CallExpr {
        func_name: function.to_owned(),
        target: target.map(|at| Box::new(variable(at))),
        args: (first..args).map(variable).collect(),
    };
    Ast { id: 0, expr: AstExpr::Call(call) }
}

fn execute(ast: &Ast, scope: &Context) -> Result<Value, ExecutionError> {
    catch_unwind(AssertUnwindSafe(|| Value::resolve(ast, scope)))
        .unwrap_or_else(|_| Err(ExecutionError::function_error("call", "cannot be evaluated")))
}

pub(super) fn equal(left: &Foreign, right: &Foreign) -> bool {
    left == right
}

fn to_foreign(value: &Val) -> Value {
    let text = |text: &str| Value::String(Arc::new(text.to_owned()));
    match value {
        Val::Null => Value::Null,
        Val::Bool(flag) => Value::Bool(*flag),
        Val::Int(number) => Value::Int(*number),
        Val::UInt(number) => Value::UInt(*number),
        Val::Double(number) => Value::Float(*number),
        Val::Text(borrowed) => text(borrowed),
        Val::OwnText(owned) => text(owned),
        Val::Bytes(bytes) => Value::Bytes(Arc::new(bytes.to_vec())),
        Val::Time(time) => Value::Timestamp(*time),
        Val::Span(span) => Value::Duration(*span),
        Val::Items(..) | Val::List(_) => {
            let elements = (0..value.list_len().unwrap_or(0)).filter_map(|at| value.element(at));
            Value::List(Arc::new(elements.map(|element| to_foreign(&element)).collect()))
        }
        Val::Fields(..) | Val::Map(_) => {
            let entries = value.entries().unwrap_or_default();
            let pairs = entries.iter().filter_map(|(key, value)| Some((to_key(key)?, to_foreign(value))));
            Value::Map(Map { map: Arc::new(pairs.collect()) })
        }
        Val::Optional(inner) => {
            let inner = inner.as_ref().map(|inner| to_foreign(inner));
            Value::Opaque(Arc::new(inner.map_or_else(OptionalValue::none, OptionalValue::of)))
        }
        Val::Type(name) => text(name),
        Val::Foreign(value) => value.clone(),
    }
}

fn to_key(value: &Val) -> Option<Key> {
    match value {
        Val::Bool(flag) => Some(Key::Bool(*flag)),
        Val::Int(number) => Some(Key::Int(*number)),
        Val::UInt(number) => Some(Key::Uint(*number)),
        _ => value.as_text().map(|text| Key::String(Arc::new(text.to_owned()))),
    }
}

fn from_foreign<'a>(value: &Value) -> Val<'a> {
    match value {
        Value::Null => Val::Null,
        Value::Bool(flag) => Val::Bool(*flag),
        Value::Int(number) => Val::Int(*number),
        Value::UInt(number) => Val::UInt(*number),
        Value::Float(number) => Val::Double(*number),
        Value::String(text) => Val::OwnText(text.as_str().into()),
        Value::Bytes(bytes) => Val::Bytes(bytes.as_slice().into()),
        Value::Timestamp(time) => Val::Time(*time),
        Value::Duration(span) => Val::Span(*span),
        Value::List(items) => Val::List(items.iter().map(from_foreign).collect()),
        Value::Map(map) => {
            let pair = |(key, value): (&Key, &Value)| (from_key(key), from_foreign(value));
            Val::Map(map.map.iter().map(pair).collect())
        }
        Value::Opaque(_) => match <&OptionalValue>::try_from(value) {
            Ok(optional) => Val::Optional(optional.value().map(|inner| Rc::new(from_foreign(inner)))),
            Err(_) => Val::Foreign(value.clone()),
        },
        Value::Function(..) => Val::Foreign(value.clone()),
    }
}

fn from_key<'a>(key: &Key) -> Val<'a> {
    match key {
        Key::Int(number) => Val::Int(*number),
        Key::Uint(number) => Val::UInt(*number),
        Key::Bool(flag) => Val::Bool(*flag),
        Key::String(text) => Val::OwnText(text.as_str().into()),
    }
}
