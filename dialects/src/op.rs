//! What an operation is: each kind that the compiler makes or asks for, tied to what is generated from its declaration.

use std::collections::HashMap;
use std::sync::LazyLock;

use melior::Context;
use melior::dialect::ods;
use melior::ir::{OperationRef, operation::OperationLike};

use crate::ffi::{self, view};
use crate::keys::Key;
use crate::{cfb, linalg, ml_program, nvvm, ragged};

/// Kinds of operations, each with the type that is generated from its declaration, which knows its name.
macro_rules! kinds {
    ($($kind:ident: $declared:ty,)*) => {
        /// A kind of operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Op { $(
            #[doc = concat!("[`", stringify!($declared), "`]")]
            $kind,
        )* }

        impl Op {
            pub(crate) const ALL: &[Op] = &[$(Op::$kind),*];

            /// The name, `func.call`.
            pub fn name(self) -> &'static str {
                match self { $(Op::$kind => <$declared>::name(),)* }
            }
        }
    };
}

kinds! {
    AffineApply: ods::affine::AffineApplyOperation,
    ArithAddf: ods::arith::AddFOperation,
    ArithAddi: ods::arith::AddIOperation,
    ArithAndi: ods::arith::AndIOperation,
    ArithBitcast: ods::arith::BitcastOperation,
    ArithCeildivsi: ods::arith::CeilDivSIOperation,
    ArithCeildivui: ods::arith::CeilDivUIOperation,
    ArithCmpf: ods::arith::CmpFOperation,
    ArithCmpi: ods::arith::CmpIOperation,
    ArithConstant: ods::arith::ConstantOperation,
    ArithDivf: ods::arith::DivFOperation,
    ArithDivsi: ods::arith::DivSIOperation,
    ArithDivui: ods::arith::DivUIOperation,
    ArithExtsi: ods::arith::ExtSIOperation,
    ArithExtui: ods::arith::ExtUIOperation,
    ArithFloordivsi: ods::arith::FloorDivSIOperation,
    ArithFptosi: ods::arith::FPToSIOperation,
    ArithFptoui: ods::arith::FPToUIOperation,
    ArithIndexCast: ods::arith::IndexCastOperation,
    ArithIndexCastui: ods::arith::IndexCastUIOperation,
    ArithMaximumf: ods::arith::MaximumFOperation,
    ArithMaxnumf: ods::arith::MaxNumFOperation,
    ArithMaxsi: ods::arith::MaxSIOperation,
    ArithMaxui: ods::arith::MaxUIOperation,
    ArithMinimumf: ods::arith::MinimumFOperation,
    ArithMinnumf: ods::arith::MinNumFOperation,
    ArithMinsi: ods::arith::MinSIOperation,
    ArithMinui: ods::arith::MinUIOperation,
    ArithMulf: ods::arith::MulFOperation,
    ArithMuli: ods::arith::MulIOperation,
    ArithNegf: ods::arith::NegFOperation,
    ArithOri: ods::arith::OrIOperation,
    ArithRemf: ods::arith::RemFOperation,
    ArithRemsi: ods::arith::RemSIOperation,
    ArithRemui: ods::arith::RemUIOperation,
    ArithSelect: ods::arith::SelectOperation,
    ArithShli: ods::arith::ShLIOperation,
    ArithShrsi: ods::arith::ShRSIOperation,
    ArithShrui: ods::arith::ShRUIOperation,
    ArithSitofp: ods::arith::SIToFPOperation,
    ArithSubf: ods::arith::SubFOperation,
    ArithSubi: ods::arith::SubIOperation,
    ArithTrunci: ods::arith::TruncIOperation,
    ArithUitofp: ods::arith::UIToFPOperation,
    ArithXori: ods::arith::XOrIOperation,
    BuiltinModule: ods::builtin::ModuleOperation,
    CfbAdt: cfb::AdtOperation,
    CfbArrayCreate: cfb::ArrayCreateOperation,
    CfbArrayGet: cfb::ArrayGetOperation,
    CfbArrayLen: cfb::ArrayLenOperation,
    CfbArrayPush: cfb::ArrayPushOperation,
    CfbArrayRange: cfb::ArrayRangeOperation,
    CfbArrayReverse: cfb::ArrayReverseOperation,
    CfbBlock: cfb::BlockOperation,
    CfbConstant: cfb::ConstantOperation,
    CfbConstruct: cfb::ConstructOperation,
    CfbDebug: cfb::DebugOperation,
    CfbDim: cfb::DimOperation,
    CfbFold: cfb::FoldOperation,
    CfbForce: cfb::ForceOperation,
    CfbFork: cfb::ForkOperation,
    CfbGhost: cfb::GhostOperation,
    CfbInstanceKey: cfb::InstanceKeyOperation,
    CfbJoin: cfb::JoinOperation,
    CfbKernel: cfb::KernelOperation,
    CfbLength: cfb::LengthOperation,
    CfbLookup: cfb::LookupOperation,
    CfbMap: cfb::MapOperation,
    CfbMatch: cfb::MatchOperation,
    CfbParam: cfb::ParamOperation,
    CfbParamRow: cfb::ParamRowOperation,
    CfbPhase: cfb::PhaseOperation,
    CfbQuotient: cfb::QuotientOperation,
    CfbRecord: cfb::RecordOperation,
    CfbReduceRows: cfb::ReduceRowsOperation,
    CfbRow: cfb::RowOperation,
    CfbSame: cfb::SameOperation,
    CfbStack: cfb::StackOperation,
    CfbStrConstant: cfb::StrConstantOperation,
    CfbStrEqual: cfb::StrEqualOperation,
    CfbTurn: cfb::TurnOperation,
    CfbView: cfb::ViewOperation,
    CfbWiden: cfb::WidenOperation,
    CfbWithin: cfb::WithinOperation,
    CfbYield: cfb::YieldOperation,
    FuncCall: ods::func::CallOperation,
    FuncConstant: ods::func::ConstantOperation,
    FuncFunc: ods::func::FuncOperation,
    FuncReturn: ods::func::ReturnOperation,
    GpuBarrier: ods::gpu::BarrierOperation,
    GpuBinary: ods::gpu::BinaryOperation,
    GpuBlockId: ods::gpu::BlockIdOperation,
    GpuFunc: ods::gpu::GPUFuncOperation,
    GpuGridDim: ods::gpu::GridDimOperation,
    GpuModule: ods::gpu::GPUModuleOperation,
    GpuReturn: ods::gpu::ReturnOperation,
    GpuShuffle: ods::gpu::ShuffleOperation,
    GpuThreadId: ods::gpu::ThreadIdOperation,
    LinalgBatchMatmul: linalg::BatchMatmulOperation,
    LinalgBatchMatvec: linalg::BatchMatvecOperation,
    LinalgBatchVecmat: linalg::BatchVecmatOperation,
    LinalgBroadcast: linalg::BroadcastOperation,
    LinalgCopy: linalg::CopyOperation,
    LinalgDot: linalg::DotOperation,
    LinalgFill: linalg::FillOperation,
    LinalgGeneric: linalg::GenericOperation,
    LinalgIndex: ods::linalg::IndexOperation,
    LinalgMap: linalg::MapOperation,
    LinalgMatmul: linalg::MatmulOperation,
    LinalgMatvec: linalg::MatvecOperation,
    LinalgReduce: linalg::ReduceOperation,
    LinalgTranspose: linalg::TransposeOperation,
    LinalgVecmat: linalg::VecmatOperation,
    LinalgYield: ods::linalg::YieldOperation,
    LlvmAlloca: ods::llvm::AllocaOperation,
    LlvmAtomicrmw: ods::llvm::AtomicRMWOperation,
    LlvmBitcast: ods::llvm::BitcastOperation,
    LlvmCall: ods::llvm::CallOperation,
    LlvmExtractvalue: ods::llvm::ExtractValueOperation,
    LlvmFence: ods::llvm::FenceOperation,
    LlvmFunc: ods::llvm::LLVMFuncOperation,
    LlvmGetelementptr: ods::llvm::GEPOperation,
    LlvmInlineAsm: ods::llvm::InlineAsmOperation,
    LlvmInsertvalue: ods::llvm::InsertValueOperation,
    LlvmIntrAbs: ods::llvm::AbsOperation,
    LlvmIntrCeil: ods::llvm::FCeilOperation,
    LlvmIntrCopysign: ods::llvm::CopySignOperation,
    LlvmIntrFabs: ods::llvm::FAbsOperation,
    LlvmIntrFloor: ods::llvm::FFloorOperation,
    LlvmIntrFma: ods::llvm::FMAOperation,
    LlvmIntrMaskedGather: ods::llvm::masked_gatherOperation,
    LlvmIntrMaskedLoad: ods::llvm::MaskedLoadOperation,
    LlvmIntrMaskedScatter: ods::llvm::masked_scatterOperation,
    LlvmIntrMaskedStore: ods::llvm::MaskedStoreOperation,
    LlvmIntrMemcpy: ods::llvm::MemcpyOperation,
    LlvmIntrPrefetch: ods::llvm::PrefetchOperation,
    LlvmIntrRoundeven: ods::llvm::RoundEvenOperation,
    LlvmIntrSqrt: ods::llvm::SqrtOperation,
    LlvmIntrStacksave: ods::llvm::StackSaveOperation,
    LlvmIntrTrunc: ods::llvm::FTruncOperation,
    LlvmLoad: ods::llvm::LoadOperation,
    LlvmMlirAddressof: ods::llvm::AddressOfOperation,
    LlvmMlirGlobal: ods::llvm::GlobalOperation,
    LlvmMlirUndef: ods::llvm::UndefOperation,
    LlvmMlirZero: ods::llvm::ZeroOperation,
    LlvmPtrtoint: ods::llvm::PtrToIntOperation,
    LlvmStore: ods::llvm::StoreOperation,
    MathAbsf: ods::math::AbsFOperation,
    MathAbsi: ods::math::AbsIOperation,
    MathAcos: ods::math::AcosOperation,
    MathAsin: ods::math::AsinOperation,
    MathAtan: ods::math::AtanOperation,
    MathAtan2: ods::math::Atan2Operation,
    MathCbrt: ods::math::CbrtOperation,
    MathCeil: ods::math::CeilOperation,
    MathCopysign: ods::math::CopySignOperation,
    MathCos: ods::math::CosOperation,
    MathCosh: ods::math::CoshOperation,
    MathErf: ods::math::ErfOperation,
    MathErfc: ods::math::ErfcOperation,
    MathExp: ods::math::ExpOperation,
    MathExp2: ods::math::Exp2Operation,
    MathExpm1: ods::math::ExpM1Operation,
    MathFloor: ods::math::FloorOperation,
    MathFma: ods::math::FmaOperation,
    MathFpowi: ods::math::FPowIOperation,
    MathIpowi: ods::math::IPowIOperation,
    MathLog: ods::math::LogOperation,
    MathLog10: ods::math::Log10Operation,
    MathLog1p: ods::math::Log1pOperation,
    MathLog2: ods::math::Log2Operation,
    MathPowf: ods::math::PowFOperation,
    MathRound: ods::math::RoundOperation,
    MathRoundeven: ods::math::RoundEvenOperation,
    MathRsqrt: ods::math::RsqrtOperation,
    MathSin: ods::math::SinOperation,
    MathSinh: ods::math::SinhOperation,
    MathSqrt: ods::math::SqrtOperation,
    MathTan: ods::math::TanOperation,
    MathTanh: ods::math::TanhOperation,
    MathTrunc: ods::math::TruncOperation,
    MemrefDim: ods::memref::DimOperation,
    MlProgramGlobal: ml_program::GlobalOperation,
    MlProgramGlobalLoadConst: ml_program::GlobalLoadConstOperation,
    NvvmBarrier: nvvm::BarrierOperation,
    NvvmClusterArrive: nvvm::ClusterArriveOperation,
    NvvmClusterWait: nvvm::ClusterWaitOperation,
    NvvmConvertF32x2ToBf16x2: nvvm::ConvertF32x2ToBF16x2Operation,
    NvvmConvertFloatToTf32: nvvm::ConvertFloatToTF32Operation,
    NvvmCpAsyncCommitGroup: nvvm::CpAsyncCommitGroupOperation,
    NvvmCpAsyncSharedGlobal: nvvm::CpAsyncOperation,
    NvvmCpAsyncWaitGroup: nvvm::CpAsyncWaitGroupOperation,
    NvvmFenceProxy: nvvm::FenceProxyOperation,
    NvvmMmaSync: nvvm::MmaOperation,
    NvvmWgmmaCommitGroup: nvvm::WgmmaGroupSyncAlignedOperation,
    NvvmWgmmaFence: nvvm::WgmmaFenceAlignedOperation,
    NvvmWgmmaMmaAsync: nvvm::WgmmaMmaAsyncOperation,
    RaggedBlocks: ragged::BlocksOperation,
    RaggedCalls: ragged::CallsOperation,
    RaggedConstant: ragged::ConstantOperation,
    RaggedFold: ragged::FoldOperation,
    RaggedFoldList: ragged::FoldListOperation,
    RaggedIndex: ragged::IndexOperation,
    RaggedKernel: ragged::KernelOperation,
    RaggedLoad: ragged::LoadOperation,
    RaggedLoops: ragged::LoopsOperation,
    RaggedMatmul: ragged::MatmulOperation,
    RaggedNest: ragged::NestOperation,
    RaggedOnlineSoftmax: ragged::OnlineSoftmaxOperation,
    RaggedOperand: ragged::OperandOperation,
    RaggedPackPanels: ragged::PackPanelsOperation,
    RaggedParam: ragged::ParamOperation,
    RaggedPosition: ragged::PositionOperation,
    RaggedProduct: ragged::ProductOperation,
    RaggedProducts: ragged::ProductsOperation,
    RaggedReduce: ragged::ReduceOperation,
    RaggedResult: ragged::ResultOperation,
    RaggedScratch: ragged::ScratchOperation,
    RaggedStore: ragged::StoreOperation,
    RaggedTiles: ragged::TilesOperation,
    RaggedWave: ragged::WaveOperation,
    RaggedYield: ragged::YieldOperation,
    ScfCondition: ods::scf::ConditionOperation,
    ScfFor: ods::scf::ForOperation,
    ScfIf: ods::scf::IfOperation,
    ScfIndexSwitch: ods::scf::IndexSwitchOperation,
    ScfWhile: ods::scf::WhileOperation,
    ScfYield: ods::scf::YieldOperation,
    TensorCast: ods::tensor::CastOperation,
    TensorCollapseShape: ods::tensor::CollapseShapeOperation,
    TensorConcat: ods::tensor::ConcatOperation,
    TensorDim: ods::tensor::DimOperation,
    TensorEmpty: ods::tensor::EmptyOperation,
    TensorExpandShape: ods::tensor::ExpandShapeOperation,
    TensorExtract: ods::tensor::ExtractOperation,
    TensorExtractSlice: ods::tensor::ExtractSliceOperation,
    TensorFromElements: ods::tensor::FromElementsOperation,
    TensorInsert: ods::tensor::InsertOperation,
    TensorInsertSlice: ods::tensor::InsertSliceOperation,
    TensorSplat: ods::tensor::SplatOperation,
    VectorBroadcast: ods::vector::BroadcastOperation,
    VectorCreateMask: ods::vector::CreateMaskOperation,
    VectorExtract: ods::vector::ExtractOperation,
    VectorFma: ods::vector::FMAOperation,
    VectorFromElements: ods::vector::FromElementsOperation,
    VectorShuffle: ods::vector::ShuffleOperation,
}

