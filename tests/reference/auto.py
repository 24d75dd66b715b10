"""Reference of the automatic learner: slow, obvious and numpy only, with the Gaussian mixtures of `sra`.

It imports nothing of the library, and has the constants of the automatic learner as numbers. It neither initializes nor
re-initializes: the library does both in Python, and `tests/auto` passes the results to the reference.

All points are standardized, (y − reference)/scale; NaN means missing. `AutoLearner.step` has the order of the steps.
"""

import math

import numpy as np

from reference import sra

# ----------------------------------------------------------------------------------------------------------
# Density scorer: core and outlier component
# ----------------------------------------------------------------------------------------------------------

NU = 3.0  # degrees of freedom


def log_student(y, mean, covariance):
    """log density of Student's t with NU degrees of freedom and this scale matrix, over the observed coordinates."""
    o = ~np.isnan(y)
    n = np.sum(o)
    Sigma = covariance[np.ix_(o, o)]
    _, log_determinant = np.linalg.slogdet(Sigma.astype(np.float64))
    q = sra.squared_distance(sra.real(y[o]), mean[o], Sigma)
    height = math.lgamma((NU + n) / 2) - math.lgamma(NU / 2) - n / 2 * math.log(NU * math.pi) - log_determinant / 2
    return height - (NU + n) / 2 * np.log1p(q / NU), height


class Scorer:
    """A slow core, an outlier component that learns the points the core rejects, and the share of these points."""

    def __init__(self, core, outlier_component, n_core, n_outlier, outlier_share, n_points, recent_outlier_share):
        self.core, self.outlier_component = core, outlier_component
        self.n_core, self.n_outlier = n_core, n_outlier
        self.outlier_share, self.n_points, self.recent_outlier_share = outlier_share, n_points, recent_outlier_share

    def score_only(self, y):
        """Return −log density, its excess over the minimum of the core, and the squared distance from the core."""
        theta = self.core.theta_bar()
        inside, top = [], []
        for k in range(self.core.K):
            density, height = log_student(y, theta["means"][k], theta["covariances"][k])
            inside.append(np.log(theta["weights"][k]) + density)
            top.append(np.log(theta["weights"][k]) + height)
        inside, top = sra.log_sum_exp(np.array(inside)), sra.log_sum_exp(np.array(top))
        theta = self.outlier_component.theta_bar()
        outside, _ = log_student(y, theta["means"][0], theta["covariances"][0])
        both = np.log((1 - self.outlier_share) * np.exp(inside) + self.outlier_share * np.exp(outside))
        score = -(0.85 * both + 0.15 * inside)
        return float(score), float(score + top), float(self.core.size(y, "whitened") ** 2)

    def learn(self, y, rejected):
        """Return whether the outlier component should replace the core: most recent points were rejected."""
        self.n_points += 1
        self.outlier_share += max(0.0003, 1 / self.n_points) * (rejected - self.outlier_share)
        self.outlier_share = min(max(self.outlier_share, 0.001), 0.5)
        self.recent_outlier_share += (rejected - self.recent_outlier_share) / 100
        if not rejected:
            self.n_core += 1
            self.core.update(y, max(0.0003, 1 / self.n_core))
            return False
        self.n_outlier += 1
        rho = max(0.02, 1 / self.n_outlier)
        self.outlier_component.update(y, rho)
        core, outlier_component = self.core.theta_bar(), self.outlier_component.theta_bar()
        usual_covariance = sum(
            w * np.diag(np.diag(C)) for w, C in zip(core["weights"], core["covariances"], strict=True)
        )
        wider = (1 - rho * 1e-4) * outlier_component["covariances"][0] + rho * 1e-4 * usual_covariance
        self.outlier_component = make_gaussian(outlier_component["means"][0], wider, self.outlier_component.diagonal)
        return self.recent_outlier_share > 0.5

    def swap(self):
        """Exchange core and outlier component."""
        self.core, self.outlier_component = self.outlier_component, self.core
        self.n_core, self.n_outlier = min(self.n_outlier, 100), self.n_core
        self.recent_outlier_share = 0.0

    def replace_core(self, new):
        """Install a new core; the old one becomes the outlier component, as one Gaussian with its moments."""
        theta = self.core.theta_bar()
        weights = theta["weights"] / np.sum(theta["weights"])
        mean = weights @ theta["means"]
        covariance = np.zeros_like(theta["covariances"][0])
        for k in range(self.core.K):
            difference = theta["means"][k] - mean
            covariance += weights[k] * (theta["covariances"][k] + np.outer(difference, difference))
        self.outlier_component = make_gaussian(mean, self.core.apply_structure(covariance), self.core.diagonal)
        self.core = copy_mixture(new)
        self.n_core, self.n_outlier = 50, self.n_core
        self.recent_outlier_share = 0.0


