#pragma once

#include "executor/cpu_libraries/winograd_transform.h"

namespace fluid {

/// Computes to = from x filters in each of `planes` planes, on the calling thread. A plane of
/// `from` is a matrix [tiles][from_channels], of `filters` [from_channels][to_channels], of `to`
/// [tiles][to_channels]. Sums in the order of the channels, so that a tile's result does not depend
/// on the number of tiles. Needs AVX-512.
void multiply_winograd_planes(int planes, WinogradPlanes from, WinogradPlanes filters,
                              WinogradPlanes to, int64_t tiles, int64_t from_channels,
                              int64_t to_channels);

}  // namespace fluid
