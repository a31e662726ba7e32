//! A terminal with somebody in front of it.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, ExitStatus, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// What every question ends with.
const QUESTION: &str = "[y/N] ";

/// Runs a command at a terminal of so many columns, if it knows how many, and answers its questions.
pub(crate) fn run(mut command: Command, columns: Option<u16>, answer: &str) -> (String, ExitStatus) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    if let Some(ws_col) = columns {
        tcsetwinsize(&ours, Winsize { ws_row: 50, ws_col, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    }
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, vec![]).unwrap();
    let theirs = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let stdio = || Stdio::from(theirs.try_clone().unwrap());
    let mut child = command.stdin(stdio()).stdout(stdio()).stderr(stdio()).spawn().unwrap();
    // Only whoever runs there holds the other end now: its end is the end of what we read.
    drop((command, theirs));
    let mut ours = File::from(ours);
    let (mut screen, mut answered, mut piece) = (String::new(), 0, [0; 4_096]);
    while let Ok(count @ 1..) = ours.read(&mut piece) {
        screen += &String::from_utf8_lossy(&piece[..count]);
        while answered < screen.matches(QUESTION).count() {
            writeln!(ours, "{answer}").unwrap();
            answered += 1;
        }
    }
    (screen, child.wait().unwrap())
}
