//! From a parsed expression to one that runs: variables become slots, macros
//! folds, constant patterns are compiled.
//!
//! Names are checked here, against the schema where it is known: a rule that
//! reads a field that cannot exist is refused with its kind, not with every
//! object.

use std::sync::Arc;

use super::super::checks::Pattern;
use super::super::compile::Patterns;
use super::super::node::{Node, NodeKind};
use super::expr::{Access, Call, Expr, Field, Fold, FoldKind, Operator, OptionalResult, Variables};
use super::kube::{Ast, AstExpr, CallExpr, ComprehensionExpr, EntryExpr, LiteralValue, operators};
use super::library;
use super::macros::macro_parts;
use super::types::{Type, element_type, field_type, unescape};

/// Nesting of an expression; running one recurses as deep.
const EXPRESSION_DEPTH_MAX: usize = 128;

/// What `type(x)` may be compared with.
const TYPES: [&str; 9] = ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "uint"];

/// The slots of every rule: `self`, then `oldSelf`.
const OLD_SELF: usize = 1;

pub(super) struct Scope<'n, 'p> {
    pub variables: Vec<(String, Type<'n>)>,
    pub patterns: &'p mut Patterns,
    pub depth: usize,
    pub uses_old: bool,
}

type Translated<'n> = Result<(Expr, Type<'n>), String>;

