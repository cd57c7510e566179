#include "tests/support/ptx_code.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "ir/error.h"

namespace fluid::testing {
namespace {

[[noreturn]] void unknown(std::string_view what) {
  throw InternalError("PTX that nobody knows here: '" + std::string(what) + "'");
}

std::string_view trimmed(std::string_view s) {
  const size_t begin = s.find_first_not_of(" \t\n\r");
  if (begin == std::string_view::npos) return {};
  return s.substr(begin, s.find_last_not_of(" \t\n\r") + 1 - begin);
}

/// Parts of `s` between separators that are not in brackets.
std::vector<std::string_view> split(std::string_view s, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= s.size(); ++i) {
    const char c = i < s.size() ? s[i] : separator;
    depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
    if (c != separator || depth > 0) continue;
    parts.push_back(trimmed(s.substr(begin, i - begin)));
    begin = i + 1;
  }
  return parts;
}

uint64_t parsed(std::string_view digits, int base) {
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || (end != digits.data() + digits.size() && *end != 'U'))
    unknown(digits);
  return value;
}

/// A number as PTX writes it: 12, -1, 0x5410U, 0f3F800000, 0d3FF0000000000000.
uint64_t number(std::string_view s) {
  if (s.starts_with('-')) return -number(s.substr(1));
  if (s.size() > 2 && s[0] == '0' && std::isalpha(s[1]) != 0) return parsed(s.substr(2), 16);
  return parsed(s, 10);
}

std::string without_comments(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    plain += line.substr(0, line.find("//"));
    plain += '\n';
    text.remove_prefix(end);
  }
  return plain;
}

/// Reads the statements of one text.
class Reader {
 public:
  Reader(PtxCode& code, std::string_view text) : code_(code), rest_(text) {}

  void run() {
    while (!(rest_ = trimmed(rest_)).empty()) {
      if (rest_.starts_with(".version") || rest_.starts_with(".target") ||
          rest_.starts_with(".address_size")) {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      } else if (rest_.starts_with(".global")) {
        read_global(until(';'));
      } else if (rest_.starts_with(".shared")) {
        module_shared_.push_back(until(';'));
      } else if (rest_.starts_with(".visible .entry")) {
        read_entry();
      } else {
        unknown(rest_.substr(0, rest_.find('\n')));
      }
    }
  }

 private:
  /// Returns the text before the next `end`, and consumes both.
  std::string_view until(char end) {
    const size_t at = rest_.find(end);
    if (at == std::string_view::npos) unknown(rest_.substr(0, 80));
    const std::string_view found = trimmed(rest_.substr(0, at));
    rest_.remove_prefix(at + 1);
    return found;
  }

  /// ".align 8 .b64 name[3] = {1, 2, 3}" of any space: the name and its bytes.
  static std::pair<std::string_view, std::vector<std::byte>> declared(std::string_view s) {
    const std::string_view head = trimmed(s.substr(0, s.find('=')));
    const size_t type = head.find(".align") == std::string_view::npos
                            ? head.rfind('.')
                            : head.find('.', head.find(".align") + 1);
    const std::string_view typed = head.substr(type);
    const size_t space = typed.find(' ');
    const size_t width = number(typed.substr(2, space - 2)) / 8;
    std::string_view name = trimmed(typed.substr(space));
    uint64_t count = 1;
    if (const size_t bracket = name.find('['); bracket != std::string_view::npos) {
      count = number(name.substr(bracket + 1, name.find(']') - bracket - 1));
      name = name.substr(0, bracket);
    }
    std::vector<std::byte> bytes(width * count);
    const size_t open = s.find('{');
    if (open == std::string_view::npos) return {name, bytes};
    size_t at = 0;
    for (const auto& value : split(s.substr(open + 1, s.find('}') - open - 1), ',')) {
      const uint64_t bits = number(value);
      std::memcpy(bytes.data() + width * at++, &bits, width);
    }
    return {name, bytes};
  }

  void read_global(std::string_view s) {
    const auto [name, bytes] = declared(s);
    code_.globals.emplace(name, bytes);
  }

  void read_entry() {
    const std::string_view head = until('(');
    const std::string name(head.substr(head.rfind(' ') + 1));
    entry_ = &code_.entries[name];
    registers_ = {{"_", kPtxNowhere},
                  {"%tid.x", kPtxThread},
                  {"%ntid.x", kPtxThreads},
                  {"%ctaid.x", kPtxGroup},
                  {"%nctaid.x", kPtxGroups}};
    symbols_.clear();
    labels_.clear();
    jumps_.clear();
    tables_.clear();
    named_tables_.clear();
    for (const auto& [global, bytes] : code_.globals) {
      symbols_[global] = reinterpret_cast<uint64_t>(bytes.data());
    }
    for (const std::string_view parameter : split(until(')'), ',')) {
      if (parameter.empty()) continue;
      symbols_[std::string(parameter.substr(parameter.rfind(' ') + 1))] = 8 * entry_->arguments++;
    }
    for (const std::string_view variable : module_shared_) declare_shared(variable);
    const std::string_view directives = until('{');
    const size_t threads = directives.find(".reqntid");
    if (threads != std::string_view::npos) {
      const std::string_view after = trimmed(directives.substr(threads + 8));
      entry_->threads = static_cast<int64_t>(number(after.substr(0, after.find_first_of(" \n"))));
    }
    while (!(rest_ = trimmed(rest_)).starts_with('}')) read_statement();
    rest_.remove_prefix(1);
    for (const auto& [at, label] : jumps_) entry_->code[at].target = labels_.at(label);
    for (const auto& [at, table] : tables_) {
      for (const std::string& label : named_tables_.at(table)) {
        entry_->code[at].table.push_back(labels_.at(label));
      }
    }
  }

