//! How large a query may be, decided before anything walks it.
//!
//! Validation expands fragments, and fragments that spread others twice double
//! at every step: forty of them fit into two kilobytes and would keep a core
//! busy for years. So the expanded size is counted first, each fragment once.

use std::collections::HashMap;

use async_graphql::parser::parse_query;
use async_graphql::parser::types::{ExecutableDocument, Selection, SelectionSet};
use async_graphql::{Pos, ServerError};

use super::limits::Limits;

pub struct Bounds {
    query_bytes_max: usize,
    nesting_max: usize,
    fields_max: usize,
}

impl Bounds {
    pub fn new(limits: &Limits) -> Self {
        Self {
            query_bytes_max: limits.query_bytes_max,
            nesting_max: limits.recursion_max,
            fields_max: limits.complexity_max,
        }
    }

    pub fn parse(&self, query: &str) -> Result<ExecutableDocument, ServerError> {
        if query.len() > self.query_bytes_max {
            let message = format!(
                "the query is too complex: it has {} bytes, the limit is {}; pass values as variables",
                query.len(),
                self.query_bytes_max
            );
            return Err(ServerError::new(message, None));
        }
        // The parser recurses: nesting is bounded before it starts.
        if nesting(query) > self.nesting_max {
            let message =
                format!("the query is nested too deep: the limit is {} brackets in each other", self.nesting_max);
            return Err(ServerError::new(message, None));
        }
        let document = parse_query(query)?;
        self.check_size(&document)?;
        Ok(document)
    }

    fn check_size(&self, document: &ExecutableDocument) -> Result<(), ServerError> {
        let mut counter = Counter { document, counted: HashMap::new() };
        for (_, operation) in document.operations.iter() {
            let fields = counter.fields(&operation.node.selection_set.node);
            if fields > self.fields_max || operation.node.variable_definitions.len() > self.fields_max {
                let message = format!(
                    "the query is too complex: with its fragments it has more than {} fields or variables",
                    self.fields_max
                );
                return Err(ServerError::new(message, Some(operation.pos)));
            }
        }
        // Validation looks at every fragment, used or not.
        let unused: usize = document
            .fragments
            .values()
            .map(|fragment| counter.fields(&fragment.node.selection_set.node))
            .fold(0, usize::saturating_add);
        if unused > self.fields_max.saturating_mul(FRAGMENT_SHARE) {
            return Err(ServerError::new(
                "the query is too complex: its fragments have too many fields",
                Some(Pos::default()),
            ));
        }
        Ok(())
    }
}

/// Fragments may have this many times the fields of an operation: they are
/// counted once each here, and several may be used twice.
const FRAGMENT_SHARE: usize = 4;

struct Counter<'a> {
    document: &'a ExecutableDocument,
    /// `None` while a fragment is being counted: a cycle, which validation
    /// refuses by name.
    counted: HashMap<&'a str, Option<usize>>,
}

impl<'a> Counter<'a> {
    fn fields(&mut self, set: &'a SelectionSet) -> usize {
        set.items.iter().map(|item| self.selection(&item.node)).fold(0, usize::saturating_add)
    }

    fn selection(&mut self, selection: &'a Selection) -> usize {
        match selection {
            Selection::Field(field) => self.fields(&field.node.selection_set.node).saturating_add(1),
            Selection::InlineFragment(fragment) => self.fields(&fragment.node.selection_set.node).saturating_add(1),
            // One for the spread itself, so that empty ones count too.
            Selection::FragmentSpread(spread) => self.fragment(&spread.node.fragment_name.node).saturating_add(1),
        }
    }

    fn fragment(&mut self, name: &'a str) -> usize {
        if let Some(known) = self.counted.get(name) {
            return known.unwrap_or(0);
        }
        let Some(fragment) = self.document.fragments.get(name) else { return 0 };
        self.counted.insert(name, None);
        let fields = self.fields(&fragment.node.selection_set.node);
        self.counted.insert(name, Some(fields));
        fields
    }
}

/// The deepest nesting of brackets outside of strings and comments.
fn nesting(query: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = query.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' | b'(' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' | b')' => depth = depth.saturating_sub(1),
            b'#' => while bytes.next_if(|byte| *byte != b'\n').is_some() {},
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
    }
    deepest
}

/// Up to the closing quote. A block string is three strings in a row to this,
/// which is right unless it holds quotes; then its brackets count too.
fn skip_string(bytes: &mut std::iter::Peekable<std::str::Bytes<'_>>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => _ = bytes.next(),
            b'"' | b'\n' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expected: Result<(), &str>) {
        let limits = Limits { complexity_max: 100, recursion_max: 10, query_bytes_max: 20_000, ..Limits::default() };
        let result = Bounds::new(&limits).parse(query);
        match (result, expected) {
            (Ok(_), Ok(())) => {}
            (Err(error), Err(text)) => assert!(error.message.contains(text), "{}", error.message),
            (result, _) => panic!("{query:.80}: {:?}", result.err()),
        }
    }

    #[test]
    fn doubling_fragments_are_counted_not_expanded() {
        let chain: String =
            (0..200).map(|at| format!("fragment F{at} on Query {{ ...F{} ...F{} }} ", at + 1, at + 1)).collect();
        check(&format!("{{ ...F0 }} {chain} fragment F200 on Query {{ a }}"), Err("too complex"));
    }

    #[test]
    fn sizes() {
        check("{ a { b } }", Ok(()));
        check("{ ...F } fragment F on Query { ...F }", Ok(()));
        check(&format!("{{ {} }}", "a ".repeat(101)), Err("too complex"));
        check(&format!("{{ a }} fragment F on Query {{ {} }}", "b ".repeat(500)), Err("too complex"));
        check(
            &format!("query({}) {{ a }}", (0..200).map(|at| format!("$v{at}: Int ")).collect::<String>()),
            Err("too complex"),
        );
        check(&" ".repeat(30_000), Err("bytes"));
    }

    #[test]
    fn nesting_is_bounded_before_parsing() {
        check(&format!("{}a{}", "{ a ".repeat(9), "}".repeat(9)), Ok(()));
        check(&"{ a ".repeat(5_000), Err("nested too deep"));
        check(&format!("{{ a(x: {}) }}", "[".repeat(5_000)), Err("nested too deep"));
        check(r#"{ a(x: "{{{{{{{{{{{{{{ \" {{{{") } # {{{{{{{{{{{{{{"#, Ok(()));
    }
}
