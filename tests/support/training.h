#pragma once

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "executor/executor.h"

namespace fluid {

/// The kernels that an executor has compiled or read from the kernel cache.
int num_kernels(const Executor& exe);

/// y = x w + b by full-batch Adam: the program of examples/linear_regression.
Program linear_regression_program(double lr = 0.1);

/// The networks of examples/mnist_fluid and of examples/mnist_cnn, which drops 0.1. Their outputs
/// are "loss", "accuracy" and "prob"; nothing is minimized yet.
Program mnist_fluid_program();
Program mnist_cnn_program(double dropout = 0);

/// Two layers with batch norm and dropout between them; its output is "loss", nothing is minimized
/// yet.
Program stateful_program();

/// `n` samples for that: numbers that f16 holds, or with one that it does not.
Batch stateful_batch(int64_t n, bool overflows);

/// `n` images of noise and labels, for those of digits.
Batch digit_batch(int64_t n);

/// `n` samples of y = 2 x0 - 3 x1 + 10 and noise, with a Batch::id.
Batch linear_batch(int64_t n);

/// The `n` images and labels of a step of the golden runs: `images` in tests/golden/training.py,
/// bit for bit.
Batch golden_images(uint64_t step, int64_t n);

/// `n` texts of `length` bytes and the bytes that follow them, for a step of the golden runs:
/// `texts` in tests/golden/training.py, bit for bit.
Batch golden_texts(uint64_t step, int64_t n, int64_t length);

/// Sets weight or bias k of `net`, in the order of recording, to golden_parameter(k); its fan in is
/// that of its layer. Normalisations stay as they are.
void set_golden_parameters(Executor& exe, const Program& net);

/// Where the official MNIST files are, below data_folder().
std::string mnist_directory();

/// The bytes of every parameter, in the executor's order.
std::vector<std::byte> parameter_bytes(Executor& exe);

/// Runs a training step and gives the names of the variables, of all that it reads or writes, that
/// it left with other bytes.
std::set<std::string> changed_by_step(Executor& exe, const Batch& batch);

}  // namespace fluid
