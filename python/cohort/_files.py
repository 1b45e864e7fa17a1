"""Files that are replaced as a whole: whoever reads a path finds what was there before, or all that is new."""

from __future__ import annotations

import errno
import os
import secrets
import stat

# How the name of a file ends that is not complete.
UNFINISHED = ".unfinished"


def replace(path: str, content: bytes, mode: int | None = None) -> None:
    """Writes a file. A link stays one, and its file is replaced. Who may read and write is as it was, or else as of any
    new file, unless `mode` says it. Raises an `OSError` that names the path; what was there is as it was then."""
    target = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(target), f".{secrets.token_hex(8)}{UNFINISHED}")
    try:
        mode = _mode(target) if mode is None else mode
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        # The caller knows its own name of the file.
        raise OSError(error.errno, error.strerror, path) from None


def _mode(target: str) -> int:
    """The permissions of what is there, if it may be replaced."""
    try:
        before = os.stat(target)
    except FileNotFoundError:
        return 0o666
    if not stat.S_ISREG(before.st_mode):
        number = errno.EISDIR if stat.S_ISDIR(before.st_mode) else errno.EINVAL
        raise OSError(number, os.strerror(number))
    # What must not be written must not be replaced either.
    os.close(os.open(target, os.O_WRONLY | os.O_CLOEXEC))
    return stat.S_IMODE(before.st_mode) & 0o777
