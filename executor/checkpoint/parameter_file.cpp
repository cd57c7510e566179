#include "executor/checkpoint/parameter_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <span>

#include "executor/checkpoint/pytorch_layout.h"
#include "executor/session/feeds.h"
#include "executor/session/prepared_step.h"
#include "frontend/files/safetensors.h"
#include "frontend/lora.h"
#include "frontend/name_pattern.h"
#include "frontend/parameter_groups.h"
#include "ir/error.h"
#include "ir/near.h"
#include "ops/lora_attributes.h"
#include "ops/source_kind.h"

namespace fluid {
namespace {

constexpr size_t kMaxNames = 8;
constexpr const char* kHowToSayLayout = "set LoadOptions::layout to pytorch or fluid";

struct FileTensor {
  std::string source;  ///< name of the tensor in the file
  Tensor tensor;
  bool used = false;
};

/// A parsed element of LoadOptions::maps.
struct NameMap {
  NamePattern pattern;
  std::string replacement;

  explicit NameMap(const std::string& text)
      : pattern(text.substr(0, text.find('='))), replacement() {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UserError("must be PATTERN=NAME, as in 'backbone.(*)=$1'");
    }
    replacement = text.substr(equals + 1);
    for (size_t at = replacement.find('$'); at != std::string::npos;
         at = replacement.find('$', at + 1)) {
      const char digit = at + 1 < replacement.size() ? replacement[at + 1] : '0';
      if (digit >= '1' && static_cast<size_t>(digit - '0') <= pattern.num_captures()) continue;
      throw UserError(fmt::format("'{}' names no capture; the pattern has {}",
                                  replacement.substr(at, 2), pattern.num_captures()));
    }
  }
};

/// Returns the variables that a file with this metadata may lack. A file of LoRA adapters may lack
/// the variables that the metadata does not list, any other file the LoRA adapters.
std::set<std::string> optional_variables(const ir::Program& program,
                                         const std::map<std::string, std::string>& metadata) {
  const std::vector<std::string> listed = variables_in_lora_metadata(metadata);
  std::set<std::string> names;
  for (const auto& op : program.main().ops) {
    if (!is_variable(*op)) continue;
    const bool is_listed = std::ranges::find(listed, op->symbol) != listed.end();
    if (listed.empty() ? is_lora_adapter(*op) : !is_listed) names.insert(op->symbol);
  }
  return names;
}

/// Throws UserError when the layout of a linear weight is ambiguous or does not match `layout`.
void check_layout(const std::string& path, bool written_by_fluid, const std::string& name,
                  const Tensor& given, const std::vector<int64_t>& shape, ParamsLayout layout) {
  const bool square = shape[0] == shape[1] && shape[0] > 1;
  if (given.shape() == shape && square && layout == ParamsLayout::unspecified &&
      !written_by_fluid) {
    throw UserError(
        fmt::format("{}: the file does not state its layout, and the linear weight '{}' is square, "
                    "{}, which PyTorch stores transposed: {}",
                    path, name, given.str(), kHowToSayLayout));
  }
  if (given.shape() == shape && shape[0] != shape[1] && layout == ParamsLayout::pytorch) {
    throw UserError(fmt::format(
        "{}: the linear weight '{}' is given as {}, as in the program, and not transposed, as "
        "PyTorch stores it: set LoadOptions::layout to fluid",
        path, name, given.str()));
  }
  const bool is_transposed =
      shape[0] != shape[1] && given.shape() == std::vector<int64_t>{shape[1], shape[0]};
  if (is_transposed && layout != ParamsLayout::pytorch) {
    throw UserError(
        fmt::format("{}: the linear weight '{}' is given as {}, the transpose of the program's "
                    "[{}, {}], as PyTorch stores it: set LoadOptions::layout to pytorch",
                    path, name, given.str(), shape[0], shape[1]));
  }
}

/// Matches the tensors of a file with the variables of a program.
class ParameterReading {
 public:
  ParameterReading(const std::string& path, const LoadOptions& options, const ir::Program& program,
                   std::vector<Variable> wanted, TensorFile file)
      : path_(path),
        options_(options),
        wanted_(std::move(wanted)),
        pytorch_(program),
        written_by_fluid_(file.written_by_fluid),
        holds_adapters_(file.metadata.contains(std::string(kLoraMetadata))),
        optional_(optional_variables(program, file.metadata)) {
    std::ranges::sort(wanted_, {}, &Variable::name);
    std::vector<std::pair<std::string, FileTensor>> named;
    for (auto& [name, tensor] : file.tensors) {
      named.emplace_back(name, FileTensor{name, std::move(tensor)});
    }
    loaded_.metadata = ParameterMetadata::parse(file.metadata, path);
    for (const std::string& map : options_.maps) rename(map, named);
    for (auto& [name, tensor] : named) add(name, std::move(tensor));
  }

