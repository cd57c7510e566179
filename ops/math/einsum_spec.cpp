#include <algorithm>
#include <cctype>

#include "ops/math/einsum.h"

namespace fluid {
namespace {

using EinsumFail = std::function<void(const std::string&)>;

constexpr std::string_view kEllipsis = "...";

std::vector<std::string> split_terms(const std::string& list) {
  std::vector<std::string> terms(1);
  for (const char ch : list) {
    if (ch == ',') {
      terms.emplace_back();
    } else {
      terms.back() += ch;
    }
  }
  return terms;
}

/// Returns the number of letters of a term (the subscripts of one operand), without its ellipsis.
size_t letters_of(const std::string& term) {
  return term.size() - (term.find(kEllipsis) == std::string::npos ? 0 : kEllipsis.size());
}

void require_letters(std::string term, const EinsumFail& fail) {
  const std::string shown = term;
  if (const size_t at = term.find(kEllipsis); at != std::string::npos) {
    term.erase(at, kEllipsis.size());
  }
  const bool valid = std::ranges::all_of(term, [](unsigned char ch) { return std::isalpha(ch); });
  if (!valid) fail("\"" + shown + "\" must hold letters and at most one ellipsis");
}

/// Returns `count` letters that are not in `used`.
std::string fresh_letters(size_t count, const std::string& used, const EinsumFail& fail) {
  std::string fresh;
  for (char ch = 'A'; ch <= 'z' && fresh.size() < count; ++ch) {
    if (std::isalpha(static_cast<unsigned char>(ch)) && !has_letter(used, ch)) fresh += ch;
  }
  if (fresh.size() < count) fail("the operands have more than 52 dimensions of different letters");
  return fresh;
}

/// Replaces the ellipsis of a term by the last `count` letters of `letters`.
std::string with_letters(std::string term, const std::string& letters, size_t count) {
  const size_t at = term.find(kEllipsis);
  if (at == std::string::npos) return term;
  return term.replace(at, kEllipsis.size(), letters.substr(letters.size() - count));
}

/// Returns the implicit result of an equation without "->": an ellipsis, then the letters that
/// occur exactly once in the equation, in alphabetical order.
std::string implicit_result(const std::vector<std::string>& terms) {
  std::string all, result;
  for (const std::string& term : terms) all += term;
  std::ranges::sort(all);
  for (const char ch : all) {
    if (std::ranges::count(all, ch) == 1 && ch != '.') result += ch;
  }
  return std::string(kEllipsis) + result;
}

void add_extents(EinsumSpec& spec, const std::vector<Shape>& shapes, const EinsumFail& fail) {
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (size_t d = 0; d < shapes[i].size(); ++d) {
      const char ch = spec.operands[i][d];
      const Dim given = shapes[i][d];
      const bool repeated = spec.operands[i].find(ch) != d;
      Dim& extent = spec.extents.try_emplace(ch, given).first->second;
      if (repeated && (given.batch || given != shapes[i][spec.operands[i].find(ch)])) {
        fail("a repeated letter '" + std::string(1, ch) +
             "' requires equal constant extents, not those of " + shapes[i].str());
      }
      if (extent.is(1)) extent = given;
      if (given != extent && !given.is(1)) {
        fail("letter '" + std::string(1, ch) + "' has the extents " + extent.str() + " and " +
             given.str());
      }
    }
  }
}

}  // namespace

std::string EinsumSpec::equation(const std::vector<std::string>& operands,
                                 const std::string& result) {
  std::string text;
  for (const std::string& term : operands) text += (&term == operands.data() ? "" : ",") + term;
  return text + "->" + result;
}

std::string EinsumSpec::letters_from(size_t first) const {
  std::string letters = result;
  for (size_t i = first; i < operands.size(); ++i) letters += operands[i];
  return letters;
}

EinsumSpec einsum_spec(const std::string& equation, const std::vector<Shape>& shapes,
                       const EinsumFail& fail) {
  std::string text = equation;
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  std::vector<std::string> terms = split_terms(text.substr(0, arrow));
  std::string result = arrow == std::string::npos ? implicit_result(terms) : text.substr(arrow + 2);
  for (const std::string& term : terms) require_letters(term, fail);
  require_letters(result, fail);
  if (terms.size() != shapes.size()) {
    fail("\"" + equation + "\" has " + std::to_string(terms.size()) + " terms for " +
         std::to_string(shapes.size()) + " operands");
  }
  std::vector<size_t> ellipsis_ranks;  // number of dimensions that each ellipsis stands for
  for (size_t i = 0; i < terms.size(); ++i) {
    const bool open = terms[i].find(kEllipsis) != std::string::npos;
    const size_t rank = shapes[i].size(), letters = letters_of(terms[i]);
    if (open ? rank < letters : rank != letters) {
      fail("\"" + terms[i] + "\" does not fit to " + shapes[i].str());
    }
    ellipsis_ranks.push_back(rank - letters);
  }
  const size_t most = *std::ranges::max_element(ellipsis_ranks);
  const std::string fresh = fresh_letters(most, text, fail);
  EinsumSpec spec{.operands = {}, .result = with_letters(result, fresh, most), .extents = {}};
  for (size_t i = 0; i < terms.size(); ++i) {
    spec.operands.push_back(with_letters(terms[i], fresh, ellipsis_ranks[i]));
  }
  add_extents(spec, shapes, fail);
  const auto batched = [](const auto& entry) { return entry.second.batch; };
  if (std::ranges::count_if(spec.extents, batched) > 1) {
    fail("\"" + equation + "\" has two letters with the batch dimension");
  }
  for (const char ch : spec.result) {
    if (!spec.extents.contains(ch) || std::ranges::count(spec.result, ch) > 1) {
      fail("letter '" + std::string(1, ch) +
           "' of the result must occur once there, and in an "
           "operand");
    }
  }
  return spec;
}

EinsumSpec einsum_spec(const std::string& equation, const Values& operands) {
  std::vector<Shape> shapes;
  for (const Value& v : operands) shapes.push_back(v.shape());
  return einsum_spec(equation, shapes, [](const std::string& what) { check(false, what); });
}

}  // namespace fluid
