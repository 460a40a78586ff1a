//! Running an expression, within a budget.
//!
//! Each step costs one, each pass over a value its weight: a rule over a
//! hostile object ends with [`Fail::Budget`], never with a hung server.
//! Errors follow CEL: `&&`, `||`, `all` and `exists` absorb one if the other
//! side decides.

use std::rc::Rc;

use super::expr::{Access, Expr, Field, Fold, FoldKind, OptionalResult, Variables};
use super::library;
use super::operators;
use super::value::Val;

#[derive(Debug, PartialEq)]
pub(super) enum Fail {
    /// The rules of this object have used up what they may.
    Budget,
    Error(String),
}

pub(super) fn error<T>(message: impl Into<String>) -> Result<T, Fail> {
    Err(Fail::Error(message.into()))
}

/// Steps that are left for all rules of one object.
#[derive(Debug)]
pub(super) struct Budget(u64);

impl Budget {
    pub fn new(steps: u64) -> Self {
        Self(steps)
    }

    pub fn charge(&mut self, steps: u64) -> Result<(), Fail> {
        match self.0.checked_sub(steps) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => {
                self.0 = 0;
                Err(Fail::Budget)
            }
        }
    }

    pub fn left(&self) -> u64 {
        self.0
    }
}

pub(super) struct Machine<'a, 'b> {
    pub slots: Vec<Val<'a>>,
    pub budget: &'b mut Budget,
}

type Outcome<'a> = Result<Val<'a>, Fail>;

