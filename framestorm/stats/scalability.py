"""How throughput grows with load: Gunther's Universal Scalability Law, and the knee of the served rate."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from framestorm.stats.checks import LEVEL, Flags, Floats, finite
from framestorm.stats.estimate import Estimate
from framestorm.stats.means import student, t_quantile, welch

FEWEST_LOADS = 3


@dataclass(frozen=True)
class Knee:
    """The load at and above which, up to the largest load tried, the served rate falls short of the offered rate.

    It lies above `follows_to` and is `at` or less; between two loads that were tried, nothing is known.

    follows_to: the largest load that certainly keeps up; 0 if none does. If it is the largest of all, there is no knee
        up to it.
    at: the smallest load such that it and all larger loads fall short with their whole intervals; None if the largest
        load does not.
    shares: mean of served / offered at each load, in ascending order of loads.
    """

    follows_to: float
    at: float | None
    shares: tuple[float, ...]


def knee(served: Mapping[float, Sequence[float]], within: float, *, closed: bool) -> Knee | None:
    """Find the knee, given what share of the offered rate may be missing; None if the data do not allow it.

    A load falls short if served - (1 - within) * offered is below 0 with its whole interval, and certainly keeps up if
    no part of the interval is below 0. This is the knee of the throughput (Jain, The Art of Computer Systems
    Performance Analysis, 1991, section 3.3), found by intervals instead of by eye: Student's, or Welch's if `closed`.
    A load with only one repetition stays undecided.

    Args:
        served: the served rates per second, one per repetition, by the offered rate per second, or if `closed` by any
            measure of load such as users or workers.
        within: share of the offered rate that may be missing, e.g. 0.05.
        closed: users wait for answers, so no rate is offered. The offered rate is then the served rate at the smallest
            load, grown in proportion (its own spread counts, and the smallest load keeps up by definition).
    """
    points = sorted((load, finite(rates)) for load, rates in served.items())
    base = points[0][1] / points[0][0] if closed and points and points[0][0] > 0 else None
    if len(points) < 2 or points[0][0] <= 0 or (base is not None and base.mean() <= 0):
        return None
    follows_to, at = 0.0, None
    for number, (load, rates) in enumerate(points):
        least = (1 - within) * load
        margin = student(rates - least) if base is None else welch(rates, least * base)
        if (closed and number == 0) or (margin.low is not None and margin.low >= 0):
            follows_to = load
        is_short = not (closed and number == 0) and margin.high is not None and margin.high < 0
        at = (load if at is None else at) if is_short else None
    unit = 1.0 if base is None else float(base.mean())
    return Knee(follows_to, at, tuple(float(rates.mean() / (load * unit)) for load, rates in points))


@dataclass(frozen=True)
class Usl:
    """A fitted law: X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)).

    lambda_per_s: throughput of one worker or user, in the throughput's unit.
    sigma: contention, the share of the work that is serial, without a unit.
    kappa: coherency, the cost of coordination between each pair of workers, without a unit.
    peak: load with the largest throughput, not rounded; None if throughput never falls (kappa 0).
    peak_throughput: throughput at the peak; without a peak the limit lambda / sigma, or None without a limit (sigma 0).
    r_squared: share of the throughputs' variance that the law explains; None if they do not vary.
    """

    lambda_per_s: Estimate
    sigma: Estimate
    kappa: Estimate
    peak: float | None
    peak_throughput: float | None
    r_squared: float | None

    def throughput(self, workers: ArrayLike) -> Floats:
        """Return the law's throughput at these loads, in the unit of the fitted throughput."""
        return _law(np.asarray(workers, dtype=np.float64), self._parameters())

    def _parameters(self) -> Floats:
        return np.array([self.lambda_per_s.value, self.sigma.value, self.kappa.value])


def fit_usl(workers: ArrayLike, throughput: ArrayLike, level: float = LEVEL) -> Usl:
    """Fit the law by least squares of the throughput, with sigma and kappa not negative.

    Gunther, Guerrilla Capacity Planning, 2007, chapters 4 to 6; least squares as in R's package usl 2.0. Intervals are
    Student's. Unlike usl, their covariance does not assume errors of equal size, because the errors of runs grow with
    the throughput (HC3 of MacKinnon and White, Some Heteroskedasticity-Consistent Covariance Matrix Estimators with
    Improved Finite Sample Properties, Journal of Econometrics 29, 1985). Intervals are approximate, and cut off at 0.
    The law does not include superlinear speed-up (a negative sigma), which is fitted as 0.

    Args:
        workers: load of each measurement (workers or users), above 0, with at least FEWEST_LOADS different loads;
            repetitions of a load are separate measurements.
        throughput: measured throughput per second, above 0.
        level: confidence level of the intervals, which have no ends if there are only 3 measurements.
    """
    loads, measured = finite(workers), finite(throughput)
    parameters = _fit(loads, measured)
    residuals = _law(loads, parameters) - measured
    lambda_, sigma, kappa = (float(parameter) for parameter in parameters)
    peak, peak_throughput = _peak(lambda_, sigma, kappa)
    total = float(((measured - measured.mean()) ** 2).sum())
    r_squared = 1 - float(residuals @ residuals) / total if total else None
    return Usl(*_intervals(loads, parameters, residuals, level), peak, peak_throughput, r_squared)


