//! The model against the suite: as many nodes share it, and as one server has it for itself.

mod shared {
    punctual_store::conformance::suite!(punctual_store::memory::MemoryStore::new());
}

mod exclusive {
    punctual_store::conformance::suite!(punctual_store::memory::MemoryStore::exclusive());
}
