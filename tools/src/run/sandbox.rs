//! `--sandbox`: an artifact's code runs in a process that can compute and speak through the streams it was
//! given, and do nothing else.
//!
//! ```text
//! batch-run --sandbox        opens the input and the output, passes records on ([`supervise`])
//!   └─ batch-run --inside-sandbox    opens the artifact, the weights and its other files, loads the
//!                                    code, gives up everything else ([`enter`]), runs
//! ```
//!
//! What is given up is given up by seccomp: of the system calls only those are left that memory, threads,
//! clocks and open streams need. The others fail with `EPERM`, so that a library that merely asks (for the
//! size of a terminal, say) goes on without. Nothing that is mapped from then on can be run.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use super::args::Arguments;
use super::watch::Watch;
use crate::exit::{FAILED, SUCCESS, Stop};
use crate::output::{Document, Lines};

/// Runs this very command in a sandbox; its exit code is the sandbox's.
pub fn supervise(arguments: &Arguments, watch: &Watch) -> Result<u8, Stop> {
    let mut child = spawn(arguments)?;
    let output = match child.stdout.take() {
        None => None,
        Some(mut records) => {
            let mut output = Lines::open(&arguments.output)?;
            watch.keep(&output);
            if let Err(error) = std::io::copy(&mut records, &mut output) {
                // Nobody takes its records any more.
                let _ = child.kill();
                output.keep();
                return Err(Stop::usage(format!(
                    "cannot write {}: {error}",
                    arguments.output.display()
                )));
            }
            Some(output)
        }
    };
    let status = child
        .wait()
        .map_err(|error| Stop::usage(format!("cannot wait for the sandbox: {error}")))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    match (&output, code) {
        (Some(output), Some(SUCCESS | FAILED)) => output.finish()?,
        (Some(output), _) => output.keep(),
        (None, _) => {}
    }
    code.ok_or_else(|| {
        Stop::usage(format!(
            "the code of {} ended its sandbox by {}; records before that are in the output",
            arguments.model.path.display(),
            cause(status)
        ))
    })
}

fn spawn(arguments: &Arguments) -> Result<Child, Stop> {
    let is_stream = |path: &Path| path == Path::new("-");
    let input = match is_stream(&arguments.input) {
        true => Stdio::inherit(),
        false => Stdio::from(File::open(&arguments.input).map_err(|error| {
            Stop::usage(format!(
                "cannot read {}: {error}",
                arguments.input.display()
            ))
        })?),
    };
    let output = match is_stream(&arguments.output) {
        true => Stdio::inherit(),
        false => Stdio::piped(),
    };
    std::env::current_exe()
        .and_then(|program| {
            Command::new(program)
                .args(std::env::args_os().skip(1))
                .arg("--inside-sandbox")
                .stdin(input)
                .stdout(output)
                .spawn()
        })
        .map_err(|error| Stop::usage(format!("cannot start a process for the sandbox: {error}")))
}

#[cfg(unix)]
fn cause(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status.signal() {
        Some(signal) => format!("signal {signal}"),
        None => "a signal".to_owned(),
    }
}

#[cfg(not(unix))]
fn cause(_: ExitStatus) -> String {
    "force".to_owned()
}

/// Inside, the input and the output are the streams that the supervisor gave, and it looks at the clock.
pub fn redirect(arguments: &mut Arguments) -> Result<(), Stop> {
    arguments.input = PathBuf::from("-");
    arguments.output = PathBuf::from("-");
    arguments.max_run_seconds = None;
    // SAFETY: the call takes numbers only.
    #[cfg(target_os = "linux")]
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) } != 0 {
        return Err(Stop::usage(
            "the sandbox cannot follow its supervisor's end",
        ));
    }
    Ok(())
}

/// Where something is written at the end of a run: inside, nothing can be renamed by then.
pub fn open(arguments: &Arguments, path: &Path) -> Result<Document, Stop> {
    match arguments.inside_sandbox {
        true => Document::open_in_place(path),
        false => Document::open(path),
    }
}

