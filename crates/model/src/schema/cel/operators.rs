//! `+`, `==`, `<` and their like, with CEL's rules: integers do not overflow,
//! numbers of different types compare, everything else does not mix.

use std::cmp::Ordering;

use super::super::node::{ListType, Node, NodeKind};
use super::expr::Operator;
use super::kube;
use super::machine::{Budget, Fail, error};
use super::value::Val;

pub(super) fn apply<'a>(
    operator: Operator,
    left: Val<'a>,
    right: Val<'a>,
    budget: &mut Budget,
) -> Result<Val<'a>, Fail> {
    let is = |wanted: &[Ordering], found: Ordering| Ok(Val::Bool(wanted.contains(&found)));
    match operator {
        Operator::Equal => equal(&left, &right, budget).map(Val::Bool),
        Operator::NotEqual => equal(&left, &right, budget).map(|same| Val::Bool(!same)),
        Operator::Less => is(&[Ordering::Less], compare(&left, &right, budget)?),
        Operator::LessEqual => is(&[Ordering::Less, Ordering::Equal], compare(&left, &right, budget)?),
        Operator::Greater => is(&[Ordering::Greater], compare(&left, &right, budget)?),
        Operator::GreaterEqual => is(&[Ordering::Greater, Ordering::Equal], compare(&left, &right, budget)?),
        Operator::In => contains(&right, &left, budget).map(Val::Bool),
        Operator::Add if left.list_len().is_some() || left.as_text().is_some() => concat(left, right, budget),
        _ => arithmetic(operator, left, right),
    }
}

fn arithmetic<'a>(operator: Operator, left: Val<'a>, right: Val<'a>) -> Result<Val<'a>, Fail> {
    let overflow = || Fail::Error("integer overflow or division by zero".into());
    let result = match (&left, &right) {
        (Val::Int(l), Val::Int(r)) => whole(operator, *l, *r).ok_or_else(overflow)?.map(Val::Int),
        (Val::UInt(l), Val::UInt(r)) => natural(operator, *l, *r).ok_or_else(overflow)?.map(Val::UInt),
        (Val::Double(l), Val::Double(r)) => float(operator, *l, *r).map(Val::Double),
        (Val::Time(l), Val::Time(r)) if operator == Operator::Subtract => Some(Val::Span(*l - *r)),
        (Val::Time(time), Val::Span(span)) | (Val::Span(span), Val::Time(time)) => match operator {
            Operator::Add => time.checked_add_signed(*span).map(Val::Time),
            Operator::Subtract => time.checked_sub_signed(*span).map(Val::Time),
            _ => None,
        },
        (Val::Span(l), Val::Span(r)) => match operator {
            Operator::Add => l.checked_add(r).map(Val::Span),
            Operator::Subtract => l.checked_sub(r).map(Val::Span),
            _ => None,
        },
        _ => None,
    };
    result.map_or_else(|| no_overload(operator, &left, &right), Ok)
}

/// The outer `None` is an overflow, the inner one no such operator.
fn whole(operator: Operator, left: i64, right: i64) -> Option<Option<i64>> {
    Some(Some(match operator {
        Operator::Add => left.checked_add(right)?,
        Operator::Subtract => left.checked_sub(right)?,
        Operator::Multiply => left.checked_mul(right)?,
        Operator::Divide => left.checked_div(right)?,
        Operator::Remainder => left.checked_rem(right)?,
        _ => return Some(None),
    }))
}

fn natural(operator: Operator, left: u64, right: u64) -> Option<Option<u64>> {
    Some(Some(match operator {
        Operator::Add => left.checked_add(right)?,
        Operator::Subtract => left.checked_sub(right)?,
        Operator::Multiply => left.checked_mul(right)?,
        Operator::Divide => left.checked_div(right)?,
        Operator::Remainder => left.checked_rem(right)?,
        _ => return Some(None),
    }))
}

fn float(operator: Operator, left: f64, right: f64) -> Option<f64> {
    match operator {
        Operator::Add => Some(left + right),
        Operator::Subtract => Some(left - right),
        Operator::Multiply => Some(left * right),
        Operator::Divide => Some(left / right),
        _ => None,
    }
}

fn no_overload<T>(operator: Operator, left: &Val, right: &Val) -> Result<T, Fail> {
    error(format!("no such overload: {operator:?} of {} and {}", left.type_name(), right.type_name()))
}

pub(super) fn negate(value: Val) -> Result<Val, Fail> {
    match value {
        Val::Int(number) => number.checked_neg().map(Val::Int).ok_or_else(|| Fail::Error("integer overflow".into())),
        Val::Double(number) => Ok(Val::Double(-number)),
        other => error(format!("no such overload: - of {}", other.type_name())),
    }
}

/// Paid for before it is made: a doubled text costs its new length.
fn concat<'a>(left: Val<'a>, right: Val<'a>, budget: &mut Budget) -> Result<Val<'a>, Fail> {
    if let (Some(l), Some(r)) = (left.as_text(), right.as_text()) {
        budget.charge((l.len() + r.len()) as u64)?;
        return Ok(Val::OwnText([l, r].concat().into()));
    }
    let (Some(l), Some(r)) = (left.list_len(), right.list_len()) else {
        return no_overload(Operator::Add, &left, &right);
    };
    budget.charge((l + r) as u64)?;
    let all = (0..l).filter_map(|at| left.element(at)).chain((0..r).filter_map(|at| right.element(at)));
    Ok(Val::List(all.collect()))
}

