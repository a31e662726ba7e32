//! No text of the file may hold a NUL character: stores do not keep one, and no program is given one.

use punctual_core::storable::NUL_SHOWN;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Place, Problems};
use super::section::joined;

const FIX: &str = "leave it out";

/// Reports every key and every text that holds one.
pub(super) fn refuse(table: &DeTable<'_>, problems: &Problems<'_>) {
    refuse_in_table(table, "", problems);
}

fn refuse_in_table(table: &DeTable<'_>, path: &str, problems: &Problems<'_>) {
    for (key, value) in table {
        let path = joined(path, &key.get_ref().replace('\0', NUL_SHOWN));
        if key.get_ref().contains('\0') {
            problems.add(&Place::File(key.span()), &path, "this key holds a NUL character", FIX);
        }
        refuse_in_value(value, &path, problems);
    }
}

/// As deep as TOML's own reader lets a value be.
fn refuse_in_value(value: &Spanned<DeValue<'_>>, path: &str, problems: &Problems<'_>) {
    match value.get_ref() {
        DeValue::String(text) if text.contains('\0') => {
            problems.add(&Place::File(value.span()), path, "this text holds a NUL character", FIX);
        }
        DeValue::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                refuse_in_value(value, &format!("{path}[{index}]"), problems);
            }
        }
        DeValue::Table(table) => refuse_in_table(table, path, problems),
        _ => {}
    }
}
