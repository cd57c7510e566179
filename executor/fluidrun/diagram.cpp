#include "executor/fluidrun/diagram.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "executor/cpu/cpu_target.h"
#include "ops/optim/recipes.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/memory_plan.h"
#include "passes/pass.h"
#include "passes/pass_table.h"
#include "passes/rewrite.h"

namespace fluid {

namespace {

/// Compiles the training step of the recipe `recipe`. Does not fuse ops, because the diagram shows
/// the user's ops.
std::unique_ptr<ir::Program> training_step(const Program& program, const std::string& recipe) {
  std::unique_ptr<ir::Program> step = program.ir().clone();
  const CpuTarget target(TargetDescription{});
  for (const Pass& pass : {select_recipe_pass(), infer_types_pass(), append_backward_pass(),
                           simplify_pass(), cse_pass(), dce_pass(), expand_optimizer_pass()}) {
    pass.run(*step, {.recipe = recipe}, target);
  }
  return step;
}

}  // namespace

TrainingMemory training_memory(const Program& program) {
  TrainingMemory memory;
  std::set<std::string> recorded;
  for (const auto& op : program.ir().main().ops) recorded.insert(op->symbol);
  for (const std::string& recipe : recipe_names(program.ir().main())) {
    const std::unique_ptr<ir::Program> step = training_step(program, recipe);
    for (const auto& op : step->main().ops) {
      if (is_store(*op)) memory.updated_variables.insert(op->symbol);
      if (source_kind(*op) == SourceKind::state && !recorded.contains(op->symbol)) {
        const Type& type = op->results.front().type;
        const bool is_moment = is_float(type.dtype) && !type.shape.empty();
        if (is_moment) memory.optimizer_bytes += type.bytes_at(1);
      }
      if (op->role != ir::Role::backward) continue;
      for (const Value& v : op->operands) {
        const ir::Op* root = root_of(v).op();
        const bool computed = source_kind(*root) == SourceKind::none;
        if (computed && root->role == ir::Role::forward) memory.saved_ops.insert(root->id);
      }
    }
  }
  return memory;
}

namespace {

constexpr int kMinBoxWidth = 260, kLineHeight = 16, kGapX = 40, kGapY = 56, kMargin = 20;
// character widths in pixels, in the fonts of to_svg()
constexpr double kCharWidth = 6.7, kTitleCharWidth = 8;
constexpr const char *kSavedColour = "#d9730d", *kArrowColour = "#555";
constexpr int kLabelHeight = 12;
// pixels between the vertical segment of an arrow and the nearest box or segment on its left
constexpr int kLaneSpacing = 14;

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

int height_of(const Box& box) {
  return kLineHeight * (static_cast<int>(box.lines.size()) + 1) + 12;
}

struct BoxPosition {
  int x = 0, y = 0;
  int labels_height = 0;  ///< total height of the arrow labels below the box, in pixels
};

struct DiagramLayout {
  std::vector<BoxPosition> boxes;
  int box_width = kMinBoxWidth;
  /// Box::rank -> largest x coordinate of the boxes and vertical arrow segments of this rank.
  std::map<int, int> right;
  int width = 0, height = kMargin;
};

/// The common width of all boxes, in pixels, which fits the longest line of text in the diagram.
int box_width(const Diagram& diagram) {
  double width = kMinBoxWidth;
  for (const Box& box : diagram.boxes) {
    width = std::max(width, 16 + kTitleCharWidth * static_cast<double>(box.title.size()));
    for (const std::string& line : box.lines) {
      width = std::max(width, 16 + kCharWidth * static_cast<double>(line.size()));
    }
  }
  return static_cast<int>(width);
}

/// Places the boxes of equal rank side by side in a row, and the ranks from top to bottom.
DiagramLayout lay_out(const Diagram& diagram) {
  std::map<int, std::vector<size_t>> ranks;
  for (size_t i = 0; i < diagram.boxes.size(); ++i) ranks[diagram.boxes[i].rank].push_back(i);
  DiagramLayout layout;
  layout.boxes.resize(diagram.boxes.size());
  const int step = (layout.box_width = box_width(diagram)) + kGapX;
  size_t widest = 1;
  for (const auto& [rank, row] : ranks) widest = std::max(widest, row.size());
  layout.width = static_cast<int>(widest) * step - kGapX + 2 * kMargin;
  for (const auto& [rank, row] : ranks) {
    int tallest = 0;
    const int used = static_cast<int>(row.size()) * step - kGapX;
    int x = (layout.width - used) / 2;
    for (const size_t i : row) {
      layout.boxes[i] = {.x = x, .y = layout.height};
      x += step;
      tallest = std::max(tallest, height_of(diagram.boxes[i]));
    }
    layout.right[rank] = x - kGapX;
    layout.height += tallest + kGapY;
  }
  return layout;
}

int centre_x(size_t box, const DiagramLayout& layout) {
  return layout.boxes[box].x + layout.box_width / 2;
}

/// The SVG path of an arrow. An arrow to the next rank is a curve. An arrow that skips ranks has a
/// vertical segment in a lane of its own, to the right of the boxes of the skipped ranks.
std::string svg_path(const Arrow& a, const Diagram& diagram, DiagramLayout& layout) {
  const Box &from = diagram.boxes[a.from], &to = diagram.boxes[a.to];
  const int x1 = centre_x(a.from, layout), x2 = centre_x(a.to, layout);
  const int y1 = layout.boxes[a.from].y + height_of(from);
  const int y2 = layout.boxes[a.to].y - 4;
  constexpr int kBend = kGapY / 2;
  if (to.rank == from.rank + 1) {
    return fmt::format("M{} {} C{} {} {} {} {} {}", x1, y1, x1, y1 + kBend, x2, y2 - kBend, x2, y2);
  }
  int lane = 0;
  for (int r = from.rank + 1; r < to.rank; ++r)
    lane = std::max(lane, layout.right[r] + kLaneSpacing);
  for (int r = from.rank + 1; r < to.rank; ++r) layout.right[r] = lane;
  layout.width = std::max(layout.width, lane + kMargin);
  const int top = y1 + kGapY, bottom = y2 - kGapY;
  return fmt::format("M{} {} C{} {} {} {} {} {} V{} C{} {} {} {} {} {}", x1, y1, x1, top, lane, y1,
                     lane, top, bottom, lane, y2, x2, bottom, x2, y2);
}

/// The SVG marker of an arrowhead.
std::string svg_arrowhead(const char* name, const char* colour) {
  return fmt::format(
      "<marker id='{}' viewBox='0 0 8 8' refX='6' refY='4' markerWidth='8' markerHeight='8' "
      "markerUnits='userSpaceOnUse' orient='auto'><path d='M0 0 L8 4 L0 8z' fill='{}'/></marker>",
      name, colour);
}

std::string svg_arrow(const Arrow& a, const std::string& path) {
  return fmt::format(
      "<path d='{}' fill='none' stroke='{}' stroke-width='{}' marker-end='url(#{})'/>\n", path,
      a.saved ? kSavedColour : kArrowColour, a.saved ? 3 : 1, a.saved ? "saved" : "tip");
}

/// Whether an arrow leaves the box to the right, and no arrow leaves the box to the left.
bool leaves_rightwards(size_t box, const Diagram& diagram, const DiagramLayout& layout) {
  bool right = false, left = false;
  for (const Arrow& a : diagram.arrows) {
    if (a.from != box) continue;
    const bool lane = diagram.boxes[a.to].rank > diagram.boxes[box].rank + 1;
    const int across = centre_x(a.to, layout) - centre_x(box, layout);
    right = right || lane || across > 0;
    left = left || (!lane && across < 0);
  }
  return right && !left;
}

/// The SVG text of an arrow's label, below the centre of the box that the arrow leaves. Places the
/// second and later labels of a box below its first label.
std::string svg_label(const Arrow& a, const Diagram& diagram, DiagramLayout& layout) {
  if (a.label.empty()) return "";
  BoxPosition& from = layout.boxes[a.from];
  from.labels_height += kLabelHeight;
  const bool left_of_arrows = leaves_rightwards(a.from, diagram, layout);
  return fmt::format("<text x='{}' y='{}' class='t' text-anchor='{}' fill='{}'>{}</text>\n",
                     centre_x(a.from, layout) + (left_of_arrows ? -8 : 8),
                     from.y + height_of(diagram.boxes[a.from]) + 4 + from.labels_height,
                     left_of_arrows ? "end" : "start", a.saved ? kSavedColour : kArrowColour,
                     escaped(a.label, true));
}

std::string svg_box(const Box& box, BoxPosition at, int width) {
  std::string svg = fmt::format(
      "<rect x='{}' y='{}' width='{}' height='{}' rx='6' fill='#eef3fb' stroke='#35507a'/>\n"
      "<text x='{}' y='{}' class='h'>{}</text>\n",
      at.x, at.y, width, height_of(box), at.x + 8, at.y + kLineHeight, escaped(box.title, true));
  for (size_t l = 0; l < box.lines.size(); ++l) {
    svg += fmt::format("<text x='{}' y='{}'>{}</text>\n", at.x + 8,
                       at.y + kLineHeight * (static_cast<int>(l) + 2), escaped(box.lines[l], true));
  }
  return svg;
}

/// Shortens the arrows of feeds: moves each box of rank 0 to the rank directly above the first box
/// that reads its value.
void move_feeds_to_readers(Diagram& diagram) {
  std::map<size_t, int> reader_rank;
  for (const Arrow& a : diagram.arrows) {
    const int rank = diagram.boxes[a.to].rank;
    const auto [first, fresh] = reader_rank.emplace(a.from, rank);
    first->second = std::min(first->second, rank);
  }
  for (const auto& [box, rank] : reader_rank) {
    if (diagram.boxes[box].rank == 0) diagram.boxes[box].rank = rank - 1;
  }
}

}  // namespace

Diagram diagram_of(const Program& program, const std::set<int64_t>& saved) {
  Diagram diagram;
  std::map<std::string, size_t> layers;
  std::map<const ir::Op*, size_t> box_of;
  std::set<std::pair<Value, size_t>> drawn;
  std::set<Value> labelled;
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
      const bool has_label = !labelled.insert(v).second;
      diagram.arrows.push_back(
          {from, at, has_label ? "" : v.type().str(), saved.contains(v.op()->id)});
    }
  }
  move_feeds_to_readers(diagram);
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
    dot += fmt::format("  b{} -> b{} [label=\"{}\"{}];\n", a.from, a.to, a.label,
                       a.saved ? ", color=darkorange, penwidth=3" : "");
  }
  return dot + "}\n";
}

std::string to_svg(const Diagram& diagram) {
  DiagramLayout layout = lay_out(diagram);
  std::string arrows, labels, boxes;
  for (const Arrow& a : diagram.arrows) {
    arrows += svg_arrow(a, svg_path(a, diagram, layout));
    labels += svg_label(a, diagram, layout);
  }
  for (size_t i = 0; i < diagram.boxes.size(); ++i) {
    boxes += svg_box(diagram.boxes[i], layout.boxes[i], layout.box_width);
  }
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}'>\n"
      "<style>text{{font:11px monospace}} .h{{font-weight:bold;font-size:13px}} "
      ".t{{font-size:10px;stroke:white;stroke-width:3;paint-order:stroke}}</style>\n"
      "<defs>{7}{8}</defs>\n<rect width='100%' height='100%' fill='white'/>\n"
      "{2}{3}{4}<text x='{5}' y='{6}' fill='{9}'>* and thick arrows: kept for the backward "
      "pass</text>\n</svg>\n",
      layout.width, layout.height, arrows, labels, boxes, kMargin, layout.height - kMargin,
      svg_arrowhead("tip", kArrowColour), svg_arrowhead("saved", kSavedColour), kSavedColour);
}

}  // namespace fluid