impl<'a> Machine<'a, '_> {
    pub fn run(&mut self, expr: &'a Expr) -> Outcome<'a> {
        self.budget.charge(1)?;
        match expr {
            Expr::Null => Ok(Val::Null),
            Expr::Bool(flag) => Ok(Val::Bool(*flag)),
            Expr::Int(number) => Ok(Val::Int(*number)),
            Expr::UInt(number) => Ok(Val::UInt(*number)),
            Expr::Double(number) => Ok(Val::Double(*number)),
            Expr::Text(text) => Ok(Val::Text(text)),
            Expr::Bytes(bytes) => Ok(Val::Bytes(bytes.clone().into())),
            Expr::Type(name) => Ok(Val::Type(name)),
            Expr::Slot(at) => self.slots.get(*at).cloned().ok_or_else(|| Fail::Error("no such variable".into())),
            Expr::Select(operand, field, access) => self.select(operand, field, *access),
            Expr::Index(operand, index, access) => self.index(operand, index, *access),
            Expr::Not(operand) => self.flag(operand).map(|flag| Val::Bool(!flag)),
            Expr::Negate(operand) => operators::negate(self.run(operand)?),
            Expr::And(sides) => self.decide(&sides.0, &sides.1, false),
            Expr::Or(sides) => self.decide(&sides.0, &sides.1, true),
            Expr::Conditional(parts) => {
                let (condition, then, otherwise) = &**parts;
                if self.flag(condition)? { self.run(then) } else { self.run(otherwise) }
            }
            Expr::Binary(operator, sides) => {
                let (left, right) = (self.run(&sides.0)?, self.run(&sides.1)?);
                operators::apply(*operator, left, right, self.budget)
            }
            Expr::Matches(operand, pattern) => {
                let text = self.run(operand)?;
                let Some(text) = text.as_text() else { return error("matches() needs a string") };
                self.budget.charge(1 + text.len() as u64 / 4)?;
                Ok(Val::Bool(pattern.is_match(text)))
            }
            Expr::Call(call) => {
                let args = self.run_all(&call.args)?;
                library::call(&call.function, call.is_method, args, self.budget)
            }
            Expr::List(items) => self.run_all(items).map(|items| Val::List(items.into())),
            Expr::Map(entries) => {
                let pair = |(key, value): &'a (Expr, Expr)| Ok((self.run(key)?, self.run(value)?));
                let entries: Vec<_> = entries.iter().map(pair).collect::<Result<_, Fail>>()?;
                Ok(Val::Map(entries.into()))
            }
            Expr::Fold(fold) => self.fold(fold),
            Expr::Bind(parts) => {
                let bound = self.run(&parts.0)?;
                self.with([bound], |machine| machine.run(&parts.1))
            }
            Expr::OptionalMap(parts, result) => self.optional_map(&parts.0, &parts.1, *result),
        }
    }

    fn run_all(&mut self, exprs: &'a [Expr]) -> Result<Vec<Val<'a>>, Fail> {
        exprs.iter().map(|expr| self.run(expr)).collect()
    }

    pub fn flag(&mut self, expr: &'a Expr) -> Result<bool, Fail> {
        match self.run(expr)? {
            Val::Bool(flag) => Ok(flag),
            other => error(format!("no such overload: a condition is of type {}", other.type_name())),
        }
    }

    /// `&&` (decided by false) and `||` (decided by true).
    fn decide(&mut self, left: &'a Expr, right: &'a Expr, deciding: bool) -> Outcome<'a> {
        let left = self.flag(left);
        match left {
            Ok(flag) if flag == deciding => return Ok(Val::Bool(deciding)),
            Err(Fail::Budget) => return Err(Fail::Budget),
            _ => {}
        }
        let right = self.flag(right)?;
        if right == deciding { Ok(Val::Bool(deciding)) } else { left.map(Val::Bool) }
    }

    fn select(&mut self, operand: &'a Expr, field: &'a Field, access: Access) -> Outcome<'a> {
        let operand = self.run(operand)?;
        if let Val::Optional(inner) = &operand {
            let found = inner.as_ref().and_then(|value| value.field(name_in(value, field)));
            return Ok(Val::Optional(found.map(Rc::new)));
        }
        if operand.map_len().is_none() {
            return error(format!("no such overload: a {} has no field {}", operand.type_name(), field.written));
        }
        let found = operand.field(name_in(&operand, field));
        self.charge_decoded(&found)?;
        found_as(found, access, || format!("no such key: {}", field.written))
    }

    fn index(&mut self, operand: &'a Expr, index: &'a Expr, access: Access) -> Outcome<'a> {
        let (mut operand, index) = (self.run(operand)?, self.run(index)?);
        let mut access = access;
        if let Val::Optional(inner) = operand {
            let Some(inner) = inner else { return Ok(Val::Optional(None)) };
            operand = Val::clone(&inner);
            access = Access::Optional;
        }
        let found = match (&operand, &index) {
            (list, Val::Int(at)) if list.list_len().is_some() => {
                usize::try_from(*at).ok().and_then(|at| list.element(at))
            }
            (map, key) if map.map_len().is_some() => self.entry(map, key)?,
            _ => return error(format!("no such overload: {}[{}]", operand.type_name(), index.type_name())),
        };
        self.charge_decoded(&found)?;
        found_as(found, access, || "index out of bounds or no such key".to_owned())
    }

    /// Text of format `byte` is decoded each time that it is read.
    fn charge_decoded(&mut self, found: &Option<Val<'a>>) -> Result<(), Fail> {
        let Some(Val::Bytes(bytes)) = found else { return Ok(()) };
        self.budget.charge(bytes.len() as u64 / 16)
    }

    fn entry(&mut self, map: &Val<'a>, key: &Val<'a>) -> Result<Option<Val<'a>>, Fail> {
        if let Some(name) = key.as_text() {
            return Ok(map.field(name));
        }
        self.budget.charge(map.map_len().unwrap_or(0) as u64)?;
        for (candidate, value) in map.entries().unwrap_or_default() {
            if operators::equal(&candidate, key, self.budget)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    fn fold(&mut self, fold: &'a Fold) -> Outcome<'a> {
        let range = self.run(&fold.range)?;
        // The entries of a map are gathered, however few of them are looked at.
        self.budget.charge(range.map_len().unwrap_or(0) as u64)?;
        let elements = Elements::of(range, fold.variables)?;
        match fold.kind {
            FoldKind::All => self.quantify(fold, elements, false),
            FoldKind::Exists => self.quantify(fold, elements, true),
            FoldKind::ExistsOne => {
                let mut count = 0;
                for element in elements {
                    count += usize::from(self.element_flag(&fold.body, element)?);
                }
                Ok(Val::Bool(count == 1))
            }
            FoldKind::Filter => {
                let mut kept = Vec::new();
                for element in elements {
                    let value = element.value();
                    if self.element_flag(&fold.body, element)? {
                        kept.push(value);
                    }
                }
                Ok(Val::List(kept.into()))
            }
            FoldKind::Map => self.map(fold, elements),
        }
    }

    /// `all` is decided by a false, `exists` by a true; an error counts only
    /// if nothing decides.
    fn quantify(&mut self, fold: &'a Fold, elements: Elements<'a>, deciding: bool) -> Outcome<'a> {
        let mut failed = None;
        for element in elements {
            match self.element_flag(&fold.body, element) {
                Ok(flag) if flag == deciding => return Ok(Val::Bool(deciding)),
                Ok(_) => {}
                Err(Fail::Budget) => return Err(Fail::Budget),
                Err(fail) => failed = Some(fail),
            }
        }
        failed.map_or(Ok(Val::Bool(!deciding)), Err)
    }

    fn map(&mut self, fold: &'a Fold, elements: Elements<'a>) -> Outcome<'a> {
        let mut mapped = Vec::new();
        for element in elements {
            let mapped_one = self.with(element.slots(), |machine| match &fold.filter {
                Some(filter) if !machine.flag(filter)? => Ok(None),
                _ => machine.run(&fold.body).map(Some),
            })?;
            mapped.extend(mapped_one);
        }
        Ok(Val::List(mapped.into()))
    }

    fn element_flag(&mut self, body: &'a Expr, element: Element<'a>) -> Result<bool, Fail> {
        self.charge_decoded(&Some(element.value()))?;
        self.with(element.slots(), |machine| machine.flag(body))
    }

    fn optional_map(&mut self, operand: &'a Expr, body: &'a Expr, result: OptionalResult) -> Outcome<'a> {
        let Val::Optional(inner) = self.run(operand)? else { return error("optMap() needs an optional") };
        let Some(inner) = inner else { return Ok(Val::Optional(None)) };
        let mapped = self.with([Val::clone(&inner)], |machine| machine.run(body))?;
        match (result, mapped) {
            (OptionalResult::Value, value) => Ok(Val::Optional(Some(Rc::new(value)))),
            (OptionalResult::Optional, Val::Optional(value)) => Ok(Val::Optional(value)),
            (OptionalResult::Optional, _) => error("optFlatMap() needs a body that is an optional"),
        }
    }

    /// Runs `body` with `values` in the next slots.
    fn with<T>(
        &mut self,
        values: impl IntoIterator<Item = Val<'a>>,
        body: impl FnOnce(&mut Self) -> Result<T, Fail>,
    ) -> Result<T, Fail> {
        let depth = self.slots.len();
        self.slots.extend(values);
        let outcome = body(self);
        self.slots.truncate(depth);
        outcome
    }
}