impl<'n> Scope<'n, '_> {
    pub fn translate(&mut self, ast: &Ast) -> Translated<'n> {
        self.depth += 1;
        if self.depth > EXPRESSION_DEPTH_MAX {
            return Err(format!("is nested deeper than {EXPRESSION_DEPTH_MAX}"));
        }
        let translated = self.translate_here(ast);
        self.depth -= 1;
        translated
    }

    fn translate_here(&mut self, ast: &Ast) -> Translated<'n> {
        let expr = match &ast.expr {
            AstExpr::Literal(literal) => literal_of(literal),
            AstExpr::Ident(name) => return self.variable(name),
            AstExpr::Select(select) => {
                let (operand, of) = self.translate(&select.operand)?;
                let access = if select.test { Access::Presence } else { Access::Value };
                return self.select(operand, of, &select.field, access);
            }
            AstExpr::Call(call) => return self.call(call),
            AstExpr::List(list) => Expr::List(self.all(&list.elements)?),
            AstExpr::Map(map) => {
                let mut entries = Vec::with_capacity(map.entries.len());
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else { return Err(no_structs()) };
                    entries.push((self.translate(&entry.key)?.0, self.translate(&entry.value)?.0));
                }
                Expr::Map(entries.into())
            }
            AstExpr::Comprehension(comprehension) => self.comprehension(comprehension)?,
            AstExpr::Struct(_) | AstExpr::Unspecified => return Err(no_structs()),
        };
        Ok((expr, Type::Unknown))
    }

    fn all(&mut self, asts: &[Ast]) -> Result<Box<[Expr]>, String> {
        asts.iter().map(|ast| self.translate(ast).map(|(expr, _)| expr)).collect()
    }

    fn variable(&mut self, name: &str) -> Translated<'n> {
        let at = self.variables.iter().rposition(|(known, _)| known == name);
        let Some(at) = at else {
            let known = TYPES.iter().find(|known| **known == name);
            let known = known.ok_or_else(|| format!("undeclared reference to '{name}'"))?;
            return Ok((Expr::Type(known), Type::Unknown));
        };
        self.uses_old |= at == OLD_SELF;
        Ok((Expr::Slot(at), self.variables[at].1))
    }

    fn select(&self, operand: Expr, of: Type<'n>, name: &str, access: Access) -> Translated<'n> {
        let field = Field { written: name.into(), unescaped: unescape(name).into() };
        let found = field_type(of, &field)?;
        Ok((Expr::Select(Box::new(operand), field, access), found))
    }

    fn call(&mut self, call: &CallExpr) -> Translated<'n> {
        if let Some(operator) = self.operator(call)? {
            return Ok(operator);
        }
        let name = call.func_name.as_str();
        if let Some(target) = &call.target {
            let is_bind = name == "bind" && matches!(&target.expr, AstExpr::Ident(prefix) if prefix == "cel");
            if let (true, [variable, init, body]) = (is_bind, call.args.as_slice()) {
                return self.bind(variable, init, body);
            }
            if let Some(expr) = self.target_macro(name, target, &call.args)? {
                return Ok((expr, Type::Unknown));
            }
        }
        self.function(call).map(|expr| (expr, Type::Unknown))
    }

    fn operator(&mut self, call: &CallExpr) -> Result<Option<(Expr, Type<'n>)>, String> {
        let unknown = |expr| Ok(Some((expr, Type::Unknown)));
        match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::CONDITIONAL, [condition, then, otherwise]) => {
                let (condition, (then, of)) = (self.translate(condition)?.0, self.translate(then)?);
                let otherwise = self.translate(otherwise)?.0;
                Ok(Some((Expr::Conditional(Box::new((condition, then, otherwise))), of)))
            }
            (operators::LOGICAL_AND, [l, r]) => unknown(Expr::And(self.pair(l, r)?)),
            (operators::LOGICAL_OR, [l, r]) => unknown(Expr::Or(self.pair(l, r)?)),
            (operators::LOGICAL_NOT, [operand]) => unknown(Expr::Not(Box::new(self.translate(operand)?.0))),
            (operators::NEGATE, [operand]) => unknown(Expr::Negate(Box::new(self.translate(operand)?.0))),
            (operators::INDEX, [operand, index]) => self.index(operand, index, Access::Value).map(Some),
            (operators::OPT_INDEX, [operand, index]) => self.index(operand, index, Access::Optional).map(Some),
            (operators::OPT_SELECT, [operand, field]) => {
                let AstExpr::Literal(LiteralValue::String(name)) = &field.expr else {
                    return Err("a field is selected by its name".into());
                };
                let (operand, of) = self.translate(operand)?;
                self.select(operand, of, name.inner(), Access::Optional).map(|(expr, _)| Some((expr, Type::Unknown)))
            }
            (name, [l, r]) => match binary(name) {
                Some(operator) => unknown(Expr::Binary(operator, self.pair(l, r)?)),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    fn pair(&mut self, left: &Ast, right: &Ast) -> Result<Box<(Expr, Expr)>, String> {
        Ok(Box::new((self.translate(left)?.0, self.translate(right)?.0)))
    }

    fn index(&mut self, operand: &Ast, index: &Ast, access: Access) -> Translated<'n> {
        let (operand, of) = self.translate(operand)?;
        let index = self.translate(index)?.0;
        let of = if access == Access::Value { element_type(of) } else { Type::Unknown };
        Ok((Expr::Index(Box::new(operand), Box::new(index), access), of))
    }

    fn bind(&mut self, variable: &Ast, init: &Ast, body: &Ast) -> Translated<'n> {
        let (init, of) = self.translate(init)?;
        let body = self.within(&[(variable, of)], |scope| scope.translate(body))?;
        Ok((Expr::Bind(Box::new((init, body.0))), body.1))
    }

    /// Macros that the parser leaves as calls.
    fn target_macro(&mut self, name: &str, target: &Ast, args: &[Ast]) -> Result<Option<Expr>, String> {
        let kind = match (name, args) {
            ("optMap", [variable, body]) => {
                return self.optional_map(target, variable, body, OptionalResult::Value).map(Some);
            }
            ("optFlatMap", [variable, body]) => {
                return self.optional_map(target, variable, body, OptionalResult::Optional).map(Some);
            }
            ("all", [_, _, _]) => FoldKind::All,
            ("exists", [_, _, _]) => FoldKind::Exists,
            ("existsOne", [_, _, _]) => FoldKind::ExistsOne,
            ("transformList", [_, _, _]) => FoldKind::Map,
            _ => return Ok(None),
        };
        let (range, of) = self.translate(target)?;
        let body =
            self.within(&[(&args[0], Type::Unknown), (&args[1], element_type(of))], |scope| scope.translate(&args[2]))?;
        Ok(Some(Expr::Fold(Box::new(Fold { kind, range, variables: Variables::Two, filter: None, body: body.0 }))))
    }

    fn optional_map(
        &mut self,
        target: &Ast,
        variable: &Ast,
        body: &Ast,
        result: OptionalResult,
    ) -> Result<Expr, String> {
        let target = self.translate(target)?.0;
        let body = self.within(&[(variable, Type::Unknown)], |scope| scope.translate(body))?.0;
        Ok(Expr::OptionalMap(Box::new((target, body)), result))
    }

    fn within<T>(
        &mut self,
        variables: &[(&Ast, Type<'n>)],
        body: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        let depth = self.variables.len();
        for (variable, of) in variables {
            let AstExpr::Ident(name) = &variable.expr else { return Err("a variable must be a simple name".into()) };
            self.variables.push((name.clone(), *of));
        }
        let outcome = body(self);
        self.variables.truncate(depth);
        outcome
    }

    fn function(&mut self, call: &CallExpr) -> Result<Expr, String> {
        let mut args = Vec::with_capacity(call.args.len() + 1);
        let mut function = call.func_name.clone();
        let mut is_method = false;
        if let Some(target) = &call.target {
            match &target.expr {
                AstExpr::Ident(prefix) if !self.variables.iter().any(|(known, _)| known == prefix) => {
                    function = format!("{prefix}.{function}")
                }
                _ => {
                    args.push(self.translate(target)?.0);
                    is_method = true;
                }
            }
        }
        for arg in &call.args {
            args.push(self.translate(arg)?.0);
        }
        if !library::knows(&function) {
            return Err(format!("undeclared reference to '{function}'"));
        }
        if let ("matches", [_, Expr::Text(pattern)]) = (function.as_str(), args.as_slice()) {
            let pattern = self.pattern(pattern)?;
            return Ok(Expr::Matches(Box::new(args.swap_remove(0)), pattern));
        }
        Ok(Expr::Call(Arc::new(Call { function: function.into(), is_method, args: args.into() })))
    }

    fn pattern(&mut self, text: &str) -> Result<Pattern, String> {
        self.patterns.compile(text).map_err(|reason| format!("{text:?} is not a pattern: {reason}"))
    }

    /// The parser has expanded a macro; its shape tells which one.
    fn comprehension(&mut self, macro_call: &ComprehensionExpr) -> Result<Expr, String> {
        let (range, of) = self.translate(&macro_call.iter_range)?;
        let parts = macro_parts(macro_call).ok_or("uses a macro that is not supported")?;
        let variable = Ast { id: 0, expr: AstExpr::Ident(macro_call.iter_var.clone()) };
        let of = match of {
            Type::Node(Node { kind: NodeKind::Array(array), .. }) => Type::Node(&array.items),
            _ => Type::Unknown,
        };
        self.within(&[(&variable, of)], |scope| {
            let filter = parts.filter.map(|filter| scope.translate(filter)).transpose()?.map(|(expr, _)| expr);
            let body = scope.translate(parts.body)?.0;
            Ok(Expr::Fold(Box::new(Fold { kind: parts.kind, range, variables: Variables::One, filter, body })))
        })
    }
}

fn no_structs() -> String {
    "builds a message type: only lists and maps can be built".into()
}

fn literal_of(literal: &LiteralValue) -> Expr {
    match literal {
        LiteralValue::Boolean(flag) => Expr::Bool(*flag.inner()),
        LiteralValue::Bytes(bytes) => Expr::Bytes(bytes.inner().into()),
        LiteralValue::Double(number) => Expr::Double(*number.inner()),
        LiteralValue::Int(number) => Expr::Int(*number.inner()),
        LiteralValue::Null => Expr::Null,
        LiteralValue::String(text) => Expr::Text(text.inner().into()),
        LiteralValue::UInt(number) => Expr::UInt(*number.inner()),
    }
}

fn binary(name: &str) -> Option<Operator> {
    Some(match name {
        operators::ADD => Operator::Add,
        operators::SUBSTRACT => Operator::Subtract,
        operators::MULTIPLY => Operator::Multiply,
        operators::DIVIDE => Operator::Divide,
        operators::MODULO => Operator::Remainder,
        operators::EQUALS => Operator::Equal,
        operators::NOT_EQUALS => Operator::NotEqual,
        operators::LESS => Operator::Less,
        operators::LESS_EQUALS => Operator::LessEqual,
        operators::GREATER => Operator::Greater,
        operators::GREATER_EQUALS => Operator::GreaterEqual,
        operators::IN => Operator::In,
        _ => return None,
    })
}
