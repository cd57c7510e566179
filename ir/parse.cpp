#include "ir/parse.h"

#include <limits>
#include <unordered_map>

#include "ir/lexer.h"
#include "ir/number.h"
#include "ir/text.h"

namespace fluid::ir {
namespace {

using Kind = Token::Kind;

/// Splits "mnist.cpp:13" into file and line. The line is 0 if `text` does not end in ":" and a
/// positive number.
Loc parse_loc(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return {text, 0};
  const int line = parse_number<int>(std::string_view(text).substr(colon + 1)).value_or(0);
  const bool canonical = line > 0 && text[colon + 1] != '0';
  return canonical ? Loc{text.substr(0, colon), line} : Loc{text, 0};
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view file_name, OpOffsets* offsets)
      : lexer_(text, file_name), offsets_(offsets) {
    advance();
  }

  std::unique_ptr<Program> program() {
    expect_word("program");
    auto program = std::make_unique<Program>(graph_name());
    expect("{");
    statements(program->main(), /*with_graphs=*/true);
    if (token_.kind != Kind::end) fail("expected the end of the file");
    return program;
  }

 private:
  using Scope = std::unordered_map<std::string, Value>;

  // Helpers that consume tokens.
  void advance() { token_ = lexer_.next(); }
  [[noreturn]] void fail(const std::string& expected) const {
    lexer_.fail(token_.offset, expected + " but found " + describe(token_));
  }
  bool is(std::string_view punct) const {
    return token_.kind == Kind::punct && token_.text == punct;
  }
  bool is_word(std::string_view word) const {
    return token_.kind == Kind::word && token_.text == word;
  }
  bool accept(std::string_view punct) {
    if (!is(punct)) return false;
    advance();
    return true;
  }
  void expect(std::string_view punct) {
    if (!accept(punct)) fail("expected '" + std::string(punct) + "'");
  }
  void expect_word(std::string_view word) {
    if (!is_word(word)) fail("expected '" + std::string(word) + "'");
    advance();
  }
  std::string expect_token(Kind kind, const std::string& what) {
    if (token_.kind != kind) fail("expected " + what);
    std::string text = std::move(token_.text);
    advance();
    return text;
  }
  std::string expect_identifier(const std::string& what) {
    if (token_.kind == Kind::word && !is_identifier(token_.text)) {
      lexer_.fail(token_.offset,
                  "a name has at most " + std::to_string(kMaxNameLength) + " characters");
    }
    return expect_token(Kind::word, what);
  }
  template <class T>
  T expect_number(const std::string& what) {
    if (token_.kind != Kind::number) fail("expected " + what);
    T value{};
    const std::errc error = read_number(token_.text, value);
    if (error == std::errc::result_out_of_range) {
      lexer_.fail(token_.offset, token_.text + " is out of range");
    }
    if (error != std::errc()) fail("expected " + what);
    advance();
    return value;
  }

  // Parsers of the parts of a statement.
  std::string graph_name() {
    expect("@");
    if (token_.kind == Kind::string) return expect_token(Kind::string, "a graph's name");
    return expect_identifier("a graph's name");
  }
  Dim dim() {
    const bool symbolic = is("?") || is_length_power();
    Dim dim(symbolic ? 1 : expect_number<int64_t>("a dimension: a number, ?, 256?, L or 16?L"));
    dim.batch = accept("?");
    if (is_length_power()) {
      dim.length_power = static_cast<uint8_t>(token_.text.size());
      advance();
    }
    return dim;
  }
  /// Whether the current token is L, LL, ...: a power of the sequence length.
  bool is_length_power() const {
    return token_.kind == Kind::word && token_.text.size() <= kMaxLengthPower &&
           token_.text.find_first_not_of('L') == std::string::npos;
  }
  Type type();
  Attr attr();
  Attr list();
  double infinity_or_nan(bool negative);
  Attrs attrs();
  void annotations(Op& op, int64_t& id);
  Loc loc();

  // Parsers of whole statements.
  Value defined_value();
  void define(const Token& at, Op& op, size_t index);
  void operation(Graph& graph);
  void output(Graph& graph);
  void nested_graph(Program& program);
  void statements(Graph& graph, bool with_graphs);

