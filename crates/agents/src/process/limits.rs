//! Resource limits: what the work may use, and taking them upon oneself.

use rustix::io;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// How many files may be open at once, unless the operator says otherwise: what most systems give a login.
pub const OPEN_FILES_DEFAULT: u64 = 1024;

/// How much later than asked to stop (`SIGXCPU`) work that used up its processor time is killed.
const CPU_GRACE_SECONDS: u64 = 2;

/// What the work may use. A limit above what the server itself has becomes the server's.
///
/// All but `processes` hold for each process of the run alone, not for their sum. A core file is never written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Seconds of processor time; `SIGXCPU` at the limit, `SIGKILL` two seconds of it later.
    pub cpu_seconds: Option<u64>,
    /// Bytes of address space, which is more than memory: a runtime may reserve much of it and use little.
    pub address_space_bytes: Option<u64>,
    /// Open files.
    pub open_files: u64,
    /// Processes and threads of the **user** that the server runs as, its own and those of other runs among them. Linux
    /// does not hold root to it.
    pub processes: Option<u64>,
    /// Bytes of the largest file that may be written; `SIGXFSZ` at the limit.
    pub file_size_bytes: Option<u64>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            cpu_seconds: None,
            address_space_bytes: None,
            open_files: OPEN_FILES_DEFAULT,
            processes: None,
            file_size_bytes: None,
        }
    }
}

impl Limits {
    /// Puts this process, and whatever it becomes or starts, under the limits. There is no way back.
    pub(super) fn take_on(&self) -> io::Result<()> {
        lower(Resource::Core, Some(0), 0)?;
        lower(Resource::Cpu, self.cpu_seconds, CPU_GRACE_SECONDS)?;
        lower(Resource::Nofile, Some(self.open_files), 0)?;
        lower(Resource::Nproc, self.processes, 0)?;
        lower(Resource::Fsize, self.file_size_bytes, 0)?;
        // Last, as whatever comes after it may find no memory.
        lower(Resource::As, self.address_space_bytes, 0)
    }
}

/// Sets both limits of a resource, the hard one so much higher, and neither higher than the hard one of today: only a
/// privileged process could raise it, and asking for less than everything is not an error.
fn lower(resource: Resource, limit: Option<u64>, headroom: u64) -> io::Result<()> {
    let Some(limit) = limit else { return Ok(()) };
    let ceiling = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let maximum = limit.saturating_add(headroom).min(ceiling);
    setrlimit(resource, Rlimit { current: Some(limit.min(maximum)), maximum: Some(maximum) })
}
