#include "executor/cpu/cpu_target.h"
#include "executor/executor.h"
#include "frontend/optimizers.h"
#include "ir/error.h"
#include "ir/print.h"
#include "ir/serialize.h"
#include "ops/functions.h"
#include "ops/program_file.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/pass.h"
#include "program_generated.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/random_net.h"

namespace fluid::fuzz {
namespace {

constexpr int64_t kBatchSize = 2;
constexpr int64_t kMemoryLimit = int64_t{256} << 20;

int version_of(std::string_view op) { return *op_named(op).version; }

/// A random net, undamaged; half of them are trained.
std::unique_ptr<ir::Program> whole_net(Random& random) {
  auto program = random_net(random, 12);
  ir::Graph& main = program->main();
  const Value out = main.outputs[0].value;
  if (below(random, 2) == 0 || !is_float(out.dtype())) return program;
  const Value loss = mean(out);
  minimize(loss, Adam{.lr = 0.01});
  return program;
}

/// A program for a file: usually a whole network, sometimes one after some passes, with bodies and
/// stores.
std::unique_ptr<ir::Program> saved_net(Random& random) {
  auto program = whole_net(random);
  if (below(random, 4) != 0) return program;
  const bool libraries = below(random, 2) == 0;
  const Options options{.mode = Mode::train, .batch = kBatchSize, .use_libraries = libraries};
  std::vector<Pass> passes = pipeline(options);
  passes.resize(below(random, passes.size() + 1));
  try {
    run_passes(*program, passes, options, CpuTarget(describe_host(1)));
  } catch (const UserError&) {
    program = whole_net(random);
  }
  return program;
}

std::string net_text(Random& random) { return ir::print(*saved_net(random)); }
std::string net_file(Random& random) { return ir::serialize(*saved_net(random), version_of); }

/// Zeros for every feed that is small enough. Planning the step rejects larger feeds.
Batch zeros_for(const ir::Program& program) {
  constexpr int64_t kMost = int64_t{64} << 20;
  Batch batch{.size = kBatchSize};
  for (const auto& op : program.main().ops) {
    if (source_kind(*op) != SourceKind::feed) continue;
    const Type& type = op->results[0].type;
    const auto bytes = type.checked_bytes_at(kBatchSize);
    if (!bytes || *bytes > kMost) throw UserError(op->symbol + ": not fed, it is too large");
    std::vector<int64_t> shape;
    for (const Dim& d : type.shape) shape.push_back(d.at(kBatchSize));
    batch.columns.emplace_back(op->symbol, Tensor(type.dtype, shape));
  }
  return batch;
}

/// Arithmetic of one step in the forward direction, were nothing fused.
double work_of(const ir::Program& program) {
  double work = 0;
  for (const auto& op : program.main().ops) {
    std::vector<Type> in, out;
    for (const Value& v : op->operands) in.push_back(v.type());
    for (const ir::Result& r : op->results) out.push_back(r.type);
    for (auto* types : {&in, &out}) {
      for (Type& t : *types) {
        t.shape = t.shape.at(kBatchSize);
        work += static_cast<double>(t.shape.numel().size);
      }
    }
    if (!out.empty()) work += (*def_of(*op).cost)({in, out, op->attrs}).flops;
  }
  return work;
}

/// Plans a step, compiles it and runs it. An honest amount of work is no hang, so steps of more
/// than a second of it end after the plan. Half of them are given to libraries where those are
/// faster.
void run_step(std::unique_ptr<ir::Program> recorded, Random& random) {
  constexpr double kMostWork = 1e8;
  const Batch batch = zeros_for(*recorded);
  const double work = work_of(*recorded);
  const bool libraries = below(random, 2) == 0;
  const Program program(std::move(recorded));
  ExecutorOptions options{.threads = 1,
                          .memory_limit = kMemoryLimit,
                          .debug = {.verify_plan = true, .libraries = libraries}};
  if (work > kMostWork) {
    Options plan{.mode = Mode::eval, .batch = kBatchSize, .use_libraries = libraries};
    run_passes(*program.ir().clone(), pipeline(plan), plan, CpuTarget(describe_host(1)));
    return;
  }
  Executor executor(program, cpu(), options);
  executor.run(batch);
}

/// Reads the file; a program that is accepted must be sound enough to print, read, infer and run.
void read_and_check(const std::string& bytes, const std::string& file_name, Random& random) {
  auto program = read_program(bytes, file_name);
  const std::string text = ir::print(*program);
  const auto again = read_program(text, "printed.fir");
  check(ir::print(*again) == text, "the text of an accepted program changes when it is read");
  for (const auto& graph : program->graphs) {
    for (const auto& op : graph->ops) infer_types(*op);
  }
  run_step(std::move(program), random);
}

template <class T>
T* any_of(Random& random, std::vector<std::unique_ptr<T>>& list) {
  return list.empty() ? nullptr : list[below(random, list.size())].get();
}

int64_t odd_number(Random& random, int64_t near) {
  const int64_t odd[] = {0, 1, -1, INT64_MAX, INT64_MIN, int64_t{1} << 33, near / 2};
  return below(random, 3) == 0 ? static_cast<int64_t>(random())
                               : odd[below(random, std::size(odd))];
}

void change_type(Random& random, fbs::TypeT& type) {
  switch (below(random, 4)) {
    case 0:
      type.dtype = static_cast<fbs::DType>(below(random, 10));
      break;
    case 1:
      type.dims.resize(below(random, 15), fbs::Dim(1, false, 0));
      break;
    case 2:
      type.layout = std::make_unique<fbs::LayoutT>();
      for (size_t i = below(random, 6); i > 0; --i) {
        type.layout->order.push_back(static_cast<int>(i) - 1);
      }
      type.layout->blocks.emplace_back(static_cast<int>(below(random, 5)), odd_number(random, 32));
      break;
    default:
      if (type.dims.empty()) return;
      fbs::Dim& dim = type.dims[below(random, type.dims.size())];
      switch (below(random, 3)) {
        case 0:
          dim = {odd_number(random, dim.size()), dim.batch(), dim.length_power()};
          break;
        case 1:
          dim = {dim.size(), !dim.batch(), dim.length_power()};
          break;
        default:
          dim = {dim.size(), dim.batch(), static_cast<uint8_t>(below(random, 256))};
      }
  }
}

void change_attr(Random& random, fbs::AttrT& attr) {
  switch (below(random, 4)) {
    case 0:
      attr.kind = static_cast<fbs::AttrKind>(below(random, 10));
      break;
    case 1:
      attr.name += 'x';
      break;
    case 2:
      for (int64_t& n : attr.integers) n = odd_number(random, n);
      for (double& x : attr.reals) x = static_cast<double>(odd_number(random, 0));
      for (auto& t : attr.texts) t->value = "main";
      break;
    default:
      attr.integers.resize(below(random, 4));
      attr.reals.clear();
      attr.texts.clear();
  }
}

/// Mostly a result of an op before `position`.
fbs::Operand odd_operand(Random& random, size_t position) {
  const bool plausible = position > 0 && below(random, 8) != 0;
  const auto op = static_cast<uint32_t>(below(random, plausible ? position : 16));
  return {op, static_cast<uint32_t>(below(random, 8) == 0)};
}

/// Changes the op at `position` of its graph.
void change_op(Random& random, fbs::ProgramT& file, fbs::OpT& op, size_t position) {
  switch (below(random, 10)) {
    case 0:
      op.kind = static_cast<uint32_t>(below(random, file.kinds.size() + 1));
      break;
    case 1:
      if (fbs::ResultT* result = any_of(random, op.results)) change_type(random, *result->type);
      break;
    case 2:
      if (fbs::AttrT* attr = any_of(random, op.attrs)) change_attr(random, *attr);
      break;
    case 3:
      op.operands.resize(below(random, 4), odd_operand(random, position));
      break;
    case 4:
      for (fbs::Operand& o : op.operands) {
        if (below(random, 2) == 0) o = odd_operand(random, position);
      }
      break;
    case 5:
      op.results.resize(below(random, 2));
      break;
    case 6:
      op.symbol = below(random, 2) ? "v0" : "";
      break;
    case 7:
      op.id = odd_number(random, op.id);
      break;
    case 8:
      op.role = static_cast<fbs::Role>(below(random, 7));
      break;
    default:
      op.file = static_cast<uint32_t>(below(random, 3));
  }
}

void change_graph(Random& random, fbs::ProgramT& file, fbs::GraphT& graph) {
  switch (below(random, 5)) {
    case 0:
      std::swap(graph.ops[below(random, graph.ops.size())],
                graph.ops[below(random, graph.ops.size())]);
      break;
    case 1:
      graph.ops.erase(graph.ops.begin() + static_cast<ptrdiff_t>(below(random, graph.ops.size())));
      break;
    case 2:
      if (graph.outputs.empty()) return;
      graph.outputs[0]->value = std::make_unique<fbs::Operand>(below(random, 16), 0);
      graph.outputs[0]->name = below(random, 2) ? "out" : "";
      break;
    case 3:
      file.graphs.push_back(std::make_unique<fbs::GraphT>(graph));
      file.graphs.back()->name = below(random, 2) ? "main" : "body";
      break;
    default: {  // a reference to a graph, which may be itself
      fbs::OpT& op = *graph.ops[below(random, graph.ops.size())];
      op.attrs.push_back(std::make_unique<fbs::AttrT>());
      op.attrs.back()->name = "body";
      op.attrs.back()->kind = fbs::AttrKind::graph;
      op.attrs.back()->texts.push_back(std::make_unique<fbs::TextT>());
      op.attrs.back()->texts.back()->value = below(random, 2) ? "body" : "main";
    }
  }
}

void change_kind(Random& random, fbs::ProgramT& file) {
  fbs::OpKindT& kind = *file.kinds[below(random, file.kinds.size())];
  const auto table = op_table();
  switch (below(random, 4)) {
    case 0:
      kind.version = static_cast<uint32_t>(below(random, 3));
      break;
    case 1:
      kind.name += '_';
      break;
    default:
      kind.name = *table[below(random, table.size())].name;
  }
}

std::string with_changed_structure(const std::string& bytes, Random& random) {
  const std::unique_ptr<fbs::ProgramT> file(fbs::GetProgram(bytes.data())->UnPack());
  for (size_t changes = 1 + below(random, 2) * below(random, 3); changes > 0; --changes) {
    fbs::GraphT& graph = *file->graphs[below(random, file->graphs.size())];
    const size_t kind = below(random, 10);
    if (kind == 0) {
      change_kind(random, *file);
    } else if (kind < 3 && !graph.ops.empty()) {
      change_graph(random, *file, graph);
    } else if (!graph.ops.empty()) {
      const size_t position = below(random, graph.ops.size());
      change_op(random, *file, *graph.ops[position], position);
    }
  }
  for (auto& graph : file->graphs) {  // resize() leaves null tables, which cannot be packed
    for (auto& op : graph->ops) std::erase(op->results, nullptr);
  }
  flatbuffers::FlatBufferBuilder builder;
  fbs::FinishProgramBuffer(builder, fbs::Program::Pack(builder, file.get()));
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

}  // namespace

std::vector<Attack> program_attacks() {
  return {
      {"net", [](Random& random) { run_step(whole_net(random), random); }, 1},
      {"fluid-bytes",
       [](Random& random) {
         read_and_check(with_changed_bytes(net_file(random), random), "damaged.fluid", random);
       },
       5},
      {"fluid-structure",
       [](Random& random) {
         read_and_check(with_changed_structure(net_file(random), random), "damaged.fluid", random);
       },
       5},
      {"fir-bytes",
       [](Random& random) {
         read_and_check(with_changed_bytes(net_text(random), random), "damaged.fir", random);
       },
       1},
  };
}

}  // namespace fluid::fuzz
