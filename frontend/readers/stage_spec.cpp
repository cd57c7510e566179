#include "frontend/readers/stage_spec.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <variant>

#include "frontend/readers/image_stages.h"
#include "frontend/readers/one_hot.h"
#include "ir/error.h"
#include "ir/near.h"
#include "ir/number.h"

namespace fluid {
namespace {

using augment::Range;
using augment::Size;

std::vector<std::string> split_text(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// The value and the options of a stage.
class StageArgs {
 public:
  StageArgs(std::string_view text, const std::string& spec) : text_(text), spec_(spec) {
    for (const std::string& item : split_text(text, ',')) {
      const size_t equals = std::min(item.find('='), item.size());
      const std::string value = equals < item.size() ? item.substr(equals + 1) : "";
      std::string key = item.substr(0, equals);
      if (name_.empty()) {
        name_ = key;
        key = "";
        if (equals == item.size()) continue;
      } else if (key.empty() || equals == item.size()) {
        fail("'" + item + "' is not option=value");
      }
      if (!values_.emplace(key, value).second) fail("option '" + key + "' is given twice");
    }
  }

  const std::string& name() const { return name_; }
  bool has(const std::string& option) const { return values_.contains(option); }
  bool has_options() const { return !values_.empty(); }

  [[noreturn]] void fail(const std::string& message) const {
    throw UserError("data '" + spec_ + "', stage '" + text_ + "': " + message);
  }

  /// Throws UserError for options that are not in `known`. The option "" is the value of the stage.
  void check_options(const std::vector<std::string>& known) const {
    for (const auto& [key, value] : values_) {
      if (std::ranges::find(known, key) != known.end()) continue;
      if (key.empty()) fail("the stage has no value");
      fail("no option '" + key + "'" + did_you_mean(key, known));
    }
  }

  double number(const std::string& option, double fallback, Range allowed) const {
    return has(option) ? parsed(option, values_.at(option), allowed) : fallback;
  }

  int64_t integer(const std::string& option, int64_t fallback, int64_t lowest,
                  int64_t highest) const {
    const double value = number(option, static_cast<double>(fallback),
                                {static_cast<double>(lowest), static_cast<double>(highest)});
    if (value != static_cast<double>(static_cast<int64_t>(value))) {
      fail(title(option) + " must be an integer");
    }
    return static_cast<int64_t>(value);
  }

  std::vector<double> numbers(const std::string& option, Range allowed) const {
    if (!has(option)) fail("needs " + title(option));
    std::vector<double> list;
    for (const std::string& item : split_text(values_.at(option), ':')) {
      list.push_back(parsed(option, item, allowed));
    }
    return list;
  }

  /// Parses the value of an option, "low:high", as an interval. `of_one`, if given, converts a
  /// single number to an interval.
  Range range(const std::string& option, Range fallback, Range allowed,
              const std::function<Range(double)>& of_one) const {
    if (!has(option)) return fallback;
    const std::vector<double> ends = numbers(option, allowed);
    if (ends.size() == 1 && of_one) return of_one(ends[0]);
    if (ends.size() != 2 || ends[0] > ends[1]) {
      fail(title(option) + "=" + values_.at(option) + " must be low:high");
    }
    return {ends[0], ends[1]};
  }

  /// Parses the stage's value N or HEIGHTxWIDTH as a size. `width` is 0 for N.
  Size size() const {
    if (!has("")) fail("needs a size, as in " + name_ + "=224 or " + name_ + "=224x320");
    const std::vector<std::string> edges = split_text(values_.at(""), 'x');
    if (edges.size() > 2) fail("a size is N or HEIGHTxWIDTH");
    const auto edge = [&](const std::string& text) {
      const std::optional<int64_t> number = parse_number<int64_t>(text);
      if (!number || *number < 1 || *number > 65535) {
        fail("'" + text + "' is no number of pixels from 1 to 65535");
      }
      return *number;
    };
    return {edge(edges[0]), edges.size() == 2 ? edge(edges[1]) : 0};
  }

  /// Returns the index of an option's value in `allowed`; 0 if the option is not given.
  size_t choice(const std::string& option, const std::vector<std::string>& allowed) const {
    if (!has(option)) return 0;
    const auto found = std::ranges::find(allowed, values_.at(option));
    if (found != allowed.end()) return static_cast<size_t>(found - allowed.begin());
    std::string list;
    for (const std::string& name : allowed) list += (list.empty() ? "" : ", ") + name;
    fail(title(option) + "=" + values_.at(option) + " must be one of " + list +
         did_you_mean(values_.at(option), allowed));
  }

 private:
  std::string title(const std::string& option) const { return option.empty() ? name_ : option; }

  double parsed(const std::string& option, const std::string& text, Range allowed) const {
    const std::optional<double> value = parse_number<double>(text);
    if (value && *value >= allowed.low && *value <= allowed.high) return *value;
    fail(title(option) + ": '" + text + "' must be a number from " + format_number(allowed.low) +
         " to " + format_number(allowed.high));
  }

  static std::string format_number(double value) {
    std::string text = std::to_string(value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
    return text;
  }

  std::string text_, name_;
  const std::string& spec_;
  std::map<std::string, std::string> values_;  // option -> value; "" -> value of the stage
};

/// A stage that makes vectors of labels. It is the last one.
using LabelStage = std::function<SampleSourcePtr(SampleSourcePtr)>;
using AnyStage = std::variant<augment::Stage, Normalization, LabelStage>;

struct StageKind {
  std::string name, usage, doc;
  std::vector<std::string> options;
  std::function<AnyStage(const StageArgs&)> make;
  /// Whether the stage changes an image of size `before` at random; null: it never does. The size
  /// is 0 if it varies.
  bool (*is_random)(const StageArgs&, Size before) = nullptr;
  /// Size of an image after the stage; null: like before.
  Size (*size_after)(const StageArgs&, Size before) = nullptr;
};

constexpr Range kFraction = {0, 1};
constexpr Range kFactor = {0, 100};

Interpolation interpolation_of(const StageArgs& args) {
  return args.choice("interpolation", {"bilinear", "bicubic"}) == 0 ? Interpolation::bilinear
                                                                    : Interpolation::bicubic;
}

Range aspect_ratios(const StageArgs& args, Range fallback) {
  return args.range("ratio", fallback, {0.001, 1000}, {});
}

Range area_fractions(const StageArgs& args, Range fallback) {
  return args.range("scale", fallback, {1e-6, 1}, {});
}

uint8_t fill_of(const StageArgs& args) {
  return static_cast<uint8_t>(args.integer("fill", 0, 0, 255));
}

Border border_of(const StageArgs& args) {
  const std::vector<double> widths = args.numbers("", {0, 65535});
  const auto width = [&](size_t i) { return static_cast<int64_t>(widths[i]); };
  if (widths.size() == 1) return {width(0), width(0), width(0), width(0)};
  if (widths.size() == 2) return {width(0), width(1), width(0), width(1)};
  if (widths.size() == 4) return {width(0), width(1), width(2), width(3)};
  args.fail("a border is N, X:Y or LEFT:TOP:RIGHT:BOTTOM");
}

AnyStage make_pad(const StageArgs& args) {
  augment::PadOptions options{.border = border_of(args), .fill = fill_of(args)};
  options.padding =
      static_cast<BorderMode>(args.choice("mode", {"constant", "edge", "reflect", "symmetric"}));
  return augment::pad(options);
}

Range degrees_of(const StageArgs& args) {
  if (!args.has("")) args.fail("needs an angle in degrees, as in rotate=15 or rotate=-5:20");
  const auto symmetric = [](double angle) { return Range{-std::abs(angle), std::abs(angle)}; };
  return args.range("", {}, {-360, 360}, symmetric);
}

AnyStage make_rotate(const StageArgs& args) {
  return augment::rotate(degrees_of(args), fill_of(args));
}

augment::ColorJitterOptions color_ranges(const StageArgs& args) {
  const auto factor = [](double x) { return Range{std::max(0.0, 1 - x), 1 + x}; };
  const auto turn = [](double x) { return Range{-std::abs(x), std::abs(x)}; };
  return {.brightness = args.range("brightness", {1, 1}, kFactor, factor),
          .contrast = args.range("contrast", {1, 1}, kFactor, factor),
          .saturation = args.range("saturation", {1, 1}, kFactor, factor),
          .hue = args.range("hue", {0, 0}, {-0.5, 0.5}, turn)};
}

AnyStage make_color_jitter(const StageArgs& args) {
  if (!args.has_options()) {
    args.fail(
        "needs a setting, as in color_jitter,brightness=0.4; there are brightness, contrast, "
        "saturation and hue");
  }
  return augment::color_jitter(color_ranges(args));
}

AnyStage make_resize(const StageArgs& args) {
  const Size size = args.size();
  return augment::resize(
      {.size = size, .smaller_edge = size.width == 0, .interpolation = interpolation_of(args)});
}

augment::ResizedCropOptions resized_crop_options(const StageArgs& args) {
  return {.size = args.size(),
          .scale = area_fractions(args, {0.08, 1}),
          .ratio = aspect_ratios(args, {3.0 / 4, 4.0 / 3}),
          .interpolation = interpolation_of(args)};
}

AnyStage make_resized_crop(const StageArgs& args) {
  return augment::resized_crop(resized_crop_options(args));
}

double erase_probability(const StageArgs& args) { return args.number("", 0.5, kFraction); }

AnyStage make_erase(const StageArgs& args) {
  return augment::erase({.probability = erase_probability(args),
                         .scale = area_fractions(args, {0.02, 0.33}),
                         .ratio = aspect_ratios(args, {0.3, 3.3}),
                         .value = fill_of(args)});
}

AnyStage make_normalize(const StageArgs& args) {
  return Normalization{args.numbers("mean", {-1000, 1000}), args.numbers("std", {1e-6, 1000})};
}

int64_t classes_of(const StageArgs& args) { return args.integer("classes", 0, 1, 1 << 20); }

template <SampleSourcePtr (*kMix)(SampleSourcePtr, MixOptions)>
AnyStage make_mixing(const StageArgs& args) {
  const MixOptions options = {.alpha = args.number("", 1, {1e-3, 1000}),
                              .classes = classes_of(args)};
  return LabelStage([options](SampleSourcePtr source) { return kMix(std::move(source), options); });
}

AnyStage make_one_hot(const StageArgs& args) {
  return LabelStage([classes = classes_of(args)](SampleSourcePtr source) {
    return one_hot(std::move(source), classes);
  });
}

bool has_choice(const Range& range) { return range.low < range.high; }

// Sizes of images after a stage, for StageKind::size_after.

Size cropped_size(const StageArgs& args, Size) {
  const Size size = args.size();
  return {size.height, size.width == 0 ? size.height : size.width};
}

Size resized_size(const StageArgs& args, Size before) {
  const Size size = args.size();
  const bool is_square = before.height == before.width && before.height > 0;
  if (size.width > 0 || !is_square) return size.width > 0 ? size : Size();
  return {size.height, size.height};
}

Size padded_size(const StageArgs& args, Size before) {
  if (before.height == 0) return before;
  const Border border = border_of(args);
  return {before.height + border.top + border.bottom, before.width + border.left + border.right};
}

bool always_random(const StageArgs&, Size) { return true; }

bool is_random_flip(const StageArgs& args, Size) {
  const double probability = args.number("", 0.5, kFraction);
  return probability > 0 && probability < 1;
}

bool is_random_rotation(const StageArgs& args, Size) { return has_choice(degrees_of(args)); }

bool is_random_crop(const StageArgs& args, Size before) {
  const Size size = cropped_size(args, before);
  return size.height != before.height || size.width != before.width;
}

/// The stage draws a position, too, unless the part is the whole image.
bool is_random_resized_crop(const StageArgs& args, Size) {
  const augment::ResizedCropOptions options = resized_crop_options(args);
  return options.scale.low < 1 || has_choice(options.ratio);
}

/// Several adjustments are made in a random order.
bool is_random_color_jitter(const StageArgs& args, Size) {
  const auto [brightness, contrast, saturation, hue] = color_ranges(args);
  int adjustments = 0;
  for (const auto& [range, neutral] : {std::pair(brightness, 1.0), std::pair(contrast, 1.0),
                                       std::pair(saturation, 1.0), std::pair(hue, 0.0)}) {
    if (has_choice(range)) return true;
    adjustments += range.low != neutral;
  }
  return adjustments > 1;
}

bool is_random_erase(const StageArgs& args, Size) { return erase_probability(args) > 0; }

const std::vector<StageKind>& stage_kinds() {
  static const std::vector<StageKind> kinds = {
      {"resize",
       "resize=HxW",
       "resize, antialiased; resize=N: the smaller edge to N pixels;"
       " interpolation=bicubic",
       {"", "interpolation"},
       make_resize,
       nullptr,
       resized_size},
      {"resized_crop",
       "resized_crop=N",
       "a random part, resized; scale=0.08:1 of the area,"
       " ratio=0.75:1.333, interpolation=bicubic",
       {"", "scale", "ratio", "interpolation"},
       make_resized_crop,
       is_random_resized_crop,
       cropped_size},
      {"crop",
       "crop=N",
       "a random part of N x N or HxW pixels",
       {""},
       [](const StageArgs& a) -> AnyStage { return augment::crop(a.size()); },
       is_random_crop,
       cropped_size},
      {"center_crop",
       "center_crop=N",
       "the part of N x N or HxW pixels at the centre",
       {""},
       [](const StageArgs& a) -> AnyStage { return augment::center_crop(a.size()); },
       nullptr,
       cropped_size},
      {"pad",
       "pad=N",
       "a border, also X:Y or LEFT:TOP:RIGHT:BOTTOM; fill=0,"
       " mode=constant|edge|reflect|symmetric",
       {"", "fill", "mode"},
       make_pad,
       nullptr,
       padded_size},
      {"flip",
       "flip",
       "mirror from left to right, with probability 0.5 or flip=P",
       {""},
       [](const StageArgs& a) -> AnyStage { return augment::flip(a.number("", 0.5, kFraction)); },
       is_random_flip},
      {"vflip",
       "vflip",
       "mirror from top to bottom, with probability 0.5 or vflip=P",
       {""},
       [](const StageArgs& a) -> AnyStage { return augment::vflip(a.number("", 0.5, kFraction)); },
       is_random_flip},
      {"rotate",
       "rotate=DEGREES",
       "rotate by an angle in [-DEGREES, DEGREES], or LOW:HIGH; fill=0",
       {"", "fill"},
       make_rotate,
       is_random_rotation},
      {"color_jitter",
       "color_jitter,brightness=0.4",
       "change colours by random factors: brightness=0.4 is a"
       " factor in 0.6:1.4; contrast=, saturation=, hue=0.1 is a turn in -0.1:0.1",
       {"brightness", "contrast", "saturation", "hue"},
       make_color_jitter,
       is_random_color_jitter},
      {"erase",
       "erase=P",
       "set a random rectangle to fill=0, with probability 0.5 or P;"
       " scale=0.02:0.33, ratio=0.3:3.3",
       {"", "scale", "ratio", "fill"},
       make_erase,
       is_random_erase},
      {"normalize",
       "normalize",
       "f32 values (x / 255 - mean) / std; mean=0.485:0.456:0.406,"
       "std=0.229:0.224:0.225 by channel",
       {"mean", "std"},
       make_normalize},
      {"mixup",
       "mixup=ALPHA",
       "blend the samples of a batch in pairs; classes=N",
       {"", "classes"},
       make_mixing<mixup>,
       always_random},
      {"cutmix",
       "cutmix=ALPHA",
       "paste parts of images in pairs; classes=N",
       {"", "classes"},
       make_mixing<cutmix>,
       always_random},
      {"one_hot",
       "one_hot",
       "labels as vectors, like those of mixup, for validation; classes=N",
       {"classes"},
       make_one_hot}};
  return kinds;
}

const StageKind& kind_of(const StageArgs& args) {
  std::vector<std::string> names;
  for (const StageKind& kind : stage_kinds()) {
    names.push_back(kind.name);
    if (kind.name == args.name()) return kind;
  }
  args.fail("no stage '" + args.name() + "'" + suggest_names(args.name(), names));
}

AnyStage make_stage(const StageArgs& args) {
  const StageKind& kind = kind_of(args);
  args.check_options(kind.options);
  return kind.make(args);
}

}  // namespace

SampleSourcePtr apply_stages(SampleSourcePtr source, std::string_view stages,
                             const std::string& spec) {
  ImageStages images;
  LabelStage last;
  for (const std::string& text : split_text(stages, '|')) {
    const StageArgs args(text, spec);
    AnyStage stage = make_stage(args);
    if (last) args.fail("mixup, cutmix or one_hot must be the last stage");
    if (auto* change = std::get_if<augment::Stage>(&stage)) {
      if (images.normalize) args.fail("normalize must follow the other stages of an image");
      images.stages.push_back(std::move(*change));
    } else if (auto* normalize = std::get_if<Normalization>(&stage)) {
      if (images.normalize) args.fail("the images are normalized twice");
      images.normalize = std::move(*normalize);
    } else {
      last = std::get<LabelStage>(std::move(stage));
    }
  }
  try {
    if (!images.stages.empty() || images.normalize) {
      source = augment_images(std::move(source), std::move(images));
    }
    return last ? last(std::move(source)) : source;
  } catch (const UserError& error) {
    throw UserError("data '" + spec + "': " + error.what());
  }
}

std::vector<std::string> random_stages(std::string_view stages, Size image,
                                       const std::string& spec) {
  std::vector<std::string> names;
  for (const std::string& text : split_text(stages, '|')) {
    const StageArgs args(text, spec);
    const StageKind& kind = kind_of(args);
    const bool is_listed = std::ranges::find(names, kind.name) != names.end();
    const bool is_random = kind.is_random != nullptr && kind.is_random(args, image);
    if (is_random && !is_listed) names.push_back(kind.name);
    if (kind.size_after != nullptr) image = kind.size_after(args, image);
  }
  return names;
}

std::string stages_help() {
  std::string text;
  for (const StageKind& kind : stage_kinds()) text += "  |" + kind.usage + ": " + kind.doc + "\n";
  return text;
}

}  // namespace fluid