pub(super) fn contains<'a>(container: &Val<'a>, value: &Val<'a>, budget: &mut Budget) -> Result<bool, Fail> {
    if let Some(len) = container.list_len() {
        for element in (0..len).filter_map(|at| container.element(at)) {
            if equal(&element, value, budget)? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    match (container.map_len(), value.as_text()) {
        (Some(_), Some(key)) => {
            budget.charge(1)?;
            Ok(container.field(key).is_some())
        }
        (Some(len), None) => {
            budget.charge(len as u64)?;
            let keys = container.entries().unwrap_or_default().into_iter().map(|(key, _)| key).collect();
            contains(&Val::List(keys), value, budget)
        }
        _ => no_overload(Operator::In, value, container),
    }
}

pub(super) fn equal<'a>(left: &Val<'a>, right: &Val<'a>, budget: &mut Budget) -> Result<bool, Fail> {
    budget.charge(1)?;
    if let (Some(l), Some(r)) = (left.as_text(), right.as_text()) {
        budget.charge(l.len().min(r.len()) as u64 / 16)?;
        return Ok(l == r);
    }
    if let (Some(l), Some(r)) = (left.list_len(), right.list_len()) {
        return Ok(l == r && lists_equal(left, right, l, budget)?);
    }
    if let (Some(l), Some(r)) = (left.map_len(), right.map_len()) {
        return Ok(l == r && maps_equal(left, right, budget)?);
    }
    match (left, right) {
        (Val::Null, Val::Null) => Ok(true),
        (Val::Bool(l), Val::Bool(r)) => Ok(l == r),
        (Val::Type(l), Val::Type(r)) => Ok(l == r),
        (Val::Bytes(l), Val::Bytes(r)) => {
            budget.charge((l.len() + r.len()) as u64 / 16)?;
            Ok(l == r)
        }
        (Val::Time(l), Val::Time(r)) => Ok(l == r),
        (Val::Span(l), Val::Span(r)) => Ok(l == r),
        (Val::Optional(None), Val::Optional(None)) => Ok(true),
        (Val::Optional(Some(l)), Val::Optional(Some(r))) => equal(l, r, budget),
        (Val::Foreign(l), Val::Foreign(r)) => Ok(kube::equal(l, r)),
        _ => Ok(numbers(left, right) == Some(Ordering::Equal)),
    }
}

fn lists_equal<'a>(left: &Val<'a>, right: &Val<'a>, len: usize, budget: &mut Budget) -> Result<bool, Fail> {
    if is_unordered(left) || is_unordered(right) {
        for element in (0..len).filter_map(|at| left.element(at)) {
            if !contains(right, &element, budget)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    for at in 0..len {
        let (Some(l), Some(r)) = (left.element(at), right.element(at)) else { return Ok(false) };
        if !equal(&l, &r, budget)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Sets and list maps are equal whatever their order.
fn is_unordered(list: &Val) -> bool {
    let Val::Items(_, Some(Node { kind: NodeKind::Array(array), .. })) = list else { return false };
    array.list_type != ListType::Atomic
}

fn maps_equal<'a>(left: &Val<'a>, right: &Val<'a>, budget: &mut Budget) -> Result<bool, Fail> {
    budget.charge(left.map_len().unwrap_or(0) as u64)?;
    for (key, value) in left.entries().unwrap_or_default() {
        let Some(other) = key.as_text().and_then(|name| right.field(name)) else { return Ok(false) };
        if !equal(&value, &other, budget)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn compare(left: &Val, right: &Val, budget: &mut Budget) -> Result<Ordering, Fail> {
    if let (Some(l), Some(r)) = (left.as_text(), right.as_text()) {
        budget.charge(l.len().min(r.len()) as u64 / 16)?;
        return Ok(l.cmp(r));
    }
    let found = match (left, right) {
        (Val::Bool(l), Val::Bool(r)) => Some(l.cmp(r)),
        (Val::Bytes(l), Val::Bytes(r)) => Some(l.cmp(r)),
        (Val::Time(l), Val::Time(r)) => Some(l.cmp(r)),
        (Val::Span(l), Val::Span(r)) => Some(l.cmp(r)),
        _ => numbers(left, right),
    };
    found.map_or_else(|| no_overload(Operator::Less, left, right), Ok)
}

/// Numbers of any two types; `None` if one is none, or not a number.
fn numbers(left: &Val, right: &Val) -> Option<Ordering> {
    let exact = |value: &Val| match value {
        Val::Int(number) => Some(i128::from(*number)),
        Val::UInt(number) => Some(i128::from(*number)),
        _ => None,
    };
    if let (Some(l), Some(r)) = (exact(left), exact(right)) {
        return Some(l.cmp(&r));
    }
    let float = |value: &Val| match value {
        Val::Double(number) => Some(*number),
        _ => exact(value).map(|number| number as f64),
    };
    float(left)?.partial_cmp(&float(right)?)
}
