//! Names of fields: how they are written, and which are nearly others.

/// The longest name that is compared with others.
const NAME_MAX: usize = 40;

/// The name in snake case: `promptTokens` is `prompt_tokens`.
pub(super) fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut was_small = false;
    for char in name.chars() {
        if char.is_ascii_uppercase() {
            if was_small {
                snake.push('_');
            }
            snake.push(char.to_ascii_lowercase());
            was_small = false;
        } else {
            snake.push(char);
            was_small = char != '_';
        }
    }
    snake
}

/// The known name that one was probably meant to be.
///
/// Not a known one itself, and not its plural, which may well be something else.
pub(super) fn meant(name: &str, known: &[&'static str]) -> Option<&'static str> {
    if NAME_MAX < name.len() || known.contains(&name) {
        return None;
    }
    let bare = bare(name);
    known.iter().copied().find(|known| {
        let other = self::bare(known);
        let is_plural = |one: &str, many: &str| many.strip_suffix('s') == Some(one);
        if bare == other {
            return true;
        }
        let most = match other.len() {
            0..=3 => 0,
            4..=7 => 1,
            _ => 2,
        };
        !is_plural(&bare, &other) && !is_plural(&other, &bare) && distance(&bare, &other) <= most
    })
}

fn bare(name: &str) -> String {
    name.chars().filter(|char| !matches!(char, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

/// How many letters have to be added, left out, changed or swapped with the next.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let is_other = usize::from(a[i - 1] != b[j - 1]);
            let mut least = (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + is_other);
            if 1 < i && 1 < j && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_snakes() {
        for (name, expected) in [
            ("promptTokens", "prompt_tokens"),
            ("prompt_tokens", "prompt_tokens"),
            ("estimatedCostUsd", "estimated_cost_usd"),
            ("costUSD", "cost_usd"),
            ("model", "model"),
        ] {
            assert_eq!(snake(name), expected);
        }
    }

    #[test]
    fn what_is_nearly_a_name_is_meant_to_be_it() {
        let known = ["summary", "refs", "tools", "error", "nextRunAt"];
        for (name, expected) in [
            ("Summary", Some("summary")),
            ("sumary", Some("summary")),
            ("summray", Some("summary")),
            ("NextRunAt", Some("nextRunAt")),
            ("nextRun", Some("nextRunAt")),
            ("summary", None),
            ("summaries", None),
            ("errors", None),
            ("ref", None),
            ("tool", None),
            ("mirror", None),
            ("status", None),
        ] {
            assert_eq!(meant(name, &known), expected, "{name}");
        }
    }
}
