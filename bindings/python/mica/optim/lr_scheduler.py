"""Learning-rate schedules, with torch's names and meanings."""

from mica.optim._cycles import (
    CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts,
    CyclicLR as CyclicLR,
    OneCycleLR as OneCycleLR,
)
from mica.optim._schedule_chains import (
    ChainedScheduler as ChainedScheduler,
    ReduceLROnPlateau as ReduceLROnPlateau,
    SequentialLR as SequentialLR,
)
from mica.optim._schedules import (
    EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING,
    ConstantLR as ConstantLR,
    CosineAnnealingLR as CosineAnnealingLR,
    ExponentialLR as ExponentialLR,
    LambdaLR as LambdaLR,
    LinearLR as LinearLR,
    LRScheduler as LRScheduler,
    MultiplicativeLR as MultiplicativeLR,
    MultiStepLR as MultiStepLR,
    PolynomialLR as PolynomialLR,
    StepLR as StepLR,
    _LRScheduler as _LRScheduler,
)
