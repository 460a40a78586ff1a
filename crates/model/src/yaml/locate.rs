//! From a field path to the line that holds it.
//!
//! The text is read a second time, only when there is something to report:
//! a parse that succeeds keeps no positions.

use granit_parser::Event;

use super::parse::event_parser;

/// The line, counted from 1, of the field at `path` in the first document of
/// `text`, or of the deepest parent of it that is there. Paths are written as
/// in a `FieldError`: `spec.options[0].name`, `metadata.labels[app]`.
pub fn line_of(text: &str, path: &str) -> Option<usize> {
    let target = segments(path);
    let mut search = Search { target: &target, stack: Vec::new(), best: None };
    for item in event_parser(text) {
        let Ok((event, span)) = item else { break };
        if matches!(event, Event::DocumentEnd) || !search.accept(&event, span.start.line()) {
            break;
        }
    }
    search.best.map(|(_, line)| line)
}

fn segments(path: &str) -> Vec<&str> {
    let mut segments = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (segment, after) = match rest.strip_prefix('[') {
            Some(inner) => inner.split_once(']').unwrap_or((inner, "")),
            None => rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())),
        };
        segments.push(segment);
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    segments
}

struct Search<'t> {
    target: &'t [&'t str],
    stack: Vec<Level>,
    /// How many segments matched, and the line.
    best: Option<(usize, usize)>,
}

struct Level {
    position: Position,
    /// Whether the path to this collection is a prefix of the target.
    on_path: bool,
}

enum Position {
    Item(usize),
    Key,
    /// After a key; `true` if it is the next segment.
    Value(bool),
}

impl Search<'_> {
    /// `false` once nothing better can follow.
    fn accept(&mut self, event: &Event<'_>, line: usize) -> bool {
        match event {
            Event::MappingStart(..) => self.node(line, None, Some(Position::Key)),
            Event::SequenceStart(..) => self.node(line, None, Some(Position::Item(0))),
            Event::Scalar(text, ..) => self.node(line, Some(text), None),
            Event::Alias(_) => self.node(line, None, None),
            Event::MappingEnd | Event::SequenceEnd => {
                self.stack.pop();
                self.after_node();
            }
            _ => {}
        }
        self.best.is_none_or(|(depth, _)| depth < self.target.len())
    }

    fn node(&mut self, line: usize, text: Option<&str>, opens: Option<Position>) {
        let depth = self.stack.len();
        let next = depth.checked_sub(1).and_then(|at| self.target.get(at)).copied();
        let on_path = match self.stack.last_mut() {
            None => true,
            Some(level) if !level.on_path => false,
            Some(Level { position: Position::Item(at), .. }) => next == Some(at.to_string().as_str()),
            Some(Level { position: Position::Value(matched), .. }) => *matched,
            Some(level) => {
                // A key's own line is the field's: its value may start below.
                let matched = text.is_some() && text == next;
                if matched {
                    self.best = Some((depth, line));
                }
                level.position = Position::Value(matched);
                return;
            }
        };
        if on_path && self.best.is_none_or(|(best, _)| best < depth) {
            self.best = Some((depth, line));
        }
        match opens {
            Some(position) => self.stack.push(Level { position, on_path }),
            None => self.after_node(),
        }
    }

    fn after_node(&mut self) {
        match self.stack.last_mut().map(|level| &mut level.position) {
            Some(Position::Item(at)) => *at += 1,
            Some(position @ Position::Value(_)) => *position = Position::Key,
            Some(Position::Key) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
apiVersion: v1
kind: A
metadata:
  name: a
  labels:
    app.kubernetes.io/name: x
spec:
  # Not this one.
  options:
  - name: color
    values: [black,
      white]
  -
    name: size
  text: |
    many
    lines
  other:
    options: []
";

    #[test]
    fn finds_the_field_or_its_deepest_parent() {
        for (path, line) in [
            ("", 1),
            ("kind", 2),
            ("metadata", 3),
            ("metadata.labels[app.kubernetes.io/name]", 6),
            ("metadata.labels[other]", 5),
            ("spec.options", 9),
            ("spec.options[0]", 10),
            ("spec.options[0].name", 10),
            ("spec.options[0].values[1]", 12),
            ("spec.options[1].name", 14),
            ("spec.options[7].name", 9),
            ("spec.text", 15),
            ("spec.other.options", 19),
            ("spec.missing.deep", 7),
            ("nothing", 1),
        ] {
            assert_eq!(line_of(TEXT, path), Some(line), "{path}");
        }
    }

    #[test]
    fn finds_fields_of_json() {
        let text = "{\n\t\"a\": {\n\t\t\"b\": [1,\n\t\t2]}}";
        assert_eq!(line_of(text, "a.b[1]"), Some(4));
    }

    #[test]
    fn text_that_breaks_off_gives_what_came_before() {
        assert_eq!(line_of("a:\n  b: 1\n c: [", "a.b"), Some(2));
        assert_eq!(line_of("", "a"), None);
    }
}
