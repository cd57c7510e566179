#include "ir/near.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "ir/error.h"

namespace fluid {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), last[j] + 1, row[j - 1] + 1});
      const bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (exchanged) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

std::string nearest_names(std::string_view name, std::span<const std::string> names,
                          size_t max_names) {
  std::vector<std::pair<size_t, std::string_view>> ranked;
  for (const std::string& n : names) ranked.emplace_back(edit_distance(name, n), n);
  std::ranges::stable_sort(ranked, {}, &std::pair<size_t, std::string_view>::first);
  std::string text;
  for (size_t i = 0; i < std::min(max_names, ranked.size()); ++i) {
    text += (i == 0 ? "'" : ", '") + std::string(ranked[i].second) + "'";
  }
  if (ranked.size() > max_names)
    text += " and " + std::to_string(ranked.size() - max_names) + " more";
  return text.empty() ? "none" : text;
}

std::string suggest_names(std::string_view name, std::span<const std::string> candidates) {
  const std::string near = did_you_mean(name, candidates);
  return near.empty() ? "; there are " + nearest_names(name, candidates, candidates.size()) : near;
}

}  // namespace fluid
