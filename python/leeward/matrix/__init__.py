"""Traffic matrices of apps: predictions of the next hour from earlier hours, and captures.

Choreo places by a traffic matrix of earlier hours, and finds in the matrices of a cloud provider that "data
from the previous hour and the time-of-day are good predictors of the number of bytes transferred in the next
hour" (section 2.1). It states neither how to combine the two nor their errors. Here the prediction of a pair
is a weighted mean of the two. Its weight is fitted (`predictor`), and its error is measured on hours outside
of the fit, beside the error of each of the two alone (`scoring`).

    capture (captures) -> Capture: from packets ---\
    read (series, lists)  ------------------------> Series -> predict -> Prediction: the next matrix
                                                           -> score   -> Score: the errors of all predictors

`class_loads` makes loads of links by class of service from the same captures: telemetry for `leeward impact`.
"""

from leeward.matrix.captures import BY, CONTENTS, SIZES, Capture, capture
from leeward.matrix.class_loads import ClassLoads, class_loads
from leeward.matrix.lists import read
from leeward.matrix.predictor import Model, Prediction, predict
from leeward.matrix.scoring import PREDICTORS, Figure, Score, Scored, score
from leeward.matrix.series import Series, seconds

__all__ = [
    "BY",
    "CONTENTS",
    "PREDICTORS",
    "SIZES",
    "Capture",
    "ClassLoads",
    "Figure",
    "Model",
    "Prediction",
    "Score",
    "Scored",
    "Series",
    "capture",
    "class_loads",
    "predict",
    "read",
    "score",
    "seconds",
]
