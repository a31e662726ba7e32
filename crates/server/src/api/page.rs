//! Pages of lists.

use axum::http::HeaderMap;
use axum::http::header::HeaderName;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::error::ApiError;

/// The most items of a page.
const SIZE_MAX: usize = 1_000;

/// Which page.
#[derive(Debug, Clone, Copy, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageParams {
    /// Which page, from 0.
    pub(crate) page: Option<usize>,
    /// How many items it has: 1 to 1,000.
    #[param(minimum = 1, maximum = 1_000)]
    pub(crate) size: Option<usize>,
}

impl PageParams {
    /// How many items come before the page, and how many it has at most.
    pub(crate) fn range(self, default: usize) -> Result<(usize, usize), ApiError> {
        let size = self.size.unwrap_or(default);
        if !(1..=SIZE_MAX).contains(&size) {
            return Err(ApiError::invalid("size", format!("{size} is out of range"), format!("use 1 to {SIZE_MAX}")));
        }
        let page = self.page.unwrap_or(0);
        let offset = page.checked_mul(size);
        offset
            .map(|offset| (offset, size))
            .ok_or_else(|| ApiError::invalid("page", "there is no such page", "use less"))
    }
}

/// The greatest number that an entry, or a piece of output, can have: what both stores can count to.
const NUMBER_MAX: u64 = i64::MAX as u64;

/// The number after which a client goes on, if it is one that the store can have given.
pub(crate) fn after(number: Option<u64>) -> Result<Option<u64>, ApiError> {
    match number {
        Some(number) if NUMBER_MAX < number => {
            Err(ApiError::invalid("after", format!("{number} is out of range"), format!("use 0 to {NUMBER_MAX}")))
        }
        number => Ok(number),
    }
}

/// How many there are in all.
pub(crate) fn total(count: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static("x-total-count"), count.into());
    headers
}
