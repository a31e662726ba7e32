//! Tables that fit the screen: each declares its columns once, with the order in which they give way.
//!
//! In: [`Column`]s and rows of [`Cell`]s. Out: text. Where there is no width, as in a file, in a pipe and with `--wide`, all
//! columns are shown and nothing is cut.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::clean;
use crate::screen::{Paint, Screen};

/// What stands between two columns.
const GAP: usize = 2;

/// A column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    name: &'static str,
    /// Its turn to give way: 1 goes first, 0 stays.
    turn: u8,
    /// How short its texts may be cut before a column gives way; none for what means nothing when it is cut.
    cut_to: Option<usize>,
}

impl Column {
    /// A column of times, numbers, states or ids: whole or not there.
    pub(crate) const fn whole(name: &'static str, turn: u8) -> Column {
        Column { name, turn, cut_to: None }
    }

    /// A column of texts, which are cut before a column gives way.
    pub(crate) const fn text(name: &'static str, turn: u8, cut_to: usize) -> Column {
        Column { name, turn, cut_to: Some(cut_to) }
    }
}

/// A text with its paint.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    paint: Paint,
}

impl Cell {
    /// A state, in its colour.
    pub(crate) fn state(text: impl Into<String>) -> Cell {
        let text = text.into();
        Cell { paint: Paint::of_state(&text), text }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell { text, paint: Paint::Plain }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::from(text.to_owned())
    }
}

/// A table, as it is shown on this process's screen. What had to give way is named below it.
pub(crate) fn table(columns: &[Column], rows: impl Iterator<Item = Vec<Cell>>) -> String {
    draw(columns, rows, Screen::get())
}

/// The same with every column whole, and nothing cut.
pub(crate) fn unfitted(header: &[&'static str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let columns: Vec<Column> = header.iter().map(|name| Column::whole(name, 0)).collect();
    let rows = rows.map(|row| row.into_iter().map(Cell::from).collect());
    draw(&columns, rows, Screen { width: None, ..Screen::get() })
}

fn draw(columns: &[Column], rows: impl Iterator<Item = Vec<Cell>>, screen: Screen) -> String {
    let line = |cell: Cell| Cell { text: clean(cell.text.lines().next().unwrap_or_default()), ..cell };
    let rows: Vec<Vec<Cell>> = rows.map(|row| row.into_iter().map(line).collect()).collect();
    let needed: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.text.width());
            cells.chain([column.name.width()]).max().unwrap_or(0)
        })
        .collect();
    let widths = widths(columns, &needed, screen.width);
    let header = columns.iter().map(|column| Cell::from(column.name)).collect();
    let mut text: String = [header].iter().chain(&rows).map(|row| drawn_row(row, &widths, screen)).collect();
    let gone: Vec<&str> =
        columns.iter().zip(&widths).filter(|(_, width)| width.is_none()).map(|(column, _)| column.name).collect();
    if !gone.is_empty() {
        text += &format!("Not shown: {}; --wide shows all.\n", gone.join(", "));
    }
    text
}

fn drawn_row(row: &[Cell], widths: &[Option<usize>], screen: Screen) -> String {
    let mut line = String::new();
    for (cell, width) in row.iter().zip(widths) {
        let Some(width) = width else { continue };
        let text = cut(&cell.text, *width, screen.is_utf8);
        let padding = width.saturating_sub(text.width()) + GAP;
        line += &cell.paint.on(&text, screen);
        line += &" ".repeat(padding);
    }
    line.truncate(line.trim_end().len());
    line.push('\n');
    line
}

