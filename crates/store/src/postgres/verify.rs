//! Verifying: what the journal adds up to, against what the rows say, in one state of the database.

use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use super::fault::Done;
use super::load::{everything, read_head};
use super::rows::read_entry;
use crate::chain::Chain;
use crate::columns::{count, signed};
use punctual_kernel::compare::{differences, told};
use punctual_kernel::fold::Fold;

/// How many entries are read at a time.
const PAGE: i64 = 2_000;

/// Everything that is wrong with the state of the database that is being read, in words.
pub(super) async fn verify(client: &Client) -> Done<Vec<String>> {
    look(client).await.map(told)
}

async fn look(client: &Client) -> Done<Vec<String>> {
    let mut found = vec![];
    let pen = client.query_typed_one("SELECT first_seq, checksum_before FROM pen", &[]).await?;
    let first = count(pen.get(0));
    let mut chain = Chain { seq: first - 1, checksum: pen.get::<_, i64>(1).cast_unsigned() };
    let mut folded = Fold::beginning_at(first);
    loop {
        let params: [(&(dyn ToSql + Sync), Type); 2] = [(&signed(chain.seq), Type::INT8), (&PAGE, Type::INT8)];
        let rows = client.query_typed(include_str!("sql/entries.sql"), &params).await?;
        if rows.is_empty() {
            break;
        }
        for row in &rows {
            let entry = read_entry(row)?;
            if let Err(what) = chain.check(&entry) {
                found.push(what);
                return Ok(found);
            }
            let entry = entry.into_entry()?;
            if let Err(error) = folded.apply(&entry) {
                found.push(format!("entry {} of the journal cannot have happened: {error}", entry.seq));
                return Ok(found);
            }
        }
    }
    if let Err(what) = chain.check_head(read_head(client).await?) {
        found.push(what);
    }
    found.extend(differences(&folded.into_world(), &everything(client).await?));
    Ok(found)
}
