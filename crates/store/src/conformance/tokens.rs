//! Claims about the role [`crate::Tokens`]: who may come over the API.
#![expect(missing_docs, reason = "the names are the claims")]

use punctual_core::{Actor, By, Role, Token, TokenId};

use super::bench::{ALL, Bench};
use super::block_on;

fn token(bench: &mut Bench, name: &str) -> Token {
    Token {
        id: TokenId(bench.id()),
        name: name.to_owned(),
        role: Role::Editor,
        projects: Some(["p".to_owned()].into()),
        agents: [].into(),
        hash: "5e".repeat(32),
        created_at: bench.now,
        expires_at: None,
    }
}

fn tokens(bench: &Bench) -> Vec<Token> {
    block_on(bench.store.tokens()).unwrap().into_iter().map(|record| record.token).collect()
}

pub fn a_token_is_there_until_it_is_taken_back(bench: &mut Bench) {
    let (first, second) = (token(bench, "ada"), token(bench, "ben"));
    let by = Some(By::new(Actor::Operator));
    for token in [&first, &second] {
        block_on(bench.store.make_token(bench.now, token.clone(), by.clone())).unwrap();
    }
    assert_eq!(tokens(bench), [first.clone(), second.clone()]);
    assert!(block_on(bench.store.make_token(bench.now, first.clone(), None)).is_err(), "an id is new");
    assert!(block_on(bench.store.revoke_token(bench.now, first.id, by.clone())).unwrap());
    assert!(!block_on(bench.store.revoke_token(bench.now, first.id, by.clone())).unwrap(), "it is gone");
    assert_eq!(tokens(bench), [second]);
    let entries = block_on(bench.store.entries(0, ALL)).unwrap();
    assert_eq!(
        entries.iter().map(|entry| entry.body.kind()).collect::<Vec<_>>(),
        ["token_made", "token_made", "token_revoked"]
    );
    assert!(entries.iter().all(|entry| entry.body.by() == by.as_ref()));
    assert_eq!(block_on(bench.store.verify()).unwrap(), [""; 0]);
}

pub fn tokens_outlive_the_journal_that_tells_of_them(bench: &mut Bench) {
    let token = token(bench, "ada");
    block_on(bench.store.make_token(bench.now, token.clone(), None)).unwrap();
    for _ in 0..2 {
        bench.pass(60);
        block_on(bench.store.prune(bench.now)).unwrap();
    }
    assert_eq!(block_on(bench.store.entries(0, ALL)).unwrap(), []);
    assert_eq!(tokens(bench), [token]);
    assert_eq!(block_on(bench.store.verify()).unwrap(), [""; 0]);
}

pub fn when_a_token_was_used_is_noted_and_changes_nothing_else(bench: &mut Bench) {
    let (token, gone) = (token(bench, "ada"), token(bench, "ben"));
    block_on(bench.store.make_token(bench.now, token.clone(), None)).unwrap();
    let seq = bench.seq();
    bench.pass(5);
    block_on(bench.store.note_used(vec![(token.id, bench.now), (gone.id, bench.now)])).unwrap();
    let records = block_on(bench.store.tokens()).unwrap();
    assert_eq!(records.iter().map(|it| (it.token.id, it.used_at)).collect::<Vec<_>>(), [(token.id, Some(bench.now))]);
    assert_eq!(bench.seq(), seq);
    assert_eq!(block_on(bench.store.verify()).unwrap(), [""; 0]);
}
