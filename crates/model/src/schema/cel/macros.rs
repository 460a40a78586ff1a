//! The parser expands macros into loops; this tells again which one it was.

use super::expr::FoldKind;
use super::kube::{Ast, AstExpr, ComprehensionExpr, operators};

pub(super) struct MacroParts<'m> {
    pub kind: FoldKind,
    pub filter: Option<&'m Ast>,
    pub body: &'m Ast,
}

pub(super) fn macro_parts(macro_call: &ComprehensionExpr) -> Option<MacroParts<'_>> {
    let AstExpr::Call(step) = &macro_call.loop_step.expr else { return None };
    let plain = |kind, body| Some(MacroParts { kind, filter: None, body });
    match (&macro_call.accu_init.expr, step.func_name.as_str(), step.args.as_slice()) {
        (_, operators::LOGICAL_AND, [_, body]) => plain(FoldKind::All, body),
        (_, operators::LOGICAL_OR, [_, body]) => plain(FoldKind::Exists, body),
        (AstExpr::Literal(_), operators::CONDITIONAL, [body, _, _]) => plain(FoldKind::ExistsOne, body),
        (AstExpr::List(_), operators::ADD, [_, appended]) => plain(FoldKind::Map, only_element(appended)?),
        (AstExpr::List(_), operators::CONDITIONAL, [condition, append, _]) => {
            let AstExpr::Call(append) = &append.expr else { return None };
            let body = only_element(append.args.get(1)?)?;
            let keeps_element = matches!(&body.expr, AstExpr::Ident(name) if *name == macro_call.iter_var);
            if keeps_element {
                plain(FoldKind::Filter, condition)
            } else {
                Some(MacroParts { kind: FoldKind::Map, filter: Some(condition), body })
            }
        }
        _ => None,
    }
}

fn only_element(list: &Ast) -> Option<&Ast> {
    let AstExpr::List(list) = &list.expr else { return None };
    list.elements.first()
}
