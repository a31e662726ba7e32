//! Taking in an export.

use std::io::BufRead;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use punctual_core::journal::{Entry, World};

use super::{MemoryStore, State};
use crate::error::Result;
use crate::transfer::{self, Imported, Importing};

impl MemoryStore {
    /// A store with what another has exported, and how many entries that were.
    pub fn import(from: &mut dyn BufRead, now: Timestamp) -> Result<(MemoryStore, u64)> {
        let new = Arc::new(Mutex::new(State::default()));
        let import = Import { state: State::default(), new: Arc::clone(&new) };
        let count = transfer::import(from, now, |_| Ok(Box::new(import)), |_, _| {})?;
        let store = MemoryStore::new();
        store.put_back(new.lock().expect("nobody panics with it").clone());
        Ok((store, count))
    }
}

struct Import {
    state: State,
    /// Where it goes when it is whole.
    new: Arc<Mutex<State>>,
}

impl Importing for Import {
    fn base(&mut self, base: &World) -> Result<()> {
        self.state.base = base.clone();
        Ok(())
    }

    fn page(&mut self, entries: &[Entry]) -> Result<()> {
        self.state.entries.extend_from_slice(entries);
        Ok(())
    }

    fn end(self: Box<Self>, imported: Imported) -> Result<()> {
        let Imported { world, nodes, planner, answers, now } = imported;
        let store = MemoryStore::new();
        store.put_back(State { world, planner, answers, ..self.state });
        store.begin_anew(now, 0)?;
        store.change(|state| nodes.iter().for_each(|node| state.remove_node(*node, now, true)));
        *self.new.lock().expect("nobody panics with it") = store.look(State::clone);
        Ok(())
    }
}