/// How wide each column is; none for one that gives way.
fn widths(columns: &[Column], needed: &[usize], width: Option<usize>) -> Vec<Option<usize>> {
    let mut widths: Vec<Option<usize>> = needed.iter().copied().map(Some).collect();
    let Some(width) = width else { return widths };
    let least = |at: usize| match columns[at].cut_to {
        Some(cut_to) => needed[at].min(cut_to.max(columns[at].name.width())),
        None => needed[at],
    };
    let total = |widths: &[Option<usize>]| {
        let shown: Vec<usize> = widths.iter().flatten().copied().collect();
        shown.iter().sum::<usize>() + GAP * shown.len().saturating_sub(1)
    };
    // Which columns stay, with texts as short as they may be.
    loop {
        let shortest: Vec<Option<usize>> = (0..columns.len()).map(|at| widths[at].map(|_| least(at))).collect();
        let goes = (0..columns.len()).filter(|at| widths[*at].is_some() && 0 < columns[*at].turn);
        match goes.min_by_key(|at| columns[*at].turn) {
            Some(at) if width < total(&shortest) => widths[at] = None,
            _ => break,
        }
    }
    // Texts get the place that is left, the longest one is cut first. Where not even that is enough, everything is cut.
    for floor in [&least as &dyn Fn(usize) -> usize, &|_| 1] {
        while width < total(&widths) {
            let longest = (0..columns.len()).filter(|at| widths[*at].is_some_and(|width| floor(*at) < width));
            let Some(at) = longest.max_by_key(|at| widths[*at]) else { break };
            widths[at] = widths[at].map(|width| width - 1);
        }
    }
    widths
}

/// A text that takes no more than so many cells of the terminal.
fn cut(text: &str, width: usize, is_utf8: bool) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(1);
    let fits = |letter: &char| {
        let taken = letter.width().unwrap_or(0);
        let is_left = taken <= left;
        left = left.saturating_sub(taken);
        is_left
    };
    text.chars().take_while(fits).chain([if is_utf8 { '…' } else { '~' }]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] =
        [Column::whole("TIME", 0), Column::whole("SLOT", 1), Column::text("WHAT", 0, 6), Column::text("AGENT", 2, 5)];

    fn screen(width: Option<usize>) -> Screen {
        Screen { width, has_color: false, is_utf8: true }
    }

    fn drawn(width: Option<usize>) -> String {
        let row = ["09:00:00", "09:00:00", "everything went well", "reporter"].map(Cell::from).to_vec();
        draw(&COLUMNS, [row].into_iter(), screen(width))
    }

    #[test]
    fn columns_give_way_in_their_order_and_are_named() {
        assert_eq!(
            drawn(None),
            "TIME      SLOT      WHAT                  AGENT\n09:00:00  09:00:00  everything went well  reporter\n"
        );
        assert_eq!(drawn(Some(50)), drawn(None), "what fits is left alone");
        assert_eq!(
            drawn(Some(40)),
            "TIME      SLOT      WHAT        AGENT\n09:00:00  09:00:00  everythin…  reporter\n",
            "texts are cut first"
        );
        let narrow = drawn(Some(25));
        assert!(narrow.contains("Not shown: SLOT; --wide shows all."), "{narrow}");
        assert!(narrow.contains("AGENT"), "{narrow}");
        let narrower = drawn(Some(18));
        assert!(narrower.contains("Not shown: SLOT, AGENT; --wide shows all."), "{narrower}");
    }

    #[test]
    fn a_table_fits_every_width() {
        for width in 5..120 {
            for line in drawn(Some(width)).lines().filter(|line| !line.starts_with("Not shown")) {
                assert!(line.width() <= width, "{width}: {line:?}");
            }
        }
    }

    #[test]
    fn letters_count_by_the_place_they_take() {
        assert_eq!(cut("日本語の名前", 6, true), "日本…");
        assert_eq!(cut("日本語の名前", 5, false), "日本~");
        assert_eq!(cut("früh", 4, true), "früh");
        let rows = [vec![Cell::from("日本"), "x".into()], vec!["früh".into(), "y".into()]];
        let columns = [Column::whole("A", 0), Column::whole("B", 0)];
        assert_eq!(draw(&columns, rows.into_iter(), screen(None)), "A     B\n日本  x\nfrüh  y\n");
    }

    #[test]
    fn paint_takes_no_place() {
        let painted = Screen { has_color: true, ..screen(None) };
        let columns = [Column::whole("STATE", 0), Column::whole("RUN", 0)];
        let text = draw(&columns, [vec![Cell::state("failed"), "1".into()]].into_iter(), painted);
        assert_eq!(text, "STATE   RUN\n\u{1b}[31mfailed\u{1b}[0m  1\n");
    }
}