/// What a fold goes over, one element at a time.
struct Elements<'a> {
    range: Val<'a>,
    /// Of a map: its entries.
    entries: Option<Vec<(Val<'a>, Val<'a>)>>,
    variables: Variables,
    next: usize,
}

struct Element<'a> {
    key: Val<'a>,
    value: Option<Val<'a>>,
}

impl<'a> Elements<'a> {
    fn of(range: Val<'a>, variables: Variables) -> Result<Self, Fail> {
        let entries = range.entries();
        if entries.is_none() && range.list_len().is_none() {
            return error(format!("no such overload: cannot go over a {}", range.type_name()));
        }
        Ok(Self { range, entries, variables, next: 0 })
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let at = self.next;
        self.next += 1;
        match (&self.entries, self.variables) {
            (Some(entries), Variables::One) => {
                entries.get(at).map(|(key, _)| Element { key: key.clone(), value: None })
            }
            (Some(entries), Variables::Two) => {
                entries.get(at).map(|(key, value)| Element { key: key.clone(), value: Some(value.clone()) })
            }
            (None, Variables::One) => self.range.element(at).map(|value| Element { key: value, value: None }),
            (None, Variables::Two) => {
                self.range.element(at).map(|value| Element { key: Val::Int(at as i64), value: Some(value) })
            }
        }
    }
}

impl<'a> Element<'a> {
    fn value(&self) -> Val<'a> {
        self.value.clone().unwrap_or_else(|| self.key.clone())
    }

    fn slots(self) -> impl Iterator<Item = Val<'a>> {
        std::iter::once(self.key).chain(self.value)
    }
}

fn name_in<'f>(value: &Val, field: &'f Field) -> &'f str {
    if value.has_free_keys() { &field.written } else { &field.unescaped }
}

fn found_as<'a>(found: Option<Val<'a>>, access: Access, missing: impl FnOnce() -> String) -> Outcome<'a> {
    match access {
        Access::Presence => Ok(Val::Bool(found.is_some())),
        Access::Optional => Ok(Val::Optional(found.map(Rc::new))),
        Access::Value => found.ok_or_else(|| Fail::Error(missing())),
    }
}
