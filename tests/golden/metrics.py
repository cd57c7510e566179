"""Metrics over several batches by scikit-learn.

    python tests/golden/metrics.py > tests/golden/metrics.json
"""

import json

import numpy as np
import sklearn
from sklearn import metrics

N, C = 57, 4


def number(i, salt):
    """The same numbers as in the test, in [0, 1); multiples of 1/64, so that scores tie."""
    return ((i * 7919 + salt * 104729) % 1009 * 64 // 1009) / 64


def column(n, salt):
    return np.array([number(i, salt) for i in range(n)])


scores = column(N * C, 1).reshape(N, C) - 0.5
labels = (column(N, 2) * 3).astype(int)  # class 3 is only predicted
binary_scores, binary_labels = column(N, 3) - 0.5, (column(N, 4) * 2).astype(int)
prediction, target = column(N * 3, 5).reshape(N, 3), column(N * 3, 6).reshape(N, 3)
predicted = scores.argmax(1)
# Multiples of 1/64 that sum to 1, as scikit-learn requires of probabilities.
thirds = np.floor(column(N * (C - 1), 7).reshape(N, C - 1) * 21) / 64
probabilities = np.concatenate([thirds, 1 - thirds.sum(1, keepdims=True)], axis=1)
own_class = (column(N, 8) * C).astype(int)
log_softmax = scores - np.log(np.exp(scores).sum(1, keepdims=True))

out = {
    "accuracy": metrics.accuracy_score(labels, predicted),
    "mse": metrics.mean_squared_error(target, prediction),
    "rmse": np.sqrt(metrics.mean_squared_error(target, prediction)),
    "mae": metrics.mean_absolute_error(target, prediction),
    "r2": metrics.r2_score(target, prediction),
    "perplexity": np.exp(metrics.log_loss(labels, np.exp(log_softmax), labels=range(C))),
    "roc_auc": metrics.roc_auc_score(binary_labels, binary_scores),
    "roc_auc_ovr": metrics.roc_auc_score(own_class, probabilities, multi_class="ovr", average="macro"),
}
for name, function in [("precision", metrics.precision_score), ("recall", metrics.recall_score),
                       ("f1", metrics.f1_score)]:
    for average in ["micro", "macro", "weighted"]:
        out[f"{name}_{average}"] = function(labels, predicted, average=average, zero_division=0)
    out[f"{name}_binary"] = function(binary_labels, (binary_scores > 0.125).astype(int))

# Of equal scores, the op takes that of the lower class, scikit-learn that of the higher class. Shifts smaller than the
# distance of scores break the ties as the op does.
untied = scores - np.arange(C) / 1024
for k in (1, 2, 3):
    out[f"top_{k}"] = metrics.top_k_accuracy_score(labels, untied, k=k, labels=range(C))
report = metrics.precision_recall_fscore_support(labels, predicted, labels=range(C), zero_division=0)

print(json.dumps({"made_by": "tests/golden/metrics.py", "sklearn": sklearn.__version__,
                  "metrics": {k: float(v) for k, v in out.items()},
                  "confusion": metrics.confusion_matrix(labels, predicted, labels=range(C)).flatten().tolist(),
                  "classes": dict(zip(["precision", "recall", "f1", "samples"], [r.tolist() for r in report]))},
                 indent=1))
