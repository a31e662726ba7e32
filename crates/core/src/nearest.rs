//! Did you mean: the known name that is nearest to an unknown one.

/// The name that was probably meant, if one is near enough.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    // A long text is no slip of the finger, and comparing it would take long.
    if 64 < given.chars().count() {
        return None;
    }
    let nearest = known.clone().into_iter().min_by_key(|name| distance(given, name));
    let is_near = |name: &&str| distance(given, name) <= (given.len().max(name.len()) / 3).max(1);
    let is_part = |name: &&str| 4 <= given.len() && name.contains(given) || 4 <= name.len() && given.contains(*name);
    nearest.filter(is_near).or_else(|| known.into_iter().find(is_part))
}

/// How many letters have to be changed, added, left out or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    let mut before: Vec<usize> = vec![];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for row in 1..=a.len() {
        let mut current = vec![row];
        for column in 1..=b.len() {
            let changed = above[column - 1] + usize::from(a[row - 1] != b[column - 1]);
            let mut best = changed.min(above[column] + 1).min(current[column - 1] + 1);
            if 1 < row && 1 < column && a[row - 1] == b[column - 2] && a[row - 2] == b[column - 1] {
                best = best.min(before[column - 2] + 1);
            }
            current.push(best);
        }
        before = std::mem::replace(&mut above, current);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_forgiven_and_guesses_are_not_made() {
        let known = ["timezone", "catch_up", "catch_up_max", "cron", "max_attempts"];
        for (given, meant) in [
            ("timezon", Some("timezone")),
            ("corn", Some("cron")),
            ("zone", Some("timezone")),
            ("catchup", Some("catch_up")),
            ("attempts", Some("max_attempts")),
            ("colour", None),
            ("x", None),
        ] {
            assert_eq!(nearest(given, known), meant, "{given}");
        }
    }
}