def make_gaussian(mean, covariance, diagonal):
    return sra.GaussianMixture([1.0], [mean], [covariance], "diagonal" if diagonal else "full")


def copy_mixture(mixture):
    theta = mixture.theta_bar()
    kind = "diagonal" if mixture.diagonal else "full"
    return sra.GaussianMixture(theta["weights"], theta["means"], theta["covariances"], kind)


# ----------------------------------------------------------------------------------------------------------
# The lag-1 autoregression of each coordinate
# ----------------------------------------------------------------------------------------------------------


class AR1:
    """Mean, variance and covariance with the value before, of each coordinate; and its last value."""

    def __init__(self, mean, variance, covariance, last, count):
        self.mean, self.variance, self.covariance, self.last = (np.array(a) for a in (mean, variance, covariance, last))
        self.count = count

    def expected(self):
        """μ + φ(y_{t−1} − μ), |φ| ≤ 1."""
        phi = np.clip(self.covariance / np.maximum(self.variance, 1e-18), -1.0, 1.0)
        return self.mean + phi * (self.last - self.mean)

    def learn(self, y, rejected):
        expected, is_observed = self.expected(), ~np.isnan(y)
        if not rejected:
            self.count += 1
            rho = max(0.0003, 1 / self.count)
            current, before = (y - self.mean)[is_observed], (self.last - self.mean)[is_observed]
            self.variance[is_observed] += rho * (current**2 - self.variance[is_observed])
            self.covariance[is_observed] += rho * (current * before - self.covariance[is_observed])
            self.mean[is_observed] += rho * current
        self.last = np.where(is_observed, y, expected)

    def recenter(self, mean, variance):
        """Set level and spread after a change; φ stays, and the count is small."""
        phi = np.clip(self.covariance / np.maximum(self.variance, 1e-18), -1.0, 1.0)
        self.mean, self.variance, self.covariance = mean, variance, phi * variance
        self.count = min(self.count, 12)


# ----------------------------------------------------------------------------------------------------------
# The ensemble of experts
# ----------------------------------------------------------------------------------------------------------

STEPS = (0.002, 0.006, 0.02, 0.06, 0.15)


