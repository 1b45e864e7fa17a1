"""Forges an artifact: the section `.text.make_folder` of its host code, which holds a constant, can be run.

Usage: run-constant.py FROM TO. Every checksum is made to fit; docs/artifact.md has the layout.
"""

import hashlib
import json
import struct
import sys

HEAD, CHECKSUM, SIGNATURE_END = 192, 24, 152
EXECUTABLE = 4

file = bytearray(open(sys.argv[1], "rb").read())
(length,) = struct.unpack_from("<I", file, 12)
header = json.loads(file[HEAD : HEAD + length])
section = next(section for section in header["sections"] if section["kind"] == "host-object")
start, end = section["offset"], section["offset"] + section["length"]

elf = file[start:end]
(table,) = struct.unpack_from("<Q", elf, 40)
entry, count, names = struct.unpack_from("<HHH", elf, 58)
(name_table,) = struct.unpack_from("<Q", elf, table + names * entry + 24)
for index in range(count):
    at = table + index * entry
    name, kind, flags = struct.unpack_from("<IIQ", elf, at)
    if elf[name_table + name :].startswith(b".text.make_folder\0"):
        struct.pack_into("<Q", elf, at + 8, flags | EXECUTABLE)
        break
else:
    sys.exit("there is no such section")

file[start:end] = elf
section["sha256"] = hashlib.sha256(elf).hexdigest()
text = json.dumps(header, separators=(",", ":")).encode()
assert len(text) == length
file[HEAD : HEAD + length] = text
covered = bytes(file[:CHECKSUM]) + bytes(file[SIGNATURE_END : HEAD + length])
file[CHECKSUM : CHECKSUM + 32] = hashlib.sha256(covered).digest()
open(sys.argv[2], "wb").write(file)
