//! Small pieces of English: lists and ordinals.

/// `a`, `a and b`, `a, b and c`; the last word is the caller's.
pub(crate) fn list(items: &[String], last: &str) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [rest @ .., end] => format!("{} {last} {end}", rest.join(", ")),
    }
}

/// A list of numbers in which three or more in a row become `a to b`.
pub(crate) fn runs(values: &[u32], name: impl Fn(u32) -> String) -> String {
    list(&run_items(values, name), "and")
}

/// The items of [`runs`], before they become a list.
pub(crate) fn run_items(values: &[u32], name: impl Fn(u32) -> String) -> Vec<String> {
    let mut items = vec![];
    let mut rest = values;
    while let [first, ..] = rest {
        let length = rest.iter().zip(*first..).take_while(|(value, expected)| *value == expected).count();
        let (run, behind) = rest.split_at(length);
        match run {
            [first, _, .., last] => items.push(format!("{} to {}", name(*first), name(*last))),
            _ => items.extend(run.iter().map(|value| name(*value))),
        }
        rest = behind;
    }
    items
}

/// `1st`, `2nd`, `3rd`, `4th`, `11th`, `21st`.
pub(crate) fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (1, tens) if tens != 11 => "st",
        (2, tens) if tens != 12 => "nd",
        (3, tens) if tens != 13 => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(runs(&[1, 2, 3, 5, 8, 9], |n| n.to_string()), "1 to 3, 5, 8 and 9");
        assert_eq!(runs(&[7], |n| n.to_string()), "7");
        assert_eq!([1, 2, 3, 4, 11, 12, 13, 21, 22].map(ordinal).join(" "), "1st 2nd 3rd 4th 11th 12th 13th 21st 22nd");
    }
}