impl Op {
    /// The kind of an operation; `None` for one that the compiler never asks for.
    pub fn of(operation: OperationRef<'_, '_>) -> Option<Op> {
        static KINDS: LazyLock<HashMap<&'static str, Op>> =
            LazyLock::new(|| Op::ALL.iter().map(|kind| (kind.name(), *kind)).collect());
        let name = operation.name();
        KINDS.get(name.as_string_ref().as_str().ok()?).copied()
    }

    /// Whether operations of this kind declare an attribute.
    pub fn declares(self, context: &Context, key: Key<'_>) -> bool {
        // SAFETY: the context and both names are alive during the call.
        unsafe { ffi::cohortOperationDeclares(context.to_raw(), view(self.name()), view(&key)) }
    }

    /// Whether an operation is of this kind.
    pub fn is(self, operation: OperationRef<'_, '_>) -> bool {
        Op::of(operation) == Some(self)
    }
}

/// The dialects whose operations are dealt with alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `arith`: numbers.
    Arith,
    /// `cfb`: ours, control flow and blocks.
    Cfb,
    /// `gpu`: launches and threads.
    Gpu,
    /// `index`: sizes of the machine's width.
    Index,
    /// `linalg`: structured operations on tensors.
    Linalg,
    /// `llvm`: LLVM's instructions.
    Llvm,
    /// `math`: functions of numbers.
    Math,
    /// `ml_program`: parameters.
    MlProgram,
    /// `nvvm`: instructions of GPUs.
    Nvvm,
    /// `ragged`: ours, kernels over rows of different lengths.
    Ragged,
    /// `scf`: structured control flow.
    Scf,
    /// `tensor`: shapes and parts of tensors.
    Tensor,
    /// `ub`: values that do not matter.
    Ub,
}

