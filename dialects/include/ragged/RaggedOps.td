// The operations of the `ragged` dialect.

#ifndef COHORT_RAGGED_OPS_TD
#define COHORT_RAGGED_OPS_TD

include "ragged/RaggedDialect.td"
include "ragged/RaggedAttrs.td"
include "ragged/RaggedKernelOps.td"

#endif // COHORT_RAGGED_OPS_TD
