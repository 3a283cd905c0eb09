"""Samples of the operators behind nn.functional that samples.py has not: interpolation,
pooling in three dimensions and back, losses of margins, bags, attention, recurrent networks.

The same language as there; `samples.py` adds `NN_SAMPLES` to its own.
"""

from __future__ import annotations

from mica.conformance.sample_calls import Call, args, b, i, t

_IMAGE = t(2, 3, 4, 5)
_POOL3 = {
    "max_pool3d_with_indices": [
        args(t(2, 3, 4, 6, 5), [2, 3, 2]),
        args(t(3, 4, 6, 5), [3, 3, 3], [2, 2, 2], [1, 1, 1], [1, 1, 1], True),
    ],
    "max_pool3d": [args(t(2, 3, 4, 6, 5), [2, 3, 2])],
    "avg_pool3d": [
        args(t(2, 3, 4, 6, 5), [2, 3, 2]),
        args(t(3, 4, 6, 5), [3, 3, 3], [2, 2, 2], [1, 1, 1], True, False),
        args(t(1, 2, 4, 5, 5), [2, 2, 2], [1, 1, 1], [1, 1, 1], True, True, 3),
    ],
    "_adaptive_avg_pool3d": [args(t(2, 3, 4, 5, 7), [2, 3, 2])],
    "adaptive_avg_pool3d": [args(t(2, 3, 4, 5, 7), [2, 3, 2]), args(t(3, 4, 5, 7), [1, 1, 1])],
    "adaptive_max_pool3d": [args(t(2, 3, 4, 5, 7), [2, 3, 2])],
    "adaptive_max_pool1d": [args(t(2, 3, 7), [3]), args(t(3, 7), [2])],
    "fractional_max_pool2d": [args(t(2, 3, 7, 6), [2, 2], [3, 3], t(2, 3, 2, low=0, high=1, grad=False))],
    "fractional_max_pool3d": [
        args(t(1, 2, 5, 6, 5), [2, 2, 2], [2, 3, 2], t(1, 2, 3, low=0, high=1, grad=False))
    ],
    "max_unpool2d": [args(t(2, 1, 1), i(2, 1, 1, high=9), [3, 3])],
    "max_unpool3d": [args(t(2, 1, 1, 1), i(2, 1, 1, 1, high=8), [2, 2, 2], [2, 2, 2], [0, 0, 0])],
}
_RESAMPLING = {
    **{
        f"{name}1d": [args(t(2, 3, 5), [8]), args(t(2, 3, 5), [3]), args(t(2, 3, 5), [7], 1.4)]
        for name in ("upsample_nearest", "_upsample_nearest_exact")
    },
    **{
        f"{name}2d": [args(_IMAGE, [7, 3]), args(_IMAGE, [8, 10], 2.0, 2.0)]
        for name in ("upsample_nearest", "_upsample_nearest_exact")
    },
    **{
        f"{name}3d": [args(t(1, 2, 3, 4, 5), [4, 3, 7])]
        for name in ("upsample_nearest", "_upsample_nearest_exact")
    },
    "upsample_linear1d": [args(t(2, 3, 5), [8], a) for a in (False, True)]
    + [args(t(2, 3, 5), [7], False, 1.5)],
    **{
        name: [args(_IMAGE, [7, 3], a) for a in (False, True)] + [args(_IMAGE, [6, 9], False, 1.7, 1.9)]
        for name in (
            "upsample_bilinear2d",
            "upsample_bicubic2d",
            "_upsample_bilinear2d_aa",
            "_upsample_bicubic2d_aa",
        )
    },
    "_upsample_lanczos2d_aa": [args(_IMAGE, [7, 3], False)],
    "upsample_trilinear3d": [args(t(1, 2, 3, 4, 5), [4, 3, 7], a) for a in (False, True)],
    "affine_grid_generator": [
        args(t(2, 2, 3, dtype=d), [2, 1, 3, 4], a) for a in (False, True) for d in ("float32", "float64")
    ]
    + [args(t(1, 3, 4, dtype="float64"), [1, 1, 2, 3, 4], False)],
    "grid_sampler_2d": [
        args(_IMAGE, t(2, 3, 4, 2, low=-1.3, high=1.3), mode, padding, align)
        for mode in (0, 1, 2)
        for padding in (0, 1, 2)
        for align in (False, True)
    ],
    "grid_sampler_3d": [
        args(t(1, 2, 3, 4, 5), t(1, 2, 3, 2, 3, low=-1.3, high=1.3), mode, padding, mode == 0)
        for mode in (0, 1)
        for padding in (0, 1, 2)
    ],
    "grid_sampler": [args(_IMAGE, t(2, 3, 4, 2, low=-1, high=1), 0, 0, False)],
    "pixel_unshuffle": [args(t(2, 3, 4, 6), 2)],
    "channel_shuffle": [args(t(2, 6, 3), 3)],
    "native_channel_shuffle": [args(t(2, 6, 3), 2)],
}
_X = t(3, 4)
_SIGNS = i(3, 4, low=-1, high=2)
_LOSSES = {
    "soft_margin_loss": [args(_X, t(3, 4, grad=False), r) for r in (0, 1, 2)],
    "hinge_embedding_loss": [args(_X, _SIGNS, 0.7, r) for r in (0, 1, 2)],
    "margin_ranking_loss": [args(_X, _X, _SIGNS, 0.3, r) for r in (0, 1, 2)],
    "cosine_embedding_loss": [args(_X, _X, i(3, low=-1, high=2), 0.2, r) for r in (0, 1, 2)]
    + [args(t(4), t(4), i(low=1, high=2))],
    "triplet_margin_loss": [args(_X, _X, _X, 1.0, 2.0, 1e-6, s, r) for s in (False, True) for r in (0, 1)],
    "poisson_nll_loss": [
        args(t(3, 4, low=0.2, high=2), t(3, 4, low=0.2, high=4, grad=False), log, full, 1e-8, 1)
        for log in (False, True)
        for full in (False, True)
    ],
    "multi_margin_loss": [args(_X, i(3, high=4), p, 0.6, None, r) for p in (1, 2) for r in (0, 1)]
    + [args(_X, i(3, high=4), 1, 1, t(4, low=0.1, grad=False)), args(t(4), i(high=4))],
    "_multilabel_margin": [args(_X, i(3, 4, low=-1, high=4)), args(t(2, 3, 4), i(2, 3, 4, low=-1, high=4))],
    "multilabel_margin_loss_forward": [args(_X, i(3, 4, low=-1, high=4), r) for r in (0, 1, 2)],
    "multilabel_margin_loss": [args(_X, i(3, 4, low=-1, high=4)), args(t(4), i(4, high=4))],
}
_REST = {
    "native_dropout_backward": [args(_X, b(3, 4), 2.0)],
    "native_group_norm": [args(t(2, 4, 3), t(4), t(4), 2, 4, 3, 2, 1e-5)],
    "_safe_softmax": [args(_X, 1), args(_X, 0)],
    "bilinear": [args(t(2, 3), t(2, 4), t(5, 3, 4), t(5)), args(t(3), t(4), t(2, 3, 4))],
    "pdist": [args(t(4, 3)), args(t(4, 3), 1.0), args(t(4, 3), 3.0)],
    "rrelu": [args(_X)],
    "_lstm_step": [args(*[_X] * 5)],
    "_lstm_step_backward": [args(*[_X] * 8)],
    "_gru_step": [args(*[_X] * 7)],
    "_gru_step_backward": [args(*[_X] * 6)],
    "lstm_cell": [args(t(2, 3), [t(2, 4), t(2, 4)], t(16, 3), t(16, 4), t(16), t(16))],
    "gru_cell": [args(t(2, 3), t(2, 4), t(12, 3), t(12, 4), t(12), t(12))],
    "rnn_tanh_cell": [args(t(2, 3), t(2, 4), t(4, 3), t(4, 4))],
    "rnn_relu_cell": [args(t(2, 3), t(2, 4), t(4, 3), t(4, 4), t(4), t(4))],
    "_scaled_dot_product_attention_math": [args(t(2, 2, 5, 4), t(2, 2, 6, 4), t(2, 2, 6, 3))],
}
NN_SAMPLES: dict[str, list[Call]] = {**_POOL3, **_RESAMPLING, **_LOSSES, **_REST}

# Gradients are compared where their operator is: nn.functional in test_nn_torch.py.
NN_UNSAMPLED: dict[str, str] = {
    **dict.fromkeys(
        ["alpha_dropout", "feature_alpha_dropout"],
        "random: streams are compared with torch's in test_random_torch.py",
    ),
    **dict.fromkeys(
        [
            f"{network}.{form}"
            for network in ("lstm", "gru", "rnn_tanh", "rnn_relu")
            for form in ("input", "data")
        ],
        "lists of weights: compared through the modules in test/nn/test_nn_torch.py",
    ),
    **dict.fromkeys(
        ["ctc_loss.IntList", "ctc_loss.Tensor"],
        "the gradient is that of probabilities which a softmax normalised: compared in test/nn/test_nn_torch.py",
    ),
    **dict.fromkeys(
        ["embedding_bag", "embedding_bag.padding_idx"],
        "the first result alone is torch's: compared through nn.functional in test/nn/test_nn_torch.py",
    ),
}

# See CANCELS of samples.py.
NN_CANCELS: dict[str, str] = {
    "affine_grid_generator": "products of both signs are added",
    "gru_cell": "the old state is subtracted from the new one that is added again",
}
