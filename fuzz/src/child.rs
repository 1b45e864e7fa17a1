//! One run of a tool in a process of its own, limited in time and memory.
//!
//! The tool is a function of this very program: a fork is ready in a millisecond, where starting an
//! executable that holds MLIR takes fifty.

use std::ffi::{CStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// A tool's `main`: arguments, the program's name first, to exit code.
pub type Main = fn(Vec<OsString>) -> u8;

/// Another program that runs the tools, such as valgrind; everything takes longer then.
#[derive(Clone, Debug)]
pub struct Under {
    /// It and its arguments.
    pub command: Vec<OsString>,
    /// Where the tools are that it runs.
    pub tools: PathBuf,
    /// How much longer everything may take.
    pub slowness: u32,
}

/// Processor time that a run may take.
pub const MOST_SECONDS: u64 = 10;
/// Memory that a run may use.
pub const MOST_BYTES: u64 = 2 << 30;
/// Time that may pass: only what waits without computing needs so much of a busy machine.
const MOST_WALL_SECONDS: u32 = 120;
/// Address space. Stacks are reserved generously, so this only keeps the machine alive.
const MOST_ADDRESSES: u64 = 8 << 30;

/// Where a run's stderr goes, in the current folder.
pub const STDERR: &str = "stderr";

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Ending {
    /// How it ended.
    pub how: How,
    /// What it wrote to standard error.
    pub stderr: String,
    /// Of the processor.
    pub time: Duration,
    /// The most memory that it had at once, in bytes.
    pub peak_bytes: u64,
}

/// Runs a tool in the current folder, its stderr in the file [`STDERR`] and its stdout in `stdout`.
///
/// The calling process must have one thread only.
pub fn run(main: Main, arguments: &[OsString], under: Option<&Under>) -> io::Result<Ending> {
    // SAFETY: this process has one thread, so the child is a whole copy of it.
    let child = unsafe { libc::fork() };
    match child {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            prepare(under.map_or(1, |under| under.slowness));
            match under {
                None => std::process::exit(i32::from(main(arguments.to_vec()))),
                Some(under) => become_tool(under, arguments),
            }
        }
        _ => {
            let (how, time, peak_bytes) = wait(child)?;
            let stderr = std::fs::read(STDERR).unwrap_or_default();
            let stderr = String::from_utf8_lossy(&stderr).into_owned();
            Ok(Ending {
                how,
                stderr,
                time,
                peak_bytes,
            })
        }
    }
}

/// Ends as the tool's own executable, run by another program.
fn become_tool(under: &Under, arguments: &[OsString]) -> ! {
    if let ([program, options @ ..], [tool, rest @ ..]) = (under.command.as_slice(), arguments) {
        let path = under.tools.join(tool);
        let error = Command::new(program)
            .args(options)
            .arg(path)
            .args(rest)
            .exec();
        eprintln!("panicked at: cannot run {}: {error}", program.display());
    }
    std::process::exit(101)
}

/// Limits this process and gives it its streams.
fn prepare(slowness: u32) {
    let limit = |resource, most: u64| {
        let limit = libc::rlimit {
            rlim_cur: most,
            rlim_max: most + 1,
        };
        // SAFETY: the structure is valid; a limit that cannot be set leaves the one there was.
        unsafe { libc::setrlimit(resource, &limit) };
    };
    limit(libc::RLIMIT_CPU, MOST_SECONDS * u64::from(slowness));
    if slowness == 1 {
        limit(libc::RLIMIT_AS, MOST_ADDRESSES);
    }
    limit(libc::RLIMIT_CORE, 0);
    limit(libc::RLIMIT_FSIZE, 1 << 30);
    // SAFETY: no handler is set, so the signal ends the process.
    unsafe { libc::alarm(MOST_WALL_SECONDS * slowness) };
    redirect(c"/dev/null", libc::O_RDONLY, 0);
    let write = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC;
    redirect(c"stdout", write, 1);
    redirect(c"stderr", write, 2);
}

fn redirect(path: &CStr, flags: i32, to: i32) {
    // SAFETY: the path ends with NUL; a stream that cannot be opened leaves the one there was.
    unsafe {
        let file = libc::open(path.as_ptr(), flags, 0o644);
        if file >= 0 {
            libc::dup2(file, to);
            libc::close(file);
        }
    }
}

fn wait(child: libc::pid_t) -> io::Result<(How, Duration, u64)> {
    let mut status = 0;
    // SAFETY: numbers may be zero.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are valid, and the child is this process's own.
        if unsafe { libc::wait4(child, &mut status, 0, &mut usage) } == child {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let how = match libc::WIFSIGNALED(status) {
        true => How::Signal(libc::WTERMSIG(status)),
        false => How::Code(libc::WEXITSTATUS(status)),
    };
    let time = |time: libc::timeval| {
        Duration::new(time.tv_sec as u64, 0) + Duration::from_micros(time.tv_usec as u64)
    };
    let peak = usage.ru_maxrss as u64 * 1024;
    Ok((how, time(usage.ru_utime) + time(usage.ru_stime), peak))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Forking needs a process of one thread, which a test harness is not; what a fork does here calls
    // nothing that another thread may hold.
    fn loops(_: Vec<OsString>) -> u8 {
        loop {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_run_that_never_ends_is_stopped() {
        let ending = run(loops, &[], None).expect("a child");
        for stream in ["stdout", STDERR] {
            // Where the test runs, as its process cannot go elsewhere for one of its threads.
            let _ = std::fs::remove_file(stream);
        }
        assert_eq!(ending.how, How::Signal(libc::SIGXCPU));
        // The kernel counts in ticks, more of them than it tells where the machine is busy.
        assert!(ending.time.as_secs_f64() > MOST_SECONDS as f64 * 0.5);
    }
}
