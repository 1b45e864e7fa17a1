"""The compiler of Cohort, a program that `cohort.compile` runs: `cohort_lang/bin/batch-opt`."""
