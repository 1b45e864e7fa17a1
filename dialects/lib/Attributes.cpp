// C functions for attributes of `cfb` and of upstream dialects, which no C header of MLIR makes.
// The declarations in `src/ffi.rs` must agree with these.

#include "Cfb.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"

using namespace mlir;

// The enums of `cfb`, by the number that `src/enums.rs` gives each.
#define COHORT_ENUMS(DO)                                                                                               \
  DO(0, KernelUnit)                                                                                                    \
  DO(1, Takes)                                                                                                         \
  DO(2, Reuse)                                                                                                         \
  DO(3, Granularity)                                                                                                   \
  DO(4, Precision)                                                                                                     \
  DO(5, Rounding)                                                                                                      \
  DO(6, Gradients)                                                                                                     \
  DO(7, GradientHelper)

extern "C" {

// Of `cfb`.

/// Null where the enum has no such value.
MlirAttribute cohortEnumAttrGet(MlirContext context, unsigned which, unsigned value) {
  switch (which) {
#define DO(NUMBER, NAME)                                                                                               \
  case NUMBER:                                                                                                         \
    if (auto known = cohort::cfb::symbolize##NAME(value))                                                              \
      return wrap(Attribute(cohort::cfb::NAME##Attr::get(unwrap(context), *known)));                                   \
    break;
    COHORT_ENUMS(DO)
#undef DO
  }
  return wrap(Attribute());
}

/// The value of an attribute of that enum; -1 of any other.
int64_t cohortEnumAttrGetValue(MlirAttribute attribute, unsigned which) {
  switch (which) {
#define DO(NUMBER, NAME)                                                                                               \
  case NUMBER:                                                                                                         \
    if (auto known = dyn_cast<cohort::cfb::NAME##Attr>(unwrap(attribute)))                                             \
      return static_cast<int64_t>(known.getValue());                                                                   \
    break;
    COHORT_ENUMS(DO)
#undef DO
  }
  return -1;
}

/// A part of a call; it has no number where that is negative.
MlirAttribute cohortPartAttrGet(MlirContext context, unsigned kind, int64_t number) {
  auto known = cohort::cfb::symbolizePartKind(kind);
  if (!known)
    return wrap(Attribute());
  std::optional<int64_t> given;
  if (number >= 0)
    given = number;
  return wrap(Attribute(cohort::cfb::PartAttr::get(unwrap(context), *known, given)));
}

/// The kind of a part, -1 of any other attribute, and its number, -1 where it has none.
int64_t cohortPartAttrGetKind(MlirAttribute attribute, int64_t *number) {
  auto part = dyn_cast<cohort::cfb::PartAttr>(unwrap(attribute));
  if (!part)
    return -1;
  *number = part.getNumber().value_or(-1);
  return static_cast<int64_t>(part.getKind());
}

// Of upstream.

MlirAttribute cohortGpuDimensionAttrGet(MlirContext context, unsigned dimension) {
  return wrap(Attribute(gpu::DimensionAttr::get(unwrap(context), static_cast<gpu::Dimension>(dimension))));
}

/// -1 of any other attribute.
int64_t cohortGpuDimensionAttrGetValue(MlirAttribute attribute) {
  auto dimension = dyn_cast<gpu::DimensionAttr>(unwrap(attribute));
  return dimension ? static_cast<int64_t>(dimension.getValue()) : -1;
}

/// Of a shuffle: a lane gets the value of the one whose number differs in the bits of the offset.
MlirAttribute cohortShuffleXorAttrGet(MlirContext context) {
  return wrap(Attribute(gpu::ShuffleModeAttr::get(unwrap(context), gpu::ShuffleMode::XOR)));
}

MlirAttribute cohortIteratorTypeAttrGet(MlirContext context, bool folds) {
  auto kind = folds ? utils::IteratorType::reduction : utils::IteratorType::parallel;
  return wrap(Attribute(linalg::IteratorTypeAttr::get(unwrap(context), kind)));
}

MlirAttribute cohortExternAttrGet(MlirType type) {
  return wrap(Attribute(ml_program::ExternAttr::get(unwrap(type).getContext(), unwrap(type))));
}

bool cohortAttributeIsExtern(MlirAttribute attribute) { return isa<ml_program::ExternAttr>(unwrap(attribute)); }

/// What forbids LLVM to unroll a loop.
MlirAttribute cohortRolledLoopAttrGet(MlirContext context) {
  MLIRContext *ctx = unwrap(context);
  auto unroll = LLVM::LoopUnrollAttr::get(ctx, BoolAttr::get(ctx, true), {}, {}, {}, {}, {}, {});
  return wrap(Attribute(
      LLVM::LoopAnnotationAttr::get(ctx, {}, {}, {}, unroll, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})));
}

MlirAttribute cohortMmaShapeAttrGet(MlirContext context, int m, int n, int k) {
  return wrap(Attribute(NVVM::MMAShapeAttr::get(unwrap(context), m, n, k)));
}

MlirAttribute cohortMmaTypeAttrGet(MlirContext context, bool isBf16) {
  auto type = isBf16 ? NVVM::MMATypes::bf16 : NVVM::MMATypes::tf32;
  return wrap(Attribute(NVVM::MMATypesAttr::get(unwrap(context), type)));
}

MlirAttribute cohortMmaLayoutAttrGet(MlirContext context, bool isColumnMajor) {
  auto layout = isColumnMajor ? NVVM::MMALayout::col : NVVM::MMALayout::row;
  return wrap(Attribute(NVVM::MMALayoutAttr::get(unwrap(context), layout)));
}

/// What a product of a warpgroup takes: factors of bf16, or else what it adds to, of f32.
MlirAttribute cohortWarpgroupTypeAttrGet(MlirContext context, bool isBf16) {
  auto type = isBf16 ? NVVM::WGMMATypes::bf16 : NVVM::WGMMATypes::f32;
  return wrap(Attribute(NVVM::WGMMATypesAttr::get(unwrap(context), type)));
}

/// That such a product adds to what was there, or else that it takes a factor as it is.
MlirAttribute cohortWarpgroupScaleAttrGet(MlirContext context, bool isOfSums) {
  if (isOfSums)
    return wrap(Attribute(NVVM::WGMMAScaleOutAttr::get(unwrap(context), NVVM::WGMMAScaleOut::one)));
  return wrap(Attribute(NVVM::WGMMAScaleInAttr::get(unwrap(context), NVVM::WGMMAScaleIn::one)));
}

/// Between accesses of shared memory by threads and by what is asynchronous.
MlirAttribute cohortAsyncSharedProxyAttrGet(MlirContext context) {
  return wrap(Attribute(NVVM::ProxyKindAttr::get(unwrap(context), NVVM::ProxyKind::async_shared)));
}

/// The shared memory of a block.
MlirAttribute cohortSharedSpaceAttrGet(MlirContext context) {
  return wrap(Attribute(NVVM::SharedSpaceAttr::get(unwrap(context), NVVM::SharedSpace::shared_cta)));
}

/// In which caches a load leaves what it read: in all, or in the second level and behind alone.
MlirAttribute cohortLoadCacheAttrGet(MlirContext context, bool isGlobal) {
  auto cache = isGlobal ? NVVM::LoadCacheModifierKind::CG : NVVM::LoadCacheModifierKind::CA;
  return wrap(Attribute(NVVM::LoadCacheModifierKindAttr::get(unwrap(context), cache)));
}

/// To the nearest: halves away from zero, or to even.
MlirAttribute cohortRoundingModeAttrGet(MlirContext context, bool isAway) {
  auto mode = isAway ? NVVM::FPRoundingMode::RNA : NVVM::FPRoundingMode::RN;
  return wrap(Attribute(NVVM::FPRoundingModeAttr::get(unwrap(context), mode)));
}

MlirAttribute cohortNoSaturationAttrGet(MlirContext context) {
  return wrap(Attribute(NVVM::SaturationModeAttr::get(unwrap(context), NVVM::SaturationMode::NONE)));
}

} // extern "C"
