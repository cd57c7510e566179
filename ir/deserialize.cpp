#include <cstring>

#include "ir/atomic_file.h"
#include "ir/serialize.h"
#include "ir/text.h"
#include "program_generated.h"

namespace fluid::ir {
namespace {

constexpr size_t kMaxSourceName = 255;

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& file_name, const OpVersion& version)
      : file_(file_name), version_(version), budget_(bytes.size()) {
    // Copies the file to an 8-byte-aligned buffer: 8 is the largest alignment in the schema.
    bytes_.resize((bytes.size() + 7) / 8);
    std::memcpy(bytes_.data(), bytes.data(), bytes.size());
    // A valid file of n bytes holds at most n / 8 tables. Tables do not overlap, and each table
    // takes at least 8 bytes, for an offset and a reference to the table.
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes_.data()), bytes.size(),
                                   16, static_cast<uint32_t>(bytes.size() / 8));
    if (!fbs::VerifyProgramBuffer(verifier)) damaged("its structure is broken");
  }

  std::unique_ptr<Program> program() {
    const fbs::Program& from = *fbs::GetProgram(bytes_.data());
    if (from.format() < kOldestFileFormat || from.format() > kFileFormat) {
      fail("written in format " + std::to_string(from.format()) + " by " +
           (from.format() > kFileFormat ? "a newer" : "an older") +
           " Fluid; this one reads formats " + std::to_string(kOldestFileFormat) + " to " +
           std::to_string(kFileFormat) +
           (from.format() > kFileFormat ? "" : ": build the program again from its source"));
    }
    format_ = from.format();
    read_kinds(from);
    if (from.files() != nullptr) {
      for (const auto* f : *from.files())
        files_.push_back(name(f, kMaxSourceName, "a source file"));
    }
    const size_t graphs = from.graphs() == nullptr ? 0 : from.graphs()->size();
    if (graphs == 0 || graphs > kMaxGraphs) {
      damaged("it has " + std::to_string(graphs) + " graphs");
    }
    auto program = std::make_unique<Program>(text(from.name()));
    for (uint32_t i = 0; i < graphs; ++i) {
      const fbs::Graph& graph = *from.graphs()->Get(i);
      const std::string graph_name = text(graph.name());
      if (i == 0 && graph_name != "main") damaged("its first graph is not main");
      if (i > 0 && program->find(graph_name) != nullptr) {
        damaged("two graphs are named " + graph_reference(graph_name));
      }
      read_graph(graph, i == 0 ? program->main() : program->add_graph(graph_name));
    }
    return program;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw UserError(file_ + ": " + what); }
  [[noreturn]] void damaged(const std::string& what) const { fail("the file is damaged: " + what); }
  [[noreturn]] void damaged(const Graph& graph, const std::string& what) const {
    damaged("op " + std::to_string(graph.ops.size()) + " of graph " + graph_reference(graph.name) +
            " " + what);
  }

  /// Limits the total size of the copies to the size of the file. A valid file references every
  /// vector once; a hostile file could reference a large vector a million times.
  void charge_budget(size_t bytes) {
    if (bytes > budget_) damaged("its parts overlap");
    budget_ -= bytes;
  }

  std::string text(const flatbuffers::String* s) {
    if (s == nullptr) return "";
    charge_budget(s->size());
    return s->str();
  }
  std::string name(const flatbuffers::String* s, size_t limit, const std::string& of_what) {
    if (s->size() > limit) damaged(of_what + " has too long a name");
    return text(s);
  }
  /// Uses memcpy, because the verifier does not check the alignment of 8-byte elements.
  template <class To, class From>
  std::vector<To> scalars(const flatbuffers::Vector<From>* from) {
    if (from == nullptr) return {};
    std::vector<To> to(from->size());
    charge_budget(to.size() * sizeof(To));
    if (!to.empty()) std::memcpy(to.data(), from->Data(), to.size() * sizeof(To));
    return to;
  }

  void read_kinds(const fbs::Program& from) {
    if (from.kinds() == nullptr) return;
    for (const fbs::OpKind* k : *from.kinds()) {
      kinds_.push_back(name(k->name(), kMaxNameLength, "an op"));
      if (!is_op_name(kinds_.back())) damaged(quote(kinds_.back()) + " cannot name an op");
      const int known = version_(kinds_.back());
      if (known < 1) fail("unknown op '" + kinds_.back() + "'");
      if (k->version() > static_cast<uint32_t>(known)) {
        fail("op '" + kinds_.back() + "' has version " + std::to_string(k->version()) +
             ", written by a newer Fluid; this one knows version " + std::to_string(known));
      }
      if (k->version() < 1) damaged("op '" + kinds_.back() + "' has no version");
    }
  }

  Type type(const fbs::Type& from) {
    Type t;
    if (from.dtype() > fbs::DType::MAX) damaged("there is no such dtype");
    t.dtype = static_cast<DType>(from.dtype());
    for (const fbs::Dim& d : scalars<fbs::Dim>(from.dims())) {
      Dim dim(d.size());
      dim.batch = d.batch();
      if (format_ >= kFileFormat) dim.length_power = d.length_power();
      t.shape.push_back(dim);
    }
    if (const fbs::Layout* layout = from.layout()) {
      t.layout.emplace();
      t.layout->order = scalars<int>(layout->order());
      for (const fbs::Block& b : scalars<fbs::Block>(layout->blocks())) {
        t.layout->blocks.push_back({b.axis(), b.size()});
      }
    }
    return t;
  }

  Attr attr(const fbs::Attr& from) {
    const auto kind = from.kind();
    if (kind > fbs::AttrKind::MAX) damaged("there is no such kind of attribute");
    if (kind == fbs::AttrKind::type) {
      if (from.type() == nullptr) damaged("an attribute has no value");
      return type(*from.type());
    }
    std::vector<int64_t> integers = scalars<int64_t>(from.integers());
    std::vector<double> reals = scalars<double>(from.reals());
    std::vector<std::string> texts;
    if (from.texts() != nullptr) {
      for (const fbs::Text* t : *from.texts()) texts.push_back(text(t->value()));
    }
    if (kind == fbs::AttrKind::integers) return integers;
    if (kind == fbs::AttrKind::reals) return reals;
    if (kind == fbs::AttrKind::texts) return texts;
    const bool is_integer = kind == fbs::AttrKind::integer || kind == fbs::AttrKind::boolean;
    const bool is_real = kind == fbs::AttrKind::real;
    const size_t values = is_integer ? integers.size() : is_real ? reals.size() : texts.size();
    if (values != 1) damaged("an attribute has no value");
    if (kind == fbs::AttrKind::boolean) return integers[0] != 0;
    if (is_integer) return integers[0];
    if (is_real) return reals[0];
    if (kind == fbs::AttrKind::graph) return GraphRef{texts[0]};
    return texts[0];
  }

  Value value(const fbs::Operand& from, const Graph& graph) {
    if (from.op() >= graph.ops.size()) damaged(graph, "reads a later op's result");
    Op& op = *graph.ops[from.op()];
    if (from.result() >= op.results.size()) damaged(graph, "reads a result that does not exist");
    return op.result(static_cast<int>(from.result()));
  }

  Attrs attrs(const fbs::Op& from, const Graph& graph) {
    Attrs attrs;
    if (from.attrs() == nullptr) return attrs;
    if (from.attrs()->size() > kMaxAttrs) damaged(graph, "has too many attributes");
    for (const fbs::Attr* a : *from.attrs()) {
      const std::string attr_name = name(a->name(), kMaxNameLength, "an attribute");
      if (attrs.has(attr_name)) damaged(graph, "has attribute " + quote(attr_name) + " twice");
      attrs.set(attr_name, attr(*a));
    }
    return attrs;
  }

  void read_op(const fbs::Op& from, Graph& graph) {
    if (from.kind() >= kinds_.size()) damaged(graph, "has no name");
    if (from.role() > fbs::Role::MAX) damaged(graph, "has no such role");
    if (from.file() >= files_.size()) damaged(graph, "has no such source file");
    if (from.id() < 0 || from.id() > kMaxId) damaged(graph, "has an id out of range");
    Values operands;
    for (const fbs::Operand& o : scalars<fbs::Operand>(from.operands())) {
      operands.push_back(value(o, graph));
    }
    Op& op = *graph.append(kinds_[from.kind()], std::move(operands), attrs(from, graph), {});
    if (from.results() != nullptr) {
      for (const fbs::Result* r : *from.results()) {
        op.results.push_back({type(*r->type()), text(r->name())});
      }
    }
    op.symbol = text(from.symbol());
    op.role = static_cast<Role>(from.role());
    op.loc = {files_[from.file()], from.line()};
    op.param = text(from.param());
    op.scope = text(from.scope());
    graph.restore_id(op, from.id());
  }

  void read_graph(const fbs::Graph& from, Graph& graph) {
    if (from.ops() != nullptr) {
      for (const fbs::Op* op : *from.ops()) read_op(*op, graph);
    }
    if (from.outputs() == nullptr) return;
    for (const fbs::Output* o : *from.outputs()) {
      graph.outputs.push_back({text(o->name()), output_value(*o, graph)});
    }
  }

  Value output_value(const fbs::Output& from, const Graph& graph) {
    fbs::Operand operand;
    std::memcpy(&operand, from.value(), sizeof operand);
    const bool exists = operand.op() < graph.ops.size() &&
                        operand.result() < graph.ops[operand.op()]->results.size();
    if (!exists) damaged("an output of graph " + graph_reference(graph.name) + " is not there");
    return graph.ops[operand.op()]->result(static_cast<int>(operand.result()));
  }

  const std::string& file_;
  const OpVersion& version_;
  size_t budget_;  ///< bytes that may still be copied out of the file
  uint32_t format_ = kFileFormat;
  std::vector<uint64_t> bytes_;
  std::vector<std::string> kinds_;
  std::vector<std::string> files_;
};

}  // namespace

bool is_fluid_file(std::string_view bytes) {
  return bytes.size() >= 8 && bytes.substr(4, 4) == fbs::ProgramIdentifier();
}

std::unique_ptr<Program> deserialize(std::string_view bytes, const std::string& file_name,
                                     const OpVersion& version) {
  if (!is_fluid_file(bytes)) throw UserError(file_name + ": not a .fluid file");
  if (bytes.size() > kMaxFileBytes) {
    throw UserError(file_name + ": too large for a program: over " +
                    std::to_string(kMaxFileBytes >> 20) + " MiB");
  }
  return Reader(bytes, file_name, version).program();
}

}  // namespace fluid::ir