  void read_statement() {
    const size_t end = rest_.find_first_of(":;");
    if (rest_[end] == ':') {
      const std::string label(until(':'));
      rest_ = trimmed(rest_);
      if (!rest_.starts_with(".branchtargets")) {
        labels_[label] = static_cast<uint32_t>(entry_->code.size());
        return;
      }
      rest_.remove_prefix(std::strlen(".branchtargets"));
      std::vector<std::string>& table = named_tables_[label];
      table.clear();
      for (const std::string_view target : split(until(';'), ',')) table.emplace_back(target);
      return;
    }
    const std::string_view statement = until(';');
    if (statement.starts_with(".reg") || statement.starts_with(".pragma")) return;
    if (statement.starts_with(".shared")) return declare_shared(statement);
    read_instruction(statement);
  }

  void declare_shared(std::string_view s) {
    const auto [name, bytes] = declared(s);
    symbols_[std::string(name)] = static_cast<uint64_t>(entry_->shared_bytes);
    entry_->shared_bytes += static_cast<int64_t>((bytes.size() + 15) / 16 * 16);
  }

  void read_instruction(std::string_view s) {
    PtxInstruction& i = entry_->code.emplace_back();
    if (s.starts_with('@')) {
      i.negated = s[1] == '!';
      const size_t begin = i.negated ? 2 : 1, end = s.find_first_of(" \t");
      i.guard = operand(s.substr(begin, end - begin)).number;
      s = trimmed(s.substr(end));
    }
    const size_t end = std::min(s.find_first_of(" \t"), s.size());
    const std::vector<std::string_view> name = split(s.substr(0, end), '.');
    const std::vector<std::string_view> operands =
        end < s.size() ? split(s.substr(end), ',') : std::vector<std::string_view>();
    i.run = ptx_run(name);
    if (i.run == nullptr) unknown(s);
    if (name[0] == "bra") {
      jumps_.emplace_back(entry_->code.size() - 1, operands.at(0));
    } else if (name[0] == "brx") {
      i.from[0] = operand(operands.at(0));
      tables_.emplace_back(entry_->code.size() - 1, operands.at(1));
    } else if (name[0] == "bar" || name[0] == "barrier") {
      i.from[0] = operand(operands.at(0));
    } else if (name[0] == "st") {
      address(i, i.to[0], operands.at(0));
      i.count = several(i.from, operands.at(1));
    } else if (!operands.empty()) {
      i.count = several(i.to, operands[0]);
      for (size_t k = 1; k < operands.size(); ++k) {
        if (operands[k].starts_with('[')) {
          address(i, i.from[0], operands[k]);
        } else if (operands[k].starts_with('{')) {
          i.count = several(i.from, operands[k]);
          i.joins = true;
        } else {
          i.from.at(k - 1) = operand(operands[k]);
        }
      }
    }
  }

  /// Operands in braces, or the two predicates of a pair: "%p1|%p2".
  uint8_t several(std::array<PtxOperand, 4>& to, std::string_view s) {
    if (const size_t bar = s.find('|'); bar != std::string_view::npos) {
      to[0] = operand(trimmed(s.substr(0, bar)));
      to[1] = operand(trimmed(s.substr(bar + 1)));
      return 2;
    }
    if (!s.starts_with('{')) {
      to[0] = operand(s);
      return 1;
    }
    const auto parts = split(s.substr(1, s.size() - 2), ',');
    for (size_t k = 0; k < parts.size(); ++k) to.at(k) = operand(parts[k]);
    return static_cast<uint8_t>(parts.size());
  }

  void address(PtxInstruction& i, PtxOperand& base, std::string_view s) {
    s = s.substr(1, s.size() - 2);
    const size_t plus = s.find('+');
    if (plus != std::string_view::npos) i.offset = static_cast<int64_t>(number(s.substr(plus + 1)));
    base = operand(s.substr(0, plus));
  }

  PtxOperand operand(std::string_view s) {
    const auto symbol = symbols_.find(s);
    if (symbol != symbols_.end()) return {.bits = symbol->second};
    if (!s.starts_with('%') && s != "_") return {.bits = number(s)};
    const auto [known, added] = registers_.emplace(s, entry_->registers);
    if (added) ++entry_->registers;
    return {.is_register = true, .number = known->second};
  }

  PtxCode& code_;
  std::string_view rest_;
  std::vector<std::string_view> module_shared_;  ///< declared outside of entries
  PtxEntry* entry_ = nullptr;
  std::map<std::string, uint32_t, std::less<>> registers_, labels_;
  std::map<std::string, uint64_t, std::less<>> symbols_;
  std::map<std::string, std::vector<std::string>, std::less<>> named_tables_;
  std::vector<std::pair<size_t, std::string>> jumps_, tables_;
};

}  // namespace

PtxCode::PtxCode(std::string_view text) {
  const std::string plain = without_comments(text);
  Reader(*this, plain).run();
}

}  // namespace fluid::testing
