//! Shared values: what many schedules have the same of is kept once.
//!
//! A million schedules have few policies, zones, agents and triggers between them. [`Shared::new`] looks whether an equal value is
//! alive and takes that. So what something is never depends on it: only how much memory it takes does.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The most values that are found again. What is beyond that is kept as often as it is made.
const KNOWN_MAX: usize = 65_536;

/// The values that are found again, of all types, by type and hash.
static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

/// A value that takes memory once, however many have an equal one. Cheap to clone; changing it changes no other.
///
/// Values that are equal must be the same in every respect: either may stand for the other.
#[derive(Clone)]
pub struct Shared<T>(Arc<T>);

/// What can be shared.
pub trait Sharable: Eq + Hash + Send + Sync + 'static {}

impl<T: Eq + Hash + Send + Sync + 'static> Sharable for T {}

impl<T: Sharable> Shared<T> {
    /// Shares a value with every equal one that is alive.
    pub fn new(value: T) -> Shared<T> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one((TypeId::of::<T>(), &value));
        Shared(KNOWN.lock().unwrap_or_else(PoisonError::into_inner).share(hash, value))
    }
}

/// Values by their hashes. One that is not used any more leaves its place when room is needed.
#[derive(Default)]
struct Known(HashMap<u64, Weak<dyn Any + Send + Sync>>);

impl Known {
    fn share<T: Sharable>(&mut self, hash: u64, value: T) -> Arc<T> {
        let known = self.0.get(&hash).and_then(Weak::upgrade).and_then(|known| known.downcast::<T>().ok());
        if let Some(known) = known.filter(|known| **known == value) {
            return known;
        }
        self.make_room();
        let value = Arc::new(value);
        let kept: Weak<T> = Arc::downgrade(&value);
        self.0.insert(hash, kept);
        value
    }

    /// Forgets what is used once or not at all; and everything, if that is not enough to go on for a while.
    fn make_room(&mut self) {
        if self.0.len() < KNOWN_MAX {
            return;
        }
        self.0.retain(|_, value| 1 < value.strong_count());
        if KNOWN_MAX / 2 < self.0.len() {
            self.0.clear();
        }
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Shared<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl<T: Eq> Eq for Shared<T> {}

impl<T: PartialEq> PartialEq<T> for Shared<T> {
    fn eq(&self, other: &T) -> bool {
        **self == *other
    }
}

impl<T: Hash> Hash for Shared<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T: Sharable + Default> Default for Shared<T> {
    fn default() -> Shared<T> {
        Shared::new(T::default())
    }
}

impl<T: Sharable> From<T> for Shared<T> {
    fn from(value: T) -> Shared<T> {
        Shared::new(value)
    }
}

impl From<&str> for Shared<String> {
    fn from(text: &str) -> Shared<String> {
        Shared::new(text.to_owned())
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Serialize> Serialize for Shared<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Sharable + Deserialize<'de>> Deserialize<'de> for Shared<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Shared<T>, D::Error> {
        T::deserialize(deserializer).map(Shared::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_same<T>(one: &Shared<T>, other: &Shared<T>) -> bool {
        Arc::ptr_eq(&one.0, &other.0)
    }

    #[test]
    fn equal_values_are_kept_once() {
        let (one, other) = (Shared::<String>::from("Europe/Oslo"), Shared::new("Europe/Oslo".to_owned()));
        assert!(is_same(&one, &other));
        let read: Shared<String> = serde_json::from_str("\"Europe/Oslo\"").expect("it is a text");
        assert!(is_same(&one, &read));
        assert_eq!(serde_json::to_string(&read).expect("it is plain data"), "\"Europe/Oslo\"");
    }

    #[test]
    fn changing_a_value_changes_no_other() {
        let before: Shared<String> = "mine".into();
        let mut changed = before.clone();
        changed.push('!');
        assert_eq!((before.as_str(), changed.as_str()), ("mine", "mine!"));
        let mut alone: Shared<String> = "alone".into();
        alone.push('!');
        assert_eq!(*Shared::<String>::from("alone"), "alone");
    }

    #[test]
    fn what_many_have_stays_known_beside_what_each_has_alone() {
        let mut known = Known::default();
        let hash_of = |number: usize| number as u64;
        let many = [known.share(hash_of(0), 0), known.share(hash_of(0), 0)];
        let alone: Vec<Arc<usize>> = (1..=2 * KNOWN_MAX).map(|number| known.share(hash_of(number), number)).collect();
        assert!(known.0.len() <= KNOWN_MAX, "{}", known.0.len());
        assert!(Arc::ptr_eq(&many[0], &known.share(hash_of(0), 0)) && alone.len() == 2 * KNOWN_MAX);
    }
}