  LoadedParameters run() {
    for (const Variable& v : wanted_) match(v);
    collect_unused();
    if (!options_.partial) throw_unless_complete();
    if (loaded_.values.empty() && !wanted_.empty()) throw_without_fit();
    std::ranges::move(dropped_, std::back_inserter(loaded_.report.unused));
    return std::move(loaded_);
  }

 private:
  void rename(const std::string& text, std::vector<std::pair<std::string, FileTensor>>& named) {
    try {
      const NameMap map(text);
      bool found = false;
      std::vector<std::string> known;
      for (auto& [name, tensor] : named) {
        known.push_back(name);
        const auto renamed = map.pattern.renamed(name, map.replacement);
        if (!renamed) continue;
        found = true;
        name = *renamed;
      }
      if (found) return;
      throw UserError("the pattern matches no tensor of " + path_ + "; there are " +
                      nearest_names(map.pattern.text(), known, kMaxNames));
    } catch (const UserError& e) {
      throw UserError(fmt::format("LoadOptions::maps '{}': {}", text, e.what()));
    }
  }

  void add(const std::string& name, FileTensor tensor) {
    if (name.empty()) return dropped_.push_back(tensor.source);
    const auto [at, added] = tensors_.try_emplace(name, tensor);
    if (added) return;
    throw UserError(fmt::format("{}: the maps give '{}' and '{}' one name, '{}'", path_,
                                at->second.source, tensor.source, name));
  }

  /// Returns the tensors from which variable `name` is computed. Returns nullopt if the file lacks
  /// any of these tensors.
  std::optional<PytorchSource> source_of(const std::string& name) const {
    using Kind = PytorchSource::Kind;
    const bool is_pytorch = options_.layout == ParamsLayout::pytorch;
    if (tensors_.contains(name)) {
      const bool is_transposed = is_pytorch && pytorch_.is_linear_weight(name);
      return PytorchSource{is_transposed ? Kind::transposed : Kind::same, {name}};
    }
    if (!is_pytorch) return std::nullopt;
    return in_file(pytorch_.source(name));
  }

  std::optional<PytorchSource> in_file(PytorchSource source) const {
    const bool has_all = std::ranges::all_of(
        source.names, [&](const std::string& part) { return tensors_.contains(part); });
    return has_all ? std::optional(std::move(source)) : std::nullopt;
  }

  void match(const Variable& v) {
    const std::optional<PytorchSource> source = source_of(v.name);
    if (!source) {
      const bool is_optional = optional_.contains(v.name);
      if (!is_optional) loaded_.report.missing.push_back(v.name);
      if (is_optional && holds_adapters_ && !has_lora_suffix(v.name)) {
        loaded_.report.kept.push_back(v.name);
      }
      return;
    }
    std::vector<Tensor> parts;
    for (const std::string& part : source->names) {
      FileTensor& tensor = tensors_.at(part);
      tensor.used = true;
      parts.push_back(tensor.tensor);
    }
    const FileTensor& first = tensors_.at(source->names.front());
    const std::vector<int64_t> shape = extents(v.type.shape, 1);
    if (pytorch_.is_linear_weight(v.name) && first.tensor.shape().size() == 2) {
      check_layout(path_, written_by_fluid_, v.name, first.tensor, shape, options_.layout);
    }
    Tensor value = source->value(parts, shape, path_);
    if (!fits_variable(v.type, value)) {
      return loaded_.report.mismatched.push_back(
          {v.name, v.type.str(), first.source, first.tensor.str()});
    }
    check_no_overflow(value, v.type.dtype, path_ + ": '" + v.name + "'");
    loaded_.report.loaded.push_back(v.name);
    loaded_.values.emplace_back(v.name, std::move(value));
  }

  void collect_unused() {
    for (const auto& [name, tensor] : tensors_) {
      if (tensor.used) continue;
      const bool ignored = options_.layout == ParamsLayout::pytorch && is_pytorch_counter(name);
      (ignored ? loaded_.report.ignored : loaded_.report.unused).push_back(tensor.source);
    }
  }

