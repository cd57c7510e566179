#pragma once

#include <cstdint>

#include "executor/cpu_libraries/divide_up.h"
#include "passes/memory_plan.h"

namespace fluid {

inline constexpr int64_t kWinogradLanes = 16;  ///< f32 lanes of an AVX-512 register
inline constexpr int64_t kWinogradPanel = 64;  ///< columns of a panel

/// Matrices of f32 values, one per plane of a Winograd transform. The columns of a matrix are
/// divided into panels of kWinogradPanel columns, so that the rows of a panel are adjacent in
/// memory: a matrix is an array [panel][row][column of the panel].
struct WinogradPlanes {
  float* data = nullptr;
  int64_t width = 0;         ///< columns of a panel
  int64_t panel_stride = 0;  ///< values between the starts of adjacent panels
  int64_t plane_stride = 0;  ///< values between the starts of adjacent planes

  /// Returns the address of row 0 and column `column` in plane 0.
  float* at(int64_t column) const {
    return data + column / kWinogradPanel * panel_stride + column % kWinogradPanel;
  }
  /// Returns the matrices without their first `rows` rows.
  WinogradPlanes from_row(int64_t row) const {
    return {data + row * width, width, panel_stride, plane_stride};
  }
  /// Returns the matrices without their first `planes` planes.
  WinogradPlanes from_plane(int64_t plane) const {
    return {data + plane * plane_stride, width, panel_stride, plane_stride};
  }
};

/// The shape of WinogradPlanes. Matrices of fewer than kWinogradPanel columns have a narrower
/// panel.
struct WinogradPlanesShape {
  int64_t planes, rows, columns;

  /// Number of columns, padded to whole vectors.
  int64_t padded_columns() const { return divide_up(columns, kWinogradLanes) * kWinogradLanes; }
  int64_t width() const { return std::min(padded_columns(), kWinogradPanel); }
  int64_t panels() const { return divide_up(columns, kWinogradPanel); }
  /// Values of a row of all panels.
  int64_t row_values() const { return panels() * width(); }
  /// Padded by one cache line, so that stores to different planes hit different cache sets.
  int64_t plane_stride() const { return rows * row_values() + kWinogradLanes; }
  int64_t bytes() const { return align_up(planes * plane_stride() * int64_t{sizeof(float)}); }
  WinogradPlanes at(void* address) const {
    return {static_cast<float*>(address), width(), rows * width(), plane_stride()};
  }
};

}  // namespace fluid