class Ensemble:
    """Five experts, each a mixture; trust by Bayes' rule and a fixed share."""

    def __init__(self, experts, counts, trust, lead, tail, loose, strict):
        self.experts, self.counts, self.trust = list(experts), np.array(counts), np.array(trust)
        self.lead, self.tail, self.loose, self.strict = lead, tail, loose, strict

    def evaluate(self, y, contamination):
        """Return whether experts with most of the trust reject the point, and its squared distance by trust."""
        gamma_squared = self.strict if contamination > 0.04 else self.loose
        q = np.array([expert.size(y, "whitened") ** 2 for expert in self.experts], dtype=np.float64)
        distance = float(self.trust @ q)
        self.tail += 0.001 * (min(distance, gamma_squared) * 2 / len(y) - self.tail)
        return bool(self.trust[q > gamma_squared].sum() > 0.5), distance

    def learn(self, y):
        """Return whether the slow experts have just been replaced by the fast one."""
        losses = np.array([expert.score(y) for expert in self.experts], dtype=np.float64)
        self.trust = self.trust * np.exp(np.maximum(losses.min() - losses, -4.0))
        self.trust = (1 - 0.002) * self.trust / self.trust.sum() + 0.002 / 5
        self.counts = self.counts + 1
        for expert, count, rho in zip(self.experts, self.counts, STEPS, strict=True):
            expert.update(y, max(rho, 1 / count))
        if self.counts[0] % 64 == 0:
            best = self.most_trusted()
            self.experts = [
                e if t >= 0.01 else copy_mixture(best) for e, t in zip(self.experts, self.trust, strict=True)
            ]
        self.lead = max(0.0, self.lead + float(np.clip(losses[0] - losses[3], -2.0, 2.0)))
        if self.lead <= 16.0:
            return False
        self.lead = 0.0
        for e in (0, 1, 2):
            self.experts[e] = copy_mixture(self.experts[3])
            self.counts[e] = 16
        return True

    def most_trusted(self):
        return self.experts[int(np.argmax(self.trust))]

    def statistics(self):
        """s1, s2, s3 averaged by trust."""
        return [
            sum(t * expert.s[name] for t, expert in zip(self.trust, self.experts, strict=True))
            for name in ("s1", "s2", "s3")
        ]

    def means(self):
        """s2/s1, of each component."""
        s1, s2, _ = self.statistics()
        return (s2 / s1[:, None]).astype(np.float64)

    def moments(self):
        """Mean and variance of each coordinate, over all components."""
        s1, s2, s3 = (np.sum(s, axis=0) for s in self.statistics())
        mean = s2 / s1
        return mean.astype(np.float64), (np.diag(s3) / s1 - mean**2).astype(np.float64)


# ----------------------------------------------------------------------------------------------------------
# Evidence for re-initialization
# ----------------------------------------------------------------------------------------------------------


class Reinitializer:
    """A cumulative sum of log-likelihood ratios: "most points are rejected now" against "the usual share"."""

    def __init__(
        self,
        is_mixture,
        evidence,
        points_since_zero,
        n_rejected,
        contamination,
        n_points,
        points_until_check,
        checks_left,
        recent_points,
    ):
        self.is_mixture = is_mixture
        self.evidence, self.points_since_zero, self.n_rejected = evidence, points_since_zero, n_rejected
        self.contamination, self.n_points = contamination, n_points
        self.points_until_check, self.checks_left, self.recent_points = (
            points_until_check,
            checks_left,
            list(recent_points),
        )

    def update(self, y, rejected, experts_replaced):
        """Return whether a re-initialization must be checked."""
        self.recent_points = [*self.recent_points, np.array(y)][-64:]
        usual_share = min(max(self.contamination, 0.02), 0.3)
        self.n_points += 1
        self.contamination += max(0.002, 1 / self.n_points) * (rejected - self.contamination)
        is_due = self.is_mixture and self.is_check_due(experts_replaced)
        if rejected:
            self.evidence += math.log(0.7 / usual_share)
            self.points_since_zero += 1
            self.n_rejected += 1
            is_check_point = self.points_since_zero % 8 == 0 if self.is_mixture else True
            return is_due or (self.evidence > 16.0 and self.n_rejected >= 10 and is_check_point)
        if self.evidence > 0.0:
            self.evidence += math.log(0.3 / (1 - usual_share))
            self.points_since_zero += 1
            if self.evidence <= 0.0:
                self.evidence, self.points_since_zero, self.n_rejected = 0.0, 0, 0
        return is_due

    def is_check_due(self, experts_replaced):
        """Return whether a check is due: mixtures are checked 64, 128, … 320 points after a replacement."""
        if experts_replaced:
            self.points_until_check, self.checks_left = 64, 5
            return False
        if self.points_until_check == 0:
            return False
        self.points_until_check -= 1
        if self.points_until_check > 0:
            return False
        if self.checks_left > 1:
            self.points_until_check, self.checks_left = 64, self.checks_left - 1
        return True


