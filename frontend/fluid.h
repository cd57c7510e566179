#pragma once

// Umbrella header: the whole public API of Fluid.

#include "executor/comm/process_group.h"
#include "executor/executor.h"
#include "executor/trainer/trainer.h"
#include "frontend/cache.h"
#include "frontend/ctc_loss.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "frontend/program.h"
#include "frontend/random.h"
#include "frontend/readers/mnist.h"
#include "frontend/readers/spec.h"
#include "frontend/recurrent.h"
#include "frontend/scan.h"
#include "frontend/spectral_norm.h"
#include "frontend/transformer.h"
#include "ops/functions.h"
#include "ops/nn/global_pool.h"
#include "ops/nn/same_padding.h"
#include "ops/no_amp.h"
#include "ops/operators.h"
