"""What the lint takes instructions to read and write, and loops to be: `python3 test/sass/test_lint.py`."""

import unittest

from lint import inner_loop, instruction, kernels, registers

# Of each instruction what it writes and what it reads; addresses are 64 bits wide where they say so.
INSTRUCTIONS = [
    ("IADD3 R3, P0, R0, UR4, RZ", "R3 P0", "R0 UR4"),
    ("IADD3.X R5, RZ, RZ, R5, P2, P1", "R5", "R5 P2 P1"),
    ("ISETP.GE.U32.AND.EX P0, PT, R8, UR5, PT, P0", "P0", "R8 UR5 P0"),
    ("SEL R9, R4, R9, P0", "R9", "R4 R9 P0"),
    # Products of 64 bits: what is added is as wide as the result, and of the upper half, which has 32 bits, too.
    ("IMAD.WIDE.U32 R8, P0, R6, R13, R10", "R8 R9 P0", "R6 R13 R10 R11"),
    ("IMAD.HI.U32 R8, P1, R7, R11, R20", "R8 P1", "R7 R11 R20 R21"),
    ("UIMAD.WIDE UR4, UR6, UR7, UR10", "UR4 UR5", "UR6 UR7 UR10 UR11"),
    # Conversions, where only one side may have 64 bits.
    ("F2I.U64.TRUNC R6, R8", "R6 R7", "R8"),
    ("F2I.U64.F64.TRUNC R6, R8", "R6 R7", "R8 R9"),
    ("F2I.F64.TRUNC R6, R8", "R6", "R8 R9"),
    ("I2F.U64.RP R5, UR4", "R5", "UR4 UR5"),
    ("I2F.F64.S64 R4, R6", "R4 R5", "R6 R7"),
    ("I2F.F64 R4, R6", "R4 R5", "R6"),
    ("F2F.F64.F32 R4, R6", "R4 R5", "R6"),
    ("F2F.F32.F64 R4, R6", "R4", "R6 R7"),
    ("F2FP.BF16.F32.PACK_AB R4, R6, R8", "R4", "R6 R8"),
    ("DADD R4, R6, R8", "R4 R5", "R6 R7 R8 R9"),
    ("DSETP.GT.AND P0, PT, R6, R8, PT", "P0", "R6 R7 R8 R9"),
    ("FADD R4, R6, R8", "R4", "R6 R8"),
    # What the threads of a warp say together.
    ("VOTE.ANY R3, P1, P0", "R3 P1", "P0"),
    ("VOTE.ALL P1, P0", "P1", "P0"),
    ("REDUX.MAX UR4, R2", "UR4", "R2"),
    ("SHFL.IDX PT, R7, R5, R6, 0x1f", "R7", "R5 R6"),
    ("R2P PR, R3, 0x7f", "P0 P1 P2 P3 P4 P5 P6", "R3"),
    ("P2R R3, PR, RZ, 0x7f", "R3", "P0 P1 P2 P3 P4 P5 P6"),
    # Memory.
    ("LDG.E.64 R6, desc[UR8][R2.64+0x80]", "R6 R7", "UR8 R2 R3"),
    ("STG.E.64 desc[UR8][R2.64+0x400], R6", "", "UR8 R2 R3 R6 R7"),
    ("LDS.128 R4, [R12+UR4]", "R4 R5 R6 R7", "R12 UR4"),
    ("RED.E.ADD.STRONG.GPU [R2.64], R5", "", "R2 R3 R5"),
    ("ATOMG.E.ADD.STRONG.GPU PT, R5, desc[UR8][R4.64], R11", "R5", "UR8 R4 R5 R11"),
]


class Instructions(unittest.TestCase):
    def test_registers(self):
        for text, writes, reads in INSTRUCTIONS:
            with self.subTest(text):
                read = instruction(0, text)
                self.assertEqual(read.writes, registers(writes))
                self.assertEqual(read.reads, registers(reads))

    def test_a_predicate_guards(self):
        read = instruction(0, "@!P3 IMAD.MOV.U32 R4, RZ, RZ, R6")
        self.assertEqual((read.guard, read.writes), (registers("P3"), registers("R4")))


def loop(label, *lines):
    """A loop of these lines, as `nvdisasm` prints it; a line may be a loop."""
    lines = [*lines, f"@P0 BRA `({label})"]
    lines = (line if line.startswith(".L") else f"        /*0000*/ {line} ;" for line in lines)
    return "\n".join([f"{label}:", *lines])


class Loops(unittest.TestCase):
    load, add, special = "LDS R4, [R5]", "FFMA R0, R1, R2, R0", "MUFU.EX2 R3, R3"
    store = "STG.E.128 [R68.64], R76"

    def inner_loop_of(self, *loops):
        return inner_loop(kernels("\n".join(["        .section .text.one,", *loops]))[0])

    def test_the_loop_of_a_product_counts(self):
        product = loop(".L_1", self.load, *[self.add] * 4)
        activation = loop(".L_2", self.load, self.special, *[self.add] * 9)
        polynomial = loop(".L_3", self.load, *[self.add] * 9, self.store)
        for other in (activation, polynomial):
            self.assertEqual(self.inner_loop_of(product, other), (4, 1))
            self.assertEqual(self.inner_loop_of(other), (9, 1))

    def test_the_largest_innermost_loop_counts(self):
        small, large = (loop(f".L_{count}", self.load, *[self.add] * count) for count in (2, 3))
        around = loop(".L_9", small, *[self.add] * 5)
        self.assertEqual(self.inner_loop_of(around, large), (3, 1))


if __name__ == "__main__":
    unittest.main()