  void throw_unless_complete() const {
    const LoadReport& report = loaded_.report;
    const auto unused_adapter = std::ranges::find_if(report.unused, [&](const std::string& name) {
      return holds_adapters_ && name.ends_with(kLoraSuffixes[0]);
    });
    if (unused_adapter != report.unused.end()) {
      throw UserError(fmt::format(
          "{}: the program lacks the low-rank adapters of the file, such as '{}': --adapters or "
          "lora_from_file() adds them",
          path_, *unused_adapter));
    }
    if (!report.missing.empty()) {
      const std::string& name = report.missing.front();
      const bool is_pytorch = options_.layout == ParamsLayout::unspecified && !written_by_fluid_ &&
                              in_file(pytorch_.source(name));
      throw UserError(fmt::format(
          "{}: parameter '{}' is missing; the file holds {}{}", path_, name,
          nearest_names(name, names(), kMaxNames),
          is_pytorch ? fmt::format(", PyTorch's name of it: {}", kHowToSayLayout) : ""));
    }
    for (const std::string& name : report.unused) {
      throw UserError(path_ + ": the program has no parameter '" + name + "'" +
                      did_you_mean(name, wanted_names()));
    }
    for (const LoadReport::Mismatch& m : report.mismatched) {
      throw UserError(fmt::format("{}: '{}' is given as {}, but the parameter '{}' is {}", path_,
                                  m.file_name, m.file_type, m.name, m.type));
    }
  }

  [[noreturn]] void throw_without_fit() const {
    const std::string begin = path_ + ": no tensor fits a parameter of the program; ";
    const std::vector<LoadReport::Mismatch>& mismatched = loaded_.report.mismatched;
    if (mismatched.empty()) {
      const std::string& wanted = wanted_.front().name;
      std::string held = nearest_names(wanted, sources(), kMaxNames);
      if (!options_.maps.empty()) {
        held += ", by LoadOptions::maps " + nearest_names(wanted, names(), kMaxNames);
      }
      throw UserError(fmt::format("{}the file holds {}, the program has {}", begin, held,
                                  nearest_names(wanted, wanted_names(), kMaxNames)));
    }
    std::string shapes;
    for (const LoadReport::Mismatch& m :
         std::span(mismatched).first(std::min(mismatched.size(), kMaxNames))) {
      shapes += fmt::format("{}'{}' is given as {}, but the parameter '{}' is {}",
                            shapes.empty() ? "" : "; ", m.file_name, m.file_type, m.name, m.type);
    }
    if (mismatched.size() > kMaxNames)
      shapes += fmt::format(" and {} more", mismatched.size() - kMaxNames);
    throw UserError(begin + shapes);
  }

  /// Names of the tensors in the file, before LoadOptions::maps renames them.
  std::vector<std::string> sources() const {
    std::vector<std::string> all = dropped_;
    for (const auto& [name, tensor] : tensors_) all.push_back(tensor.source);
    return all;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, tensor] : tensors_) all.push_back(name);
    return all;
  }
  std::vector<std::string> wanted_names() const {
    std::vector<std::string> all;
    for (const Variable& v : wanted_) all.push_back(v.name);
    return all;
  }

  const std::string& path_;
  const LoadOptions& options_;
  std::vector<Variable> wanted_;  ///< sorted by name
  PytorchLayout pytorch_;
  bool written_by_fluid_;
  bool holds_adapters_;             ///< the file has the entry kLoraMetadata
  std::set<std::string> optional_;  ///< variables that the file may lack
  /// Key: name of the tensor after renaming by LoadOptions::maps.
  std::map<std::string, FileTensor> tensors_;
  std::vector<std::string> dropped_;  ///< names of the tensors that a map renames to ""
  LoadedParameters loaded_;
};

}  // namespace

bool fits_variable(const Type& type, const Tensor& value) {
  const bool converts =
      type.dtype == value.dtype() || (is_float(type.dtype) && is_float(value.dtype()));
  return converts && extents(type.shape, 1) == value.shape();
}

LoadedParameters read_parameters(const std::string& path, const LoadOptions& options,
                                 const ir::Program& program, const std::vector<Variable>& wanted) {
  TensorFile file = read_safetensors(path);
  if (file.written_by_fluid && options.layout == ParamsLayout::pytorch) {
    throw UserError(path + " was written by Fluid in its own layout, not that of PyTorch");
  }
  return ParameterReading(path, options, program, wanted, std::move(file)).run();
}

}  // namespace fluid
