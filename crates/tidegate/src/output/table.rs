//! Rows in columns.

use tidegate_model::terminal::is_unprintable;

/// A cell is cut here: a table is for looking, `-o yaml` for reading.
const CELL_CHARS_MAX: usize = 120;
const GAP: &str = "   ";

/// Widths only grow, so that rows which come later line up with the header.
pub struct Table {
    header: Vec<String>,
    widths: Vec<usize>,
    is_begun: bool,
    cell_chars_max: usize,
}

impl Table {
    pub fn new(header: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let header: Vec<String> = header.into_iter().map(Into::into).collect();
        let widths = header.iter().map(|name| name.chars().count()).collect();
        Self { header, widths, is_begun: false, cell_chars_max: CELL_CHARS_MAX }
    }

    /// Cuts no cell.
    pub fn whole(self) -> Self {
        Self { cell_chars_max: usize::MAX, ..self }
    }

    /// The text of these rows; the first time with the header above them.
    pub fn render(&mut self, rows: &[Vec<String>]) -> String {
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| self.shown(cell)).collect()).collect();
        for row in &rows {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let header = (!std::mem::replace(&mut self.is_begun, true)).then_some(&self.header);
        header.into_iter().chain(&rows).map(|row| self.line(row)).collect()
    }

    fn line(&self, row: &[String]) -> String {
        let cells: Vec<String> = row.iter().zip(&self.widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        format!("{}\n", cells.join(GAP).trim_end())
    }

    fn shown(&self, cell: &str) -> String {
        match cell.char_indices().nth(self.cell_chars_max) {
            Some((end, _)) => format!("{}…", harmless(&cell[..end])),
            None => harmless(cell),
        }
    }
}

/// Without control characters, which could move a terminal's cursor.
pub(super) fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => shown.push_str("\\n"),
            letter if is_unprintable(letter) => shown.push('\u{fffd}'),
            letter => shown.push(letter),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(ToString::to_string).collect()).collect()
    }

    fn check(cells: &[&[&str]], expected: Expect) {
        expected.assert_eq(&Table::new(["NAME", "AGE"]).render(&rows(cells)));
    }

    #[test]
    fn columns_line_up() {
        check(
            &[&["a", "1s"], &["a-long-name", ""], &["größe", "3d"]],
            expect![[r#"
            NAME          AGE
            a             1s
            a-long-name
            größe         3d
        "#]],
        );
    }

    #[test]
    fn no_control_character_gets_out() {
        check(
            &[&["a\x1b[31m\u{202e}b\nc", "\r1s"]],
            expect![[r#"
                NAME          AGE
                a�[31m�b\nc   �1s
            "#]],
        );
    }

    #[test]
    fn a_long_cell_is_cut() {
        let text = Table::new(["X"]).render(&rows(&[&[&"x".repeat(1_000)]]));
        assert_eq!(text.lines().nth(1).map(|line| line.chars().count()), Some(CELL_CHARS_MAX + 1));
    }

    #[test]
    fn the_header_comes_once() {
        let mut table = Table::new(["NAME"]);
        assert_eq!(table.render(&[]), "NAME\n");
        assert_eq!(table.render(&rows(&[&["a"]])), "a\n");
    }
}