  Lexer lexer_;
  Token token_;
  Scope scope_;
  Scope outer_scope_;  ///< values of the enclosing graph, while a nested graph is parsed
  OpOffsets* offsets_;
};

Type Parser::type() {
  Type t;
  const auto dtype = parse_dtype(token_.text);
  if (token_.kind != Kind::word || !dtype) fail("expected a type such as f32[?, 784]");
  t.dtype = *dtype;
  advance();
  expect("[");
  if (!is("]")) {
    do {
      t.shape.push_back(dim());
    } while (accept(","));
  }
  expect("]");
  if (accept("{")) {
    const size_t offset = token_.offset;
    const std::string text = expect_token(Kind::word, "a layout such as nChw16c");
    t.layout = parse_layout(text, t.shape.rank());
    if (!t.layout) {
      lexer_.fail(offset, "'" + text + "' is not a layout of a tensor of rank " +
                              std::to_string(t.shape.rank()));
    }
    expect("}");
  }
  return t;
}

double Parser::infinity_or_nan(bool negative) {
  const bool nan = is_word("nan") && !negative;
  if (!nan && !is_word("inf")) fail("expected a number");
  advance();
  if (nan) return std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  return negative ? -inf : inf;
}

Attr Parser::attr() {
  if (token_.kind == Kind::string) return expect_token(Kind::string, "a string");
  if (is("@")) return GraphRef{graph_name()};
  if (is("[")) return list();
  if (accept("-")) return infinity_or_nan(true);
  if (token_.kind == Kind::number) {
    const bool integer = token_.text.find_first_of(".eE") == std::string::npos;
    if (integer) return expect_number<int64_t>("an integer");
    return expect_number<double>("a number");
  }
  if (token_.kind != Kind::word) fail("expected an attribute's value");
  if (parse_dtype(token_.text)) return type();
  if (is_word("nan") || is_word("inf")) return infinity_or_nan(false);
  const std::string word = token_.text;
  if (word == "true" || word == "false") {
    advance();
    return word == "true";
  }
  if (word != "ints" && word != "floats" && word != "strings") {
    fail("expected an attribute's value");
  }
  advance();
  expect("[");
  expect("]");
  if (word == "ints") return std::vector<int64_t>{};
  if (word == "floats") return std::vector<double>{};
  return std::vector<std::string>{};
}

Attr Parser::list() {
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<std::string> strings;
  const size_t start = token_.offset;
  expect("[");
  do {
    const size_t offset = token_.offset;
    // rejects nested lists before attr() recurses
    if (is("[")) fail("expected a number or a string");
    Attr entry = attr();
    if (auto* n = std::get_if<int64_t>(&entry)) {
      ints.push_back(*n);
    } else if (auto* x = std::get_if<double>(&entry)) {
      floats.push_back(*x);
    } else if (auto* s = std::get_if<std::string>(&entry)) {
      strings.push_back(std::move(*s));
    } else {
      lexer_.fail(offset, "a list holds integers, floats or strings");
    }
  } while (accept(","));
  expect("]");
  if (!ints.empty() + !floats.empty() + !strings.empty() != 1) {
    lexer_.fail(start, "the entries of a list must be of one kind: write floats as 1.0");
  }
  if (!ints.empty()) return ints;
  if (!floats.empty()) return floats;
  return strings;
}

Attrs Parser::attrs() {
  Attrs attrs;
  if (!accept("{")) return attrs;
  do {
    const size_t offset = token_.offset;
    const std::string name = expect_identifier("an attribute's name");
    if (attrs.has(name)) lexer_.fail(offset, "attribute '" + name + "' is given twice");
    if (attrs.size() == kMaxAttrs) lexer_.fail(offset, "the op has too many attributes");
    expect("=");
    attrs.set(name, attr());
  } while (accept(","));
  expect("}");
  return attrs;
}

void Parser::annotations(Op& op, int64_t& id) {
  if (!accept("[")) return;
  do {
    if (accept("#")) {
      id = expect_number<int64_t>("an id");
    } else if (is_word("param")) {
      advance();
      op.param = expect_token(Kind::string, "a parameter's name in quotes");
    } else if (is_word("scope")) {
      advance();
      op.scope = expect_token(Kind::string, "a scope's name in quotes");
    } else {
      const auto role = token_.kind == Kind::word ? parse_role(token_.text) : std::nullopt;
      if (!role) fail("expected a role, param, scope or #id");
      op.role = *role;
      advance();
    }
  } while (accept(","));
  expect("]");
}

Loc Parser::loc() {
  if (!accept("@")) return {};
  return parse_loc(expect_token(Kind::string, "a place such as \"mnist.cpp:13\""));
}

Value Parser::defined_value() {
  const auto it = scope_.find(token_.text);
  if (token_.kind == Kind::value && it == scope_.end()) {
    const bool is_outer = outer_scope_.contains(token_.text);
    lexer_.fail(token_.offset,
                "%" + token_.text +
                    (is_outer ? " is a value of the outer graph, which this graph can only take as "
                                "an operand of the op that runs it"
                              : " is not defined above"));
  }
  expect_token(Kind::value, "a value such as %x");
  return it->second;
}

void Parser::define(const Token& at, Op& op, size_t index) {
  if (!scope_.emplace(at.text, op.result(static_cast<int>(index))).second) {
    lexer_.fail(at.offset, "%" + at.text + " is defined twice");
  }
  if (is_identifier(at.text)) op.results[index].name = at.text;
}

void Parser::operation(Graph& graph) {
  std::vector<Token> results;
  if (token_.kind == Kind::value) {
    do {
      if (token_.kind != Kind::value) fail("expected a value such as %x");
      results.push_back(token_);
      advance();
    } while (accept(","));
    expect("=");
  }
  const Token start = token_;
  const std::string name = expect_identifier("an op's name");
  if (!is_op_name(name)) lexer_.fail(start.offset, "'" + name + "' is a keyword, not an op");
  const std::string symbol =
      token_.kind == Kind::string ? expect_token(Kind::string, "a symbol") : "";
  Values operands;
  if (accept("(")) {
    if (!is(")")) {
      do {
        operands.push_back(defined_value());
      } while (accept(","));
    }
    expect(")");
  }
  Attrs attributes = attrs();
  std::vector<Type> types;
  if (accept(":")) {
    do {
      types.push_back(type());
    } while (accept(","));
  }
  if (types.size() != results.size()) {
    lexer_.fail(start.offset, name + " has " + std::to_string(results.size()) + " results but " +
                                  std::to_string(types.size()) + " types");
  }
  int64_t id = graph.ops.empty() ? 0 : graph.ops.back()->id + 1;
  Op& op = *graph.append(name, std::move(operands), std::move(attributes), std::move(types));
  if (offsets_ != nullptr) offsets_->emplace(&op, start.offset);
  op.symbol = symbol;
  annotations(op, id);
  if (id < 0 || id > kMaxId) lexer_.fail(start.offset, "an op's id is out of range");
  op.loc = loc();
  graph.restore_id(op, id);
  for (size_t i = 0; i < results.size(); ++i) define(results[i], op, i);
}

void Parser::output(Graph& graph) {
  expect_word("output");
  std::string name = expect_token(Kind::string, "an output's name in quotes");
  expect("=");
  graph.outputs.push_back({std::move(name), defined_value()});
}

void Parser::nested_graph(Program& program) {
  expect_word("graph");
  const size_t offset = token_.offset;
  const std::string name = graph_name();
  if (program.find(name) != nullptr) {
    lexer_.fail(offset, "there are two graphs named " + graph_reference(name));
  }
  if (program.graphs.size() == kMaxGraphs) lexer_.fail(offset, "the program has too many graphs");
  expect("{");
  outer_scope_.swap(scope_);
  statements(program.add_graph(name), /*with_graphs=*/false);
  scope_.swap(outer_scope_);
  outer_scope_.clear();
}

void Parser::statements(Graph& graph, bool with_graphs) {
  while (!accept("}")) {
    if (is_word("output")) {
      output(graph);
    } else if (is_word("graph") && with_graphs) {
      nested_graph(graph.program());
    } else if (token_.kind == Kind::word || token_.kind == Kind::value) {
      operation(graph);
    } else {
      fail(with_graphs ? "expected a statement, a graph or '}'" : "expected a statement or '}'");
    }
  }
}

}  // namespace

std::unique_ptr<Program> parse(std::string_view text, std::string_view file_name,
                               OpOffsets* offsets) {
  return Parser(text, file_name, offsets).program();
}

}  // namespace fluid::ir
