// The part of batch-opt that exists only in C++: mlir-opt's command line and driver.
//
// Rust calls `cohort_opt_parse` once, reads the input, turns a `.coh` program into MLIR where need
// be, and calls `cohort_opt_run` with the text. The passes come from Rust through `CohortOptPass`.

#include "mlir/CAPI/Diagnostics.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Pass.h"
#include "mlir/Debug/CLOptionsSetup.h"
#include "mlir/Debug/Counter.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/Timing.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <string>

using namespace mlir;

namespace {

llvm::cl::OptionCategory category("Cohort options");

// Options are made on first use, after LLVM's own are registered; LLVM keeps pointers to them.
struct Options {
  llvm::cl::opt<std::string> input{llvm::cl::Positional, llvm::cl::desc("<input file>"),
                                   llvm::cl::init("-"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> output{"o", llvm::cl::desc("Output file; `-` is stdout"),
                                    llvm::cl::value_desc("file"), llvm::cl::init("-"),
                                    llvm::cl::cat(category)};
  llvm::cl::opt<std::string> emit{
      "emit",
      llvm::cl::desc("Stop at a level and print it: ast, program, blocks, batched, loops, target, llvm, "
                     "object, ptx, cubin or artifact"),
      llvm::cl::value_desc("level"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> inputFormat{
      "input-format", llvm::cl::desc("coh or mlir; without it, by the file's extension"),
      llvm::cl::value_desc("format"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> entry{
      "entry", llvm::cl::desc("The function of a .coh program that runs, in place of main"),
      llvm::cl::value_desc("name"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> weights{
      "weights", llvm::cl::desc("Bind the program's dims from the shapes in a safetensors file"),
      llvm::cl::value_desc("file"), llvm::cl::cat(category)};
  llvm::cl::list<std::string> dims{"dim", llvm::cl::desc("Bind a program dim, `H=256`"),
                                   llvm::cl::value_desc("name=size"), llvm::cl::cat(category)};
  llvm::cl::list<std::string> without{
      "without", llvm::cl::desc("Leave passes out of what --emit runs"),
      llvm::cl::value_desc("pass[,pass...]"), llvm::cl::CommaSeparated, llvm::cl::cat(category)};
  llvm::cl::opt<std::string> kernel{
      "kernel",
      llvm::cl::desc("Of what --emit prints, only this kernel (or function) and what it refers to"),
      llvm::cl::value_desc("name"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> granularity{
      "granularity",
      llvm::cl::desc("What --emit makes a unit of scheduling: operator, block or function"),
      llvm::cl::value_desc("unit"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> unroll{
      "unroll",
      llvm::cl::desc("How many levels of children a recursive function of what --emit prints computes "
                     "with each node"),
      llvm::cl::value_desc("levels"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> targetCpu{
      "target-cpu",
      llvm::cl::desc("The processor that object files, artifacts and the IR of .coh programs are for: "
                     "native (this one's), x86-64, x86-64-v2, x86-64-v3, x86-64-v4, aarch64 or neoverse-n1"),
      llvm::cl::value_desc("cpu"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> gpuArch{
      "gpu-arch",
      llvm::cl::desc("The GPU that --emit=ptx and --emit=cubin are for: sm_80, sm_90 or a later one; "
                     "of an artifact, a list of them, with ptx for all and sim for the simulator; of "
                     "--emit=loops, any"),
      llvm::cl::value_desc("architecture"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> precision{
      "precision",
      llvm::cl::desc("What the factors of products are rounded to on a GPU: f32 (not at all, the "
                     "default), tf32 or bf16"),
      llvm::cl::value_desc("format"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> keepWeights{
      "keep-weights",
      llvm::cl::desc("What --emit keeps the packed weights of products in, on the processor: f32 (the default) "
                     "or bf16, half the bytes, each weight rounded once"),
      llvm::cl::value_desc("format"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> signKey{
      "sign-key",
      llvm::cl::desc("Sign what --emit=artifact makes with the Ed25519 private key in a PEM file"),
      llvm::cl::value_desc("file"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> sarif{
      "sarif", llvm::cl::desc("Write what there is to say of a .coh program as SARIF 2.1.0 too"),
      llvm::cl::value_desc("file"), llvm::cl::cat(category)};
  llvm::cl::opt<bool> bisect{
      "bisect",
      llvm::cl::desc("Run a .coh program over --input and find the techniques without which its "
                     "results are the oracle's"),
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> gradients{
      "gradients",
      llvm::cl::desc("Make the functions that gradients are computed by as well, for --emit"),
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> tune{
      "tune",
      llvm::cl::desc("Run a .coh program over --input, find the numbers of its kernels' schedules that are "
                     "the fastest on this machine, and make with them what --emit says"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> budget{"budget",
                                    llvm::cl::desc("How long --tune may take, in seconds (120)"),
                                    llvm::cl::value_desc("seconds"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> writeTuning{
      "write-tuning", llvm::cl::desc("Write what --tune has found, for --tuning"),
      llvm::cl::value_desc("file"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> tuning{
      "tuning", llvm::cl::desc("What --emit gives kernels of a .coh program, as --write-tuning wrote it"),
      llvm::cl::value_desc("file"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> instances{"input", llvm::cl::desc("The instances for --bisect and --tune"),
                                       llvm::cl::value_desc("file"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> tolerance{
      "tolerance",
      llvm::cl::desc("How far --bisect lets numbers be from the oracle's, as a part of their "
                     "record's largest (1e-4)"),
      llvm::cl::value_desc("part"), llvm::cl::cat(category)};
  llvm::cl::opt<bool> listPassesMarkdown{
      "list-passes-markdown", llvm::cl::desc("Print the reference of Cohort's passes"),
      llvm::cl::cat(category)};
};

Options &options() {
  static Options instance;
  return instance;
}

llvm::StringRef toStringRef(MlirStringRef ref) { return llvm::StringRef(ref.data, ref.length); }

MlirStringRef toRef(llvm::StringRef ref) { return mlirStringRefCreate(ref.data(), ref.size()); }

// Keeps one symbol of a module and what it refers to.
struct KeepSymbol : PassWrapper<KeepSymbol, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KeepSymbol)

  explicit KeepSymbol(std::string name) : name(std::move(name)) {}

  llvm::StringRef getArgument() const override { return "keep-symbol"; }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable table(module);
    Operation *wanted = table.lookup(name);
    if (!wanted) {
      std::string known;
      for (auto symbol : module.getOps<SymbolOpInterface>())
        known += (known.empty() ? "" : ", ") + symbol.getName().str();
      emitError(module.getLoc()) << "there is no `" << name << "` at this level, only " << known;
      return signalPassFailure();
    }
    llvm::SetVector<Operation *> kept;
    kept.insert(wanted);
    // What is planned of a kernel for a GPU is a symbol of a module within.
    for (Operation &within : *module.getBody()) {
      bool hasSymbols = within.hasTrait<OpTrait::SymbolTable>();
      Operation *planned = hasSymbols ? SymbolTable::lookupSymbolIn(&within, name) : nullptr;
      if (!planned)
        continue;
      kept.insert(&within);
      kept.insert(planned);
      for (Operation &other : llvm::make_early_inc_range(*planned->getBlock()))
        if (&other != planned)
          other.erase();
    }
    for (size_t next = 0; next < kept.size(); ++next) {
      std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(kept[next]);
      if (!uses)
        continue;
      for (SymbolTable::SymbolUse use : *uses)
        if (Operation *used = table.lookup(use.getSymbolRef().getRootReference()))
          kept.insert(used);
    }
    for (Operation &operation : llvm::make_early_inc_range(*module.getBody()))
      if (!kept.contains(&operation))
        operation.erase();
  }

  std::string name;
};

} // namespace

extern "C" {

/// A pass of ours: makes a fresh `MlirPass`, always of the same type id.
typedef MlirPass (*CohortOptPass)(size_t index);

/// Receives bytes; the context is the caller's.
typedef void (*CohortOptSink)(void *context, MlirStringRef bytes);

/// What the command line says; strings live as long as the process.
struct CohortOptOptions {
  MlirStringRef input;
  MlirStringRef output;
  MlirStringRef emit;
  MlirStringRef inputFormat;
  MlirStringRef entry;
  MlirStringRef weights;
  MlirStringRef kernel;
  MlirStringRef granularity;
  MlirStringRef unroll;
  MlirStringRef targetCpu;
  MlirStringRef gpuArch;
  MlirStringRef precision;
  MlirStringRef keepWeights;
  MlirStringRef signKey;
  MlirStringRef sarif;
  MlirStringRef instances;
  MlirStringRef tolerance;
  MlirStringRef budget;
  MlirStringRef writeTuning;
  MlirStringRef tuning;
  bool bisect;
  bool tune;
  bool gradients;
  bool listPassesMarkdown;
  bool hasOthers;
};

/// Registers `passCount` passes of ours (upstream's are known already) and all options, and parses the
/// command line. `--help` and `--version` end the process, as everywhere in LLVM.
/// On a usage error, gives LLVM's message to `errors` and returns false.
bool cohort_opt_parse(MlirDialectRegistry registry, int argc, const char *const *argv,
                      MlirStringRef overview, size_t passCount, CohortOptPass makePass,
                      void *errorContext, CohortOptSink errors, CohortOptOptions *parsed) {
  // LLVM's streams abort on a broken pipe; a filter just ends. Rust had the signal ignored.
  std::signal(SIGPIPE, SIG_DFL);
  for (size_t index = 0; index < passCount; ++index)
    registerPass([makePass, index] { return std::unique_ptr<Pass>(unwrap(makePass(index))); });

  options();
  MlirOptMainConfig::registerCLOptions(*unwrap(registry));
  registerAsmPrinterCLOptions();
  registerMLIRContextCLOptions();
  registerPassManagerCLOptions();
  registerDefaultTimingManagerCLOptions();
  tracing::DebugCounter::registerCLOptions();

  std::string message;
  llvm::raw_string_ostream messages(message);
  static std::string header;
  header = toStringRef(overview).str();
  if (!llvm::cl::ParseCommandLineOptions(argc, argv, header, &messages)) {
    errors(errorContext, toRef(message));
    return false;
  }
  parsed->input = toRef(options().input.getValue());
  parsed->output = toRef(options().output.getValue());
  parsed->emit = toRef(options().emit.getValue());
  parsed->inputFormat = toRef(options().inputFormat.getValue());
  parsed->entry = toRef(options().entry.getValue());
  parsed->weights = toRef(options().weights.getValue());
  parsed->kernel = toRef(options().kernel.getValue());
  parsed->granularity = toRef(options().granularity.getValue());
  parsed->unroll = toRef(options().unroll.getValue());
  parsed->targetCpu = toRef(options().targetCpu.getValue());
  parsed->gpuArch = toRef(options().gpuArch.getValue());
  parsed->precision = toRef(options().precision.getValue());
  parsed->keepWeights = toRef(options().keepWeights.getValue());
  parsed->signKey = toRef(options().signKey.getValue());
  parsed->sarif = toRef(options().sarif.getValue());
  parsed->instances = toRef(options().instances.getValue());
  parsed->tolerance = toRef(options().tolerance.getValue());
  parsed->budget = toRef(options().budget.getValue());
  parsed->writeTuning = toRef(options().writeTuning.getValue());
  parsed->tuning = toRef(options().tuning.getValue());
  parsed->bisect = options().bisect;
  parsed->tune = options().tune;
  parsed->gradients = options().gradients;
  parsed->listPassesMarkdown = options().listPassesMarkdown;
  parsed->hasOthers = llvm::any_of(llvm::cl::getRegisteredOptions(), [](const auto &entry) {
    const llvm::cl::Option &option = *entry.second;
    // It is always there, as passes written in Rust need it.
    return option.getNumOccurrences() > 0 && option.ArgStr != "mlir-disable-threading" &&
           !llvm::is_contained(option.Categories, &category);
  });
  return true;
}

size_t cohort_opt_dim_count() { return options().dims.size(); }

MlirStringRef cohort_opt_dim(size_t index) { return toRef(options().dims[index]); }

size_t cohort_opt_without_count() { return options().without.size(); }

MlirStringRef cohort_opt_without(size_t index) { return toRef(options().without[index]); }

/// Runs mlir-opt's driver over a buffer and gives what it prints to `output`. The passes of
/// `pipeline`, a textual pipeline of the module that may be empty, run before those of the command
/// line. What passes say goes to `log` too, before it is shown.
bool cohort_opt_run(MlirDialectRegistry registry, MlirStringRef input, MlirStringRef name,
                    MlirStringRef pipeline, void (*log)(MlirDiagnostic), void *outputContext,
                    CohortOptSink output) {
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  MlirOptMainConfig inner = config;
  config.setPassPipelineSetupFn([inner, pipeline, log](PassManager &manager) -> LogicalResult {
    // The handler that came last is asked first; a failure hands a diagnostic on to those before.
    manager.getContext()->getDiagEngine().registerHandler([log](Diagnostic &diagnostic) {
      log(wrap(diagnostic));
      return failure();
    });
    // Our passes make operations of many dialects, and an external pass names none beforehand.
    manager.getContext()->loadAllAvailableDialects();
    if (failed(parsePassPipeline(toStringRef(pipeline), manager)))
      return failure();
    if (const std::string &kernel = options().kernel; !kernel.empty())
      manager.addPass(std::make_unique<KeepSymbol>(kernel));
    return inner.setupPassPipeline(manager);
  });

  std::string printed;
  llvm::raw_string_ostream stream(printed);
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(toStringRef(input), toStringRef(name));
  bool succeeded =
      llvm::succeeded(MlirOptMain(stream, std::move(buffer), *unwrap(registry), config));
  output(outputContext, toRef(printed));
  return succeeded;
}

} // extern "C"
