#include "executor/fluidrun/diagram.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "executor/fluidrun/saved.h"
#include "ops/source_kind.h"

namespace fluid {
namespace {

constexpr int kWidth = 260, kLine = 16, kGapX = 40, kGapY = 56, kMargin = 20;

std::string escaped(std::string_view text, bool xml) {
  std::string out;
  for (const char c : text) {
    if (xml && c == '<') {
      out += "&lt;";
    } else if (xml && c == '&') {
      out += "&amp;";
    } else if (!xml && (c == '"' || c == '\\')) {
      out += std::string("\\") + c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string line_of(const ir::Op& op, bool saved) {
  std::string line = op.symbol.empty() ? op.name : op.name + " " + op.symbol;
  if (!op.results.empty()) line += " : " + op.results.front().type.str();
  return line + (saved ? "  *" : "");
}

int height_of(const Box& box) { return kLine * (static_cast<int>(box.lines.size()) + 1) + 12; }

struct Placed {
  int x = 0, y = 0;
};

/// Boxes of equal rank side by side, ranks from top to bottom.
std::vector<Placed> place(const Diagram& diagram, int& width, int& height) {
  std::map<int, std::vector<size_t>> ranks;
  for (size_t i = 0; i < diagram.boxes.size(); ++i) ranks[diagram.boxes[i].rank].push_back(i);
  std::vector<Placed> placed(diagram.boxes.size());
  size_t widest = 1;
  for (const auto& [rank, row] : ranks) widest = std::max(widest, row.size());
  width = static_cast<int>(widest) * (kWidth + kGapX) - kGapX + 2 * kMargin;
  height = kMargin;
  for (const auto& [rank, row] : ranks) {
    int tallest = 0;
    const int used = static_cast<int>(row.size()) * (kWidth + kGapX) - kGapX;
    int x = (width - used) / 2;
    for (const size_t i : row) {
      placed[i] = {x, height};
      x += kWidth + kGapX;
      tallest = std::max(tallest, height_of(diagram.boxes[i]));
    }
    height += tallest + kGapY;
  }
  height += kMargin - kGapY;
  return placed;
}

std::string svg_arrow(const Arrow& a, const Diagram& diagram, const std::vector<Placed>& placed) {
  const Placed from = placed[a.from], to = placed[a.to];
  const int x1 = from.x + kWidth / 2, y1 = from.y + height_of(diagram.boxes[a.from]);
  const int x2 = to.x + kWidth / 2, y2 = to.y;
  const char* colour = a.saved ? "#d9730d" : "#555";
  std::string svg = fmt::format(
      "<path d='M{} {} C{} {} {} {} {} {}' fill='none' stroke='{}' stroke-width='{}' "
      "marker-end='url(#tip)'/>\n",
      x1, y1, x1, y1 + kGapY / 2, x2, y2 - kGapY / 2, x2, y2 - 4, colour, a.saved ? 3 : 1);
  svg += fmt::format("<text x='{}' y='{}' class='t' fill='{}'>{}{}</text>\n", x1 + 6, y1 + 16,
                     colour, escaped(a.label, true), a.saved ? " (saved)" : "");
  return svg;
}

}  // namespace

Diagram diagram_of(const Program& program) {
  const std::set<int64_t> saved = saved_ops(program);
  Diagram diagram;
  std::map<std::string, size_t> layers;
  std::map<const ir::Op*, size_t> box_of;
  std::set<std::pair<Value, size_t>> drawn;
  for (const auto& op : program.ir().main().ops) {
    const size_t fresh = diagram.boxes.size();
    const size_t at = op->scope.empty() ? fresh : layers.emplace(op->scope, fresh).first->second;
    if (at == fresh) {
      const bool source = source_kind(*op) != SourceKind::none;
      diagram.boxes.push_back({.title = !op->scope.empty() ? op->scope
                                        : source           ? op->symbol
                                                           : op->name});
    }
    Box& box = diagram.boxes[at];
    box.ops.push_back(op.get());
    box.lines.push_back(line_of(*op, saved.contains(op->id)));
    box_of[op.get()] = at;
    for (const Value& v : op->operands) {
      const size_t from = box_of.at(v.op());
      if (from == at) continue;
      box.rank = std::max(box.rank, diagram.boxes[from].rank + 1);
      if (!drawn.insert({v, at}).second) continue;
      diagram.arrows.push_back({from, at, v.type().str(), saved.contains(v.op()->id)});
    }
  }
  return diagram;
}

std::string to_dot(const Diagram& diagram, const std::string& name) {
  std::string dot = fmt::format(
      "digraph \"{}\" {{\n  node [shape=box, fontname=\"monospace\", fontsize=10];\n"
      "  edge [fontname=\"monospace\", fontsize=9];\n",
      escaped(name, false));
  for (size_t i = 0; i < diagram.boxes.size(); ++i) {
    const Box& box = diagram.boxes[i];
    std::string label = escaped(box.title, false);
    for (const std::string& line : box.lines) label += "\\n" + escaped(line, false);
    dot += fmt::format("  b{} [label=\"{}\"];\n", i, label);
  }
  for (const Arrow& a : diagram.arrows) {
    dot += fmt::format("  b{} -> b{} [label=\"{}\"{}];\n", a.from, a.to,
                       a.label + (a.saved ? " (saved)" : ""),
                       a.saved ? ", color=darkorange, penwidth=3" : "");
  }
  return dot + "}\n";
}

std::string to_svg(const Diagram& diagram) {
  int width = 0, height = 0;
  const std::vector<Placed> placed = place(diagram, width, height);
  std::string svg = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}'>\n"
      "<style>text{{font:11px monospace}} .h{{font-weight:bold;font-size:13px}} "
      ".t{{font-size:10px}}</style>\n"
      "<defs><marker id='tip' viewBox='0 0 8 8' refX='6' refY='4' markerWidth='8' "
      "markerHeight='8' markerUnits='userSpaceOnUse' orient='auto'><path d='M0 0 L8 4 L0 8z' "
      "fill='#555'/></marker></defs>\n<rect width='100%' height='100%' fill='white'/>\n",
      width, height);
  for (const Arrow& a : diagram.arrows) svg += svg_arrow(a, diagram, placed);
  for (size_t i = 0; i < diagram.boxes.size(); ++i) {
    const Box& box = diagram.boxes[i];
    const auto [x, y] = placed[i];
    svg += fmt::format(
        "<rect x='{}' y='{}' width='{}' height='{}' rx='6' fill='#eef3fb' stroke='#35507a'/>\n"
        "<text x='{}' y='{}' class='h'>{}</text>\n",
        x, y, kWidth, height_of(box), x + 8, y + kLine, escaped(box.title, true));
    for (size_t l = 0; l < box.lines.size(); ++l) {
      svg += fmt::format("<text x='{}' y='{}'>{}</text>\n", x + 8,
                         y + kLine * (static_cast<int>(l) + 2), escaped(box.lines[l], true));
    }
  }
  return svg + "</svg>\n";
}

}  // namespace fluid