# ----------------------------------------------------------------------------------------------------------
# p-values
# ----------------------------------------------------------------------------------------------------------

EDGES = np.concatenate([np.arange(64) * 0.125, 8.0 + np.arange(65) * 0.5])  # of 128 bins, the last one without end


class PValues:
    """Histogram of surprises, and p-values from it."""

    def __init__(self, counts, n_anomalies=0):
        self.counts, self.n_anomalies = np.array(counts, dtype=np.float64), n_anomalies

    def get_bin(self, surprise):
        return int(np.clip(np.searchsorted(EDGES, max(surprise, 0.0), side="right") - 1, 0, 127))

    def is_within_rate(self, far):
        return self.n_anomalies <= 2 + far * self.counts.sum()

    def p_value(self, surprise, far):
        surprise = min(surprise, EDGES[-1])
        n, index = self.counts.sum(), self.get_bin(surprise)
        larger = self.counts[index + 1 :].sum()
        if larger < 10:
            observed_share = 0.0 if self.is_within_rate(far) else (larger + 0.5 * self.counts[index]) / (n + 1)
            return min(max(self.tail(surprise, n), observed_share), 1.0)
        low, high = EDGES[index], EDGES[index + 1]
        fraction = max(0.0, (surprise - low) / (high - low))
        at_least = larger + self.counts[index]
        if larger > 0.1 * n:  # a straight line between the edges, further out one between the logarithms
            return ((1 - fraction) * at_least + fraction * larger + 0.5) / (n + 1)
        return (at_least + 0.5) ** (1 - fraction) * (larger + 0.5) ** fraction / (n + 1)

    def tail(self, surprise, n):
        """k/n·(1 + x/(k·m))^(−k): the 16 largest or more, extrapolated by an exponential with an uncertain mean."""
        index, k, m = self.largest(16)
        if n > 15000:
            m = max(m, self.largest(0.002 * n)[2])
        x = max(surprise - EDGES[index], 0.0)
        return (1 + 150 / n) * k / (n + 1) * (1 + x / (k * m)) ** -k

    def largest(self, min_count):
        """Return the last bin with min_count in it or beyond, this count, and the mean excess over its edge."""
        index = max((p for p in range(128) if self.counts[p:].sum() >= min_count), default=0)
        middles, counts = (EDGES[:-1] + EDGES[1:])[index:] / 2, self.counts[index:]
        return index, counts.sum(), np.sum(counts * (middles - EDGES[index])) / counts.sum()

    def count(self, surprise, p, level, far):
        """Count a surprise; one rarer than the level counts at the level, unless too many were anomalies before."""
        index = self.get_bin(surprise)
        if p <= level and self.is_within_rate(far):
            while index > 0 and self.p_value(EDGES[index], far) <= level:
                index -= 1
        self.counts[index] += 1


# ----------------------------------------------------------------------------------------------------------
# The change score
# ----------------------------------------------------------------------------------------------------------


class SlowMoments:
    """A slow robust mean and variance of one coordinate, and the distance of the recent points from them."""

    def __init__(self, mean, variance, count, far_out, streak, level, spread):
        self.mean, self.variance, self.count = mean, variance, count
        self.far_out, self.streak, self.level, self.spread = far_out, streak, level, spread

    def update(self, x):
        deviation = math.sqrt(self.variance)
        z = (x - self.mean) / deviation
        if abs(z) > 4.0:
            self.far_out = min(self.far_out + 1, 4)
            self.streak += 1
            if self.far_out < 3:
                return
            if self.streak >= 64:
                self.mean, self.count, self.streak, z = x, 10, 0, 0.0
        else:
            self.far_out = max(self.far_out - 0.5, 0.0)
            self.streak = 0
        z = min(max(z, -2.0), 2.0)
        self.count += 1
        rho = max(0.01, 1 / self.count)
        self.level += 0.1 * (z - self.level)
        self.spread += 0.1 * (z * z - 1 - self.spread)
        self.mean += rho * z * deviation
        self.variance = max((1 - rho) * self.variance * (1 + rho * z * z), 1e-18)

    def distance(self):
        """Return w/(1 + w) for the length w of (level, spread)."""
        w = math.hypot(self.level, self.spread)
        return w / (1 + w)


