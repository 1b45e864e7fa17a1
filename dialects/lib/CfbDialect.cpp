// The `cfb` dialect: registration, its attributes and types, and its part in inlining.

#include "Cfb.h"

#include "mlir/CAPI/Registration.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"

#include "cfb/CfbDialect.cpp.inc"
#include "cfb/CfbEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "cfb/CfbAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "cfb/CfbTypes.cpp.inc"

using namespace mlir;
using namespace cohort::cfb;

namespace {

/// Every operation of the dialect may be inlined, and a callee of one block may be inlined into any
/// of its regions.
struct CfbInlinerInterface : public DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Region *, Region *src, bool, IRMapping &) const final {
    return src->hasOneBlock();
  }
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final { return true; }
};

} // namespace

void CfbDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "cfb/CfbAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "cfb/CfbTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "cfb/CfbOps.cpp.inc"
      >();
  addInterfaces<CfbInlinerInterface>();
}

Operation *CfbDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                           Location location) {
  return arith::ConstantOp::materialize(builder, value, type, location);
}

LogicalResult PartAttr::verify(function_ref<InFlightDiagnostic()> emitError, PartKind kind,
                               std::optional<int64_t> number) {
  bool fits = kind == PartKind::site ? !number : number && *number >= 0;
  if (!fits)
    return emitError() << "cfb_part_c1: expected " << (kind == PartKind::site ? "no number" : "a number of at least zero")
                       << " of `" << stringifyPartKind(kind) << "`";
  return success();
}

LogicalResult LazyType::verify(function_ref<InFlightDiagnostic()> emitError, Type tensorType) {
  if (!isa<RankedTensorType>(tensorType))
    return emitError() << "cfb_lazy_c1: expected a ranked tensor, but got " << tensorType;
  return success();
}

LogicalResult RowsType::verify(function_ref<InFlightDiagnostic()> emitError, Type tensorType) {
  auto tensor = dyn_cast<RankedTensorType>(tensorType);
  if (!tensor || !tensor.hasStaticShape())
    return emitError() << "cfb_rows_c1: expected a ranked tensor of static shape, but got "
                       << tensorType;
  return success();
}

void cohort::cfb::flattenType(Type type, SmallVectorImpl<Type> &result) {
  if (auto tuple = dyn_cast<TupleType>(type)) {
    for (Type element : tuple.getTypes())
      flattenType(element, result);
    return;
  }
  result.push_back(type);
}

bool cohort::cfb::isHeldAs(Type declared, Type held) {
  if (declared == held)
    return true;
  if (auto lazy = dyn_cast<LazyType>(held))
    return lazy.getTensorType() == declared;
  if (auto array = dyn_cast<ArrayType>(declared)) {
    auto other = dyn_cast<ArrayType>(held);
    return other && isHeldAs(array.getElementType(), other.getElementType());
  }
  if (auto tuple = dyn_cast<TupleType>(declared)) {
    auto other = dyn_cast<TupleType>(held);
    return other && areHeldAs(tuple.getTypes(), other.getTypes());
  }
  return false;
}

bool cohort::cfb::areHeldAs(TypeRange declared, TypeRange held) {
  return declared.size() == held.size() &&
         llvm::all_of(llvm::zip(declared, held), [](auto pair) {
           return isHeldAs(std::get<0>(pair), std::get<1>(pair));
         });
}

bool cohort::cfb::areSameTensors(RankedTensorType left, RankedTensorType right) {
  return left && right && left.getShape() == right.getShape() &&
         left.getElementType() == right.getElementType();
}

RankedTensorType cohort::cfb::dropLeadingDim(RankedTensorType type) {
  if (type.getRank() == 0)
    return {};
  return RankedTensorType::get(type.getShape().drop_front(), type.getElementType());
}

RankedTensorType cohort::cfb::addLeadingDim(RankedTensorType type) {
  SmallVector<int64_t> shape{ShapedType::kDynamic};
  llvm::append_range(shape, type.getShape());
  return RankedTensorType::get(shape, type.getElementType());
}

extern "C" MlirDialectHandle mlirGetDialectHandle__cfb__();
MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(CFB, cfb, cohort::cfb::CfbDialect)
