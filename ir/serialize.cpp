#include "ir/serialize.h"

#include <xxhash.h>

#include <bit>

#include "ir/error.h"
#include "ir/length.h"
#include "program_generated.h"

namespace fluid::ir {
namespace {

/// Assigns each distinct string an index, in the order of first use.
class StringTable {
 public:
  uint32_t index_of(const std::string& s) {
    const auto [it, added] = indices_.emplace(s, static_cast<uint32_t>(strings_.size()));
    if (added) strings_.push_back(s);
    return it->second;
  }
  const std::vector<std::string>& strings() const { return strings_; }

 private:
  std::map<std::string, uint32_t> indices_;
  std::vector<std::string> strings_;
};

template <class T>
using UniquePtr = std::unique_ptr<T>;

UniquePtr<fbs::TypeT> type_of(const Type& from) {
  auto type = std::make_unique<fbs::TypeT>();
  type->dtype = static_cast<fbs::DType>(from.dtype);
  for (const Dim& d : from.shape) type->dims.emplace_back(d.size, d.batch, d.length_power);
  if (from.layout) {
    type->layout = std::make_unique<fbs::LayoutT>();
    type->layout->order = from.layout->order;
    for (const Layout::Block& b : from.layout->blocks) {
      type->layout->blocks.emplace_back(b.axis, b.size);
    }
  }
  return type;
}

/// Stores the value of an attribute in the field of AttrT for the value's type.
struct AttrValueWriter {
  fbs::AttrT& to;

  void operator()(bool b) const { to.integers = {b}; }
  void operator()(int64_t n) const { to.integers = {n}; }
  void operator()(double x) const { to.reals = {x}; }
  void operator()(const Type& t) const { to.type = type_of(t); }
  void operator()(const GraphRef& g) const { (*this)(g.name); }
  void operator()(const std::vector<int64_t>& list) const { to.integers = list; }
  void operator()(const std::vector<double>& list) const { to.reals = list; }
  void operator()(const std::vector<std::string>& list) const {
    for (const std::string& s : list) (*this)(s);
  }
  void operator()(const std::string& s) const {
    to.texts.push_back(std::make_unique<fbs::TextT>());
    to.texts.back()->value = s;
  }
};

UniquePtr<fbs::AttrT> attr_of(const Attrs::Entry& from) {
  auto attr = std::make_unique<fbs::AttrT>();
  attr->name = from.first;
  // fbs::AttrKind lists the kinds in the order of Attr's alternatives.
  attr->kind = static_cast<fbs::AttrKind>(from.second.index());
  std::visit(AttrValueWriter{*attr}, from.second);
  return attr;
}

class Writer {
 public:
  UniquePtr<fbs::GraphT> graph(const Graph& from) {
    auto graph = std::make_unique<fbs::GraphT>();
    graph->name = from.name;
    positions_.clear();
    for (const auto& op : from.ops) {
      graph->ops.push_back(op_of(*op));
      positions_.emplace(op.get(), static_cast<uint32_t>(positions_.size()));
    }
    for (const Output& o : from.outputs) {
      graph->outputs.push_back(std::make_unique<fbs::OutputT>());
      graph->outputs.back()->name = o.name;
      graph->outputs.back()->value = std::make_unique<fbs::Operand>(operand(o.value));
    }
    return graph;
  }

  const std::vector<std::string>& ops() const { return ops_.strings(); }
  const std::vector<std::string>& files() const { return files_.strings(); }

 private:
  fbs::Operand operand(Value v) const {
    return {positions_.at(v.op()), static_cast<uint32_t>(v.index())};
  }

  UniquePtr<fbs::OpT> op_of(const Op& from) {
    auto op = std::make_unique<fbs::OpT>();
    op->kind = ops_.index_of(from.name);
    op->symbol = from.symbol;
    for (const Value& v : from.operands) op->operands.push_back(operand(v));
    for (const Attrs::Entry& a : from.attrs) op->attrs.push_back(attr_of(a));
    for (const Result& r : from.results) {
      op->results.push_back(std::make_unique<fbs::ResultT>());
      op->results.back()->type = type_of(r.type);
      op->results.back()->name = r.name;
    }
    op->role = static_cast<fbs::Role>(from.role);
    op->file = files_.index_of(Loc{from.loc.file, 0}.str());
    op->line = from.loc.line;
    op->param = from.param;
    op->scope = from.scope;
    op->id = from.id;
    return op;
  }

  std::map<const Op*, uint32_t> positions_;
  StringTable ops_;
  StringTable files_;
};

static_assert(std::endian::native == std::endian::little, "a hash is written as it lies in memory");

std::string hash_of(std::string_view bytes) {
  const uint64_t hash = XXH3_64bits(bytes.data(), bytes.size());
  return {reinterpret_cast<const char*>(&hash), sizeof hash};
}

}  // namespace

std::string append_checksum(std::string bytes) { return bytes + hash_of(bytes); }

std::string_view strip_checksum(std::string_view file, const std::string& file_name) {
  const size_t size = file.size() - std::min(file.size(), sizeof(uint64_t));
  const std::string_view bytes = file.substr(0, size);
  if (file.substr(size) != hash_of(bytes)) {
    throw UserError(file_name + ": the file is damaged or cut off: its checksum is wrong");
  }
  return bytes;
}

std::string serialize(const Program& program, const OpVersion& version) {
  fbs::ProgramT file;
  file.format = has_length(program) ? kFileFormat : kOldestFileFormat;
  file.name = program.name;
  Writer writer;
  for (const auto& g : program.graphs) file.graphs.push_back(writer.graph(*g));
  file.files = writer.files();
  for (const std::string& op : writer.ops()) {
    const int known = version(op);
    if (known < 1) throw UserError("cannot save the program: there is no op '" + op + "'");
    file.kinds.push_back(std::make_unique<fbs::OpKindT>());
    file.kinds.back()->name = op;
    file.kinds.back()->version = static_cast<uint32_t>(known);
  }
  flatbuffers::FlatBufferBuilder builder;
  fbs::FinishProgramBuffer(builder, fbs::Program::Pack(builder, &file));
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

}  // namespace fluid::ir