class ChangeScore:
    """The mean of a short and a long average of the distances of the coordinates."""

    def __init__(self, coordinates, short, long):
        self.coordinates, self.short, self.long = coordinates, short, long

    def learn(self, y):
        for coordinate, x in zip(self.coordinates, y, strict=True):
            if not math.isnan(x):
                coordinate.update(x)
        distance = np.mean([coordinate.distance() for coordinate in self.coordinates])
        self.short += 0.1 * (distance - self.short)
        self.long += 0.0075 * (distance - self.long)
        return (self.short + self.long) / 2


# ----------------------------------------------------------------------------------------------------------
# One point
# ----------------------------------------------------------------------------------------------------------


class AutoLearner:
    """The automatic learner.

    core_threshold_squared: the scorers reject beyond it; anomaly_threshold_squared: no anomaly is closer.
    """

    def __init__(
        self,
        scale,
        value_scorer,
        residual_scorer,
        ar1,
        ensemble,
        reinitializer,
        p_values,
        change_score,
        core_threshold_squared,
        anomaly_threshold_squared,
        far,
    ):
        self.scale, self.value_scorer, self.residual_scorer, self.ar1, self.ensemble = (
            scale,
            value_scorer,
            residual_scorer,
            ar1,
            ensemble,
        )
        self.reinitializer, self.p_values, self.change_score = reinitializer, p_values, change_score
        self.core_threshold_squared, self.anomaly_threshold_squared, self.far = (
            core_threshold_squared,
            anomaly_threshold_squared,
            far,
        )

    def step(self, y):
        """Process a standardized point; return its results."""
        residual = y - self.ar1.expected()
        value_score, value_surprise, q = self.value_scorer.score_only(y)
        residual_score, residual_surprise, q_residual = self.residual_scorer.score_only(residual)
        log_scale = np.sum(np.log(self.scale[~np.isnan(y)]))
        score = value_score + log_scale + 0.25 * (residual_score + log_scale)
        surprise = (value_surprise + 0.25 * residual_surprise) * min(1.0, 8.0 / len(y))

        is_rejected, distance = self.ensemble.evaluate(y, self.reinitializer.contamination)
        experts_replaced = False if is_rejected else self.ensemble.learn(y)
        needs_check = self.reinitializer.update(y, is_rejected, experts_replaced)

        is_outlier = q > self.core_threshold_squared
        core_replaced = self.value_scorer.learn(y, is_outlier)
        if core_replaced:
            if self.value_scorer.core.K == 1:
                self.value_scorer.swap()
            else:
                self.value_scorer.replace_core(self.ensemble.most_trusted())
        if self.residual_scorer.learn(residual, q_residual > self.core_threshold_squared):
            self.residual_scorer.swap()
        self.ar1.learn(y, is_outlier)

        p = self.p_values.p_value(surprise, self.far)
        self.p_values.count(surprise, p, 0.1 * self.far, self.far)
        anomaly = p <= self.far and distance > self.anomaly_threshold_squared
        self.p_values.n_anomalies += anomaly
        return {
            "score": score,
            "change_score": self.change_score.learn(y),
            "p_value": p,
            "rejected": is_rejected,
            "anomaly": anomaly,
            "needs_check": needs_check,
            "experts_replaced": experts_replaced,
            "core_replaced": core_replaced,
        }