impl Dialect {
    /// The dialect of an operation; `None` for one that no pass asks for.
    pub fn of(operation: OperationRef<'_, '_>) -> Option<Dialect> {
        let name = operation.name();
        let (dialect, _) = name.as_string_ref().as_str().ok()?.split_once('.')?;
        Some(match dialect {
            "arith" => Dialect::Arith,
            "cfb" => Dialect::Cfb,
            "gpu" => Dialect::Gpu,
            "index" => Dialect::Index,
            "linalg" => Dialect::Linalg,
            "llvm" => Dialect::Llvm,
            "math" => Dialect::Math,
            "ml_program" => Dialect::MlProgram,
            "nvvm" => Dialect::Nvvm,
            "ragged" => Dialect::Ragged,
            "scf" => Dialect::Scf,
            "tensor" => Dialect::Tensor,
            "ub" => Dialect::Ub,
            _ => return None,
        })
    }

    /// Whether an operation is of this dialect.
    pub fn has(self, operation: OperationRef<'_, '_>) -> bool {
        Dialect::of(operation) == Some(self)
    }
}

/// Whether an operation is one of `arith` or `math`: of numbers, or of tensors element by element.
pub fn is_arithmetic(operation: OperationRef<'_, '_>) -> bool {
    matches!(Dialect::of(operation), Some(Dialect::Arith | Dialect::Math))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_registered() {
        let context = crate::new_context();
        for kind in Op::ALL {
            let name = melior::StringRef::new(kind.name());
            // SAFETY: the context and the name are alive.
            let known = unsafe {
                mlir_sys::mlirContextIsRegisteredOperation(context.to_raw(), name.to_raw())
            };
            assert!(known, "{kind:?}");
        }
    }

    #[test]
    fn no_two_kinds_have_a_name() {
        let names: std::collections::HashSet<_> = Op::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), Op::ALL.len());
    }
}