def _law(loads: Floats, parameters: Floats) -> Floats:
    lambda_, sigma, kappa = parameters
    law: Floats = lambda_ * loads / (1 + sigma * (loads - 1) + kappa * loads * (loads - 1))
    return law


def _slopes(loads: Floats, parameters: Floats) -> Floats:
    lambda_, sigma, kappa = parameters
    divisor = 1 + sigma * (loads - 1) + kappa * loads * (loads - 1)
    by_sigma = -lambda_ * loads * (loads - 1) / divisor**2
    return np.column_stack([loads / divisor, by_sigma, by_sigma * loads])


def _fit(loads: Floats, measured: Floats) -> Floats:
    """The best of the four laws with sigma and kappa free or 0; of equally good ones, the one with fewer parameters.

    A bounded solver stops just short of its bounds, and a kappa of 1e-15 instead of 0 would give a false peak.
    """
    best, least = np.zeros(3), math.inf
    rounding = 1e-24 * float(measured @ measured)
    for free in sorted(product((False, True), repeat=2), key=sum):
        fitted = _fit_free(loads, measured, np.array([True, *free]))
        squares = float(((_law(loads, fitted) - measured) ** 2).sum())
        if squares < least * (1 - 1e-9) - rounding:
            best, least = fitted, squares
    return best


def _fit_free(loads: Floats, measured: Floats, free: Flags) -> Floats:
    from scipy import optimize  # slow to import, and rarely needed

    unit = float((measured / loads).max())
    share = measured / unit
    start = np.where(free, [1.0, 0.05, 1e-3 / loads.max()], 0.0)
    # loads / throughput is linear in the parameters: the linear solution is a good start.
    terms = np.column_stack([np.ones_like(loads), loads - 1, loads * (loads - 1)])[:, free]
    linear = np.zeros(3)
    linear[free] = optimize.nnls(terms, loads / share)[0]
    if linear[0] > 0:
        start = np.where(free, np.maximum([1 / linear[0], *(linear[1:] / linear[0])], 1e-9), 0.0)

    def whole(free_ones: Floats) -> Floats:
        parameters = np.zeros(3)
        parameters[free] = free_ones
        return parameters

    def residuals(free_ones: Floats) -> Floats:
        return _law(loads, whole(free_ones)) - share

    def slopes(free_ones: Floats) -> Floats:
        return _slopes(loads, whole(free_ones))[:, free]

    solution = optimize.least_squares(
        residuals, start[free], jac=slopes, bounds=(0, np.inf), x_scale="jac", ftol=1e-15, xtol=1e-15, gtol=1e-15
    )
    fitted = whole(_polished(solution.x, residuals, slopes))
    fitted[0] *= unit
    return fitted


def _polished(solution: Floats, residuals: Callable[[Floats], Floats], slopes: Callable[[Floats], Floats]) -> Floats:
    """Refine the solution by Gauss-Newton steps for as long as they bring the gradient nearer to 0.

    The solver stops when the sum of squares no longer changes; only half the digits of the parameters are then exact.
    """

    def gradient(at: Floats) -> float:
        steep = slopes(at)
        return float(np.linalg.norm(residuals(at) @ steep / np.linalg.norm(steep, axis=0)))

    for _ in range(50):
        steep = slopes(solution)
        lengths = np.linalg.norm(steep, axis=0)
        step = np.linalg.lstsq(steep / lengths, residuals(solution), rcond=None)[0] / lengths
        better: Floats = solution - step
        if better.min() < 0 or gradient(better) >= gradient(solution):
            break
        solution = better
    return solution


def _intervals(
    loads: Floats, parameters: Floats, residuals: Floats, level: float
) -> tuple[Estimate, Estimate, Estimate]:
    freedom = loads.size - parameters.size
    t = t_quantile(level, max(1, freedom))
    method = f"least squares, Student of the covariance (HC3), {level * 100:g} %, n = {loads.size}"
    halves = None
    if freedom > 0:
        slopes = _slopes(loads, parameters)
        inverse = np.linalg.pinv(slopes)  # of the slopes, not of their product, which would be rounded
        left = 1 - (slopes * inverse.T).sum(axis=1)  # 1 - leverage: the share of each error left after the fit
        halves = t * np.sqrt(inverse**2 @ (residuals / np.maximum(left, 1e-9)) ** 2)

    def interval(number: int) -> Estimate:
        value = float(parameters[number])
        if halves is None:
            return Estimate(value, None, None, loads.size, method)
        half = float(halves[number])
        return Estimate(value, max(0.0, value - half), value + half, loads.size, method)

    return interval(0), interval(1), interval(2)


def _peak(lambda_: float, sigma: float, kappa: float) -> tuple[float | None, float | None]:
    if sigma + kappa >= 1:  # more than one worker only adds cost
        return 1.0, lambda_
    if kappa > 0:
        peak = math.sqrt((1 - sigma) / kappa)
        return peak, float(_law(np.array([peak]), np.array([lambda_, sigma, kappa]))[0])
    return None, lambda_ / sigma if sigma > 0 else None