#[cfg(not(target_os = "linux"))]
pub fn enter() -> Result<(), Stop> {
    Err(Stop::usage("`--sandbox` needs Linux, which has seccomp"))
}

/// Gives up, for good and for all threads to come, what computing does not need.
#[cfg(target_os = "linux")]
pub fn enter() -> Result<(), Stop> {
    filters()
        .and_then(|filters| {
            filters
                .iter()
                .try_for_each(|filter| seccompiler::apply_filter_all_threads(filter))
                .map_err(|error| error.to_string())
        })
        .map_err(|error| Stop::usage(format!("this system gives no sandbox: {error}")))
}

/// What is applied one after another: the stricter answer of the two counts.
#[cfg(target_os = "linux")]
fn filters() -> Result<[seccompiler::BpfProgram; 2], String> {
    use seccompiler::{SeccompAction, SeccompFilter, TargetArch};
    use std::collections::BTreeMap;

    let architecture = TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|error| format!("{}: {error}", std::env::consts::ARCH))?;
    let filter = |rules, otherwise, then| {
        SeccompFilter::new(rules, otherwise, then, architecture)
            .and_then(seccompiler::BpfProgram::try_from)
            .map_err(|error| error.to_string())
    };
    let errno = |code: i32| SeccompAction::Errno(code.unsigned_abs());
    // Its flags lie in memory, where no filter sees them; who finds it missing calls `clone`.
    let clone3 = BTreeMap::from([(libc::SYS_clone3, vec![])]);
    Ok([
        filter(clone3, SeccompAction::Allow, errno(libc::ENOSYS))?,
        filter(allowed()?, errno(libc::EPERM), SeccompAction::Allow)?,
    ])
}

/// The system calls that are left, and of some the arguments that they may have.
#[cfg(target_os = "linux")]
fn allowed() -> Result<std::collections::BTreeMap<i64, Vec<seccompiler::SeccompRule>>, String> {
    use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

    /// Open streams, memory, threads, time, signals of its own, its end.
    const ALWAYS: [libc::c_long; 41] = [
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_lseek,
        libc::SYS_fstat,
        libc::SYS_close,
        libc::SYS_ppoll,
        libc::SYS_recvfrom,
        libc::SYS_fsync,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_clone3,
        libc::SYS_futex,
        libc::SYS_set_robust_list,
        libc::SYS_get_robust_list,
        libc::SYS_set_tid_address,
        libc::SYS_rseq,
        libc::SYS_gettid,
        libc::SYS_getpid,
        libc::SYS_membarrier,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_nanosleep,
        libc::SYS_clock_nanosleep,
        libc::SYS_clock_gettime,
        libc::SYS_clock_getres,
        libc::SYS_gettimeofday,
        libc::SYS_getrandom,
        libc::SYS_getrusage,
        libc::SYS_sysinfo,
        libc::SYS_uname,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_restart_syscall,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];
    let only = |argument, operator, value| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Qword, operator, value)
            .and_then(|condition| SeccompRule::new(vec![condition]))
            .map(|rule| vec![rule])
            .map_err(|error| error.to_string())
    };
    let mut rules: std::collections::BTreeMap<i64, Vec<SeccompRule>> =
        ALWAYS.into_iter().map(|call| (call, vec![])).collect();
    let executable = u64::from(libc::PROT_EXEC.unsigned_abs());
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        rules.insert(call, only(2, SeccompCmpOp::MaskedEq(executable), 0)?);
    }
    let thread = u64::from(libc::CLONE_THREAD.unsigned_abs());
    rules.insert(
        libc::SYS_clone,
        only(0, SeccompCmpOp::MaskedEq(thread), thread)?,
    );
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_poll, vec![]);
    // Signals are passed on from their handler to a thread by a pair of sockets, without an address.
    rules.insert(libc::SYS_sendto, only(4, SeccompCmpOp::Eq, 0)?);
    let this = u64::from(std::process::id());
    rules.insert(libc::SYS_tgkill, only(0, SeccompCmpOp::Eq, this)?);
    Ok(rules)
}
