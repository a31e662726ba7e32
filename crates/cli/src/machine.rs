//! Which machine this is.

/// What two processes have in common whose loopback addresses are the same: the boot of the kernel and the network that they
/// see. Where the system does not tell, the name of the machine.
pub(crate) fn id() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let network = std::fs::read_link("/proc/self/ns/net");
    match (boot, network) {
        (Ok(boot), Ok(network)) => format!("{} {}", boot.trim(), network.display()),
        _ => name(),
    }
}

/// What people call it.
pub(crate) fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
