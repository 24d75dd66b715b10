"""Reference of the automatic learner: slow, obvious and numpy only, with the Gaussian mixtures of `sra`.

It imports nothing of the library, and has the constants of the automatic learner as numbers. It neither initializes nor
re-initializes: the library does both in Python, and `tests/auto` passes the results to the reference.

All points are standardized, (y − reference)/scale; NaN means missing. `AutoLearner.step` has the order of the steps.
"""

import math

import numpy as np

from reference import sra

# ----------------------------------------------------------------------------------------------------------
# A view: core and companion
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
    """A slow core, a companion that learns what the core rejects, and the share of what is rejected."""

    def __init__(self, core, companion, in_core, in_companion, share, counted, lately):
        self.core, self.companion = core, companion
        self.in_core, self.in_companion = in_core, in_companion
        self.share, self.counted, self.lately = share, counted, lately

    def assess(self, y):
        """(−log density, the same above what the core has at best, squared distance from the core)."""
        theta = self.core.theta_bar()
        inside, top = [], []
        for k in range(self.core.K):
            density, height = log_student(y, theta["means"][k], theta["covariances"][k])
            inside.append(np.log(theta["weights"][k]) + density)
            top.append(np.log(theta["weights"][k]) + height)
        inside, top = sra.log_sum_exp(np.array(inside)), sra.log_sum_exp(np.array(top))
        theta = self.companion.theta_bar()
        outside, _ = log_student(y, theta["means"][0], theta["covariances"][0])
        both = np.log((1 - self.share) * np.exp(inside) + self.share * np.exp(outside))
        score = -(0.85 * both + 0.15 * inside)
        return float(score), float(score + top), float(self.core.size(y, "whitened") ** 2)

    def learn(self, y, rejected):
        """Whether the companion should take over: most points have been rejected for long."""
        self.counted += 1
        self.share += max(0.0003, 1 / self.counted) * (rejected - self.share)
        self.share = min(max(self.share, 0.001), 0.5)
        self.lately += (rejected - self.lately) / 100
        if not rejected:
            self.in_core += 1
            self.core.update(y, max(0.0003, 1 / self.in_core))
            return False
        self.in_companion += 1
        rho = max(0.02, 1 / self.in_companion)
        self.companion.update(y, rho)
        core, companion = self.core.theta_bar(), self.companion.theta_bar()
        usual = sum(w * np.diag(np.diag(C)) for w, C in zip(core["weights"], core["covariances"], strict=True))
        wider = (1 - rho * 1e-4) * companion["covariances"][0] + rho * 1e-4 * usual
        self.companion = one_gaussian(companion["means"][0], wider, self.companion.diagonal)
        return self.lately > 0.5

    def swap(self):
        """Companion and core change places."""
        self.core, self.companion = self.companion, self.core
        self.in_core, self.in_companion = min(self.in_companion, 100), self.in_core
        self.lately = 0.0

    def install(self, new):
        """A new core; the old one becomes the companion, as the single Gaussian that has its mean and covariance."""
        theta = self.core.theta_bar()
        weights = theta["weights"] / np.sum(theta["weights"])
        mean = weights @ theta["means"]
        covariance = np.zeros_like(theta["covariances"][0])
        for k in range(self.core.K):
            gap = theta["means"][k] - mean
            covariance += weights[k] * (theta["covariances"][k] + np.outer(gap, gap))
        self.companion = one_gaussian(mean, self.core.kept(covariance), self.core.diagonal)
        self.core = copy_of(new)
        self.in_core, self.in_companion = 50, self.in_core
        self.lately = 0.0


def one_gaussian(mean, covariance, diagonal):
    return sra.GaussianMixture([1.0], [mean], [covariance], "diagonal" if diagonal else "full")


def copy_of(mixture):
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
        expected, here = self.expected(), ~np.isnan(y)
        if not rejected:
            self.count += 1
            rho = max(0.0003, 1 / self.count)
            now, before = (y - self.mean)[here], (self.last - self.mean)[here]
            self.variance[here] += rho * (now**2 - self.variance[here])
            self.covariance[here] += rho * (now * before - self.covariance[here])
            self.mean[here] += rho * now
        self.last = np.where(here, y, expected)

    def recentre(self, mean, variance):
        """After a change: another level and spread, the same φ, known from few points."""
        phi = np.clip(self.covariance / np.maximum(self.variance, 1e-18), -1.0, 1.0)
        self.mean, self.variance, self.covariance = mean, variance, phi * variance
        self.count = min(self.count, 12)


# ----------------------------------------------------------------------------------------------------------
# The bank
# ----------------------------------------------------------------------------------------------------------

STEPS = (0.002, 0.006, 0.02, 0.06, 0.15)


class Ensemble:
    """Five experts, each a mixture; trust by Bayes' rule and a fixed share."""

    def __init__(self, experts, counts, trust, lead, tail, loose, strict):
        self.experts, self.counts, self.trust = list(experts), np.array(counts), np.array(trust)
        self.lead, self.tail, self.loose, self.strict = lead, tail, loose, strict

    def judge(self, y, contamination):
        """(whether experts with most of the trust reject the point, its squared distance by trust)."""
        gamma_squared = self.strict if contamination > 0.04 else self.loose
        q = np.array([expert.size(y, "whitened") ** 2 for expert in self.experts], dtype=np.float64)
        distance = float(self.trust @ q)
        self.tail += 0.001 * (min(distance, gamma_squared) * 2 / len(y) - self.tail)
        return bool(self.trust[q > gamma_squared].sum() > 0.5), distance

    def learn(self, y):
        """Whether the slow experts have just taken over what the quick one knows."""
        losses = np.array([expert.score(y) for expert in self.experts], dtype=np.float64)
        self.trust = self.trust * np.exp(np.maximum(losses.min() - losses, -4.0))
        self.trust = (1 - 0.002) * self.trust / self.trust.sum() + 0.002 / 5
        self.counts = self.counts + 1
        for expert, count, rho in zip(self.experts, self.counts, STEPS, strict=True):
            expert.update(y, max(rho, 1 / count))
        if self.counts[0] % 64 == 0:
            best = self.most_trusted()
            self.experts = [e if t >= 0.01 else copy_of(best) for e, t in zip(self.experts, self.trust, strict=True)]
        self.lead = max(0.0, self.lead + float(np.clip(losses[0] - losses[3], -2.0, 2.0)))
        if self.lead <= 16.0:
            return False
        self.lead = 0.0
        for e in (0, 1, 2):
            self.experts[e] = copy_of(self.experts[3])
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
    """A cumulative sum of log-likelihood ratios: "most are rejected now" against "as many as ever"."""

    def __init__(self, several, risen, since, rejected, contamination, n_points, wait, looks, latest):
        self.several = several
        self.risen, self.since, self.rejected = risen, since, rejected
        self.contamination, self.n_points = contamination, n_points
        self.wait, self.looks, self.latest = wait, looks, list(latest)

    def count(self, y, rejected, taken_over):
        """Return whether a re-initialization must be checked."""
        self.latest = [*self.latest, np.array(y)][-64:]
        usual = min(max(self.contamination, 0.02), 0.3)
        self.n_points += 1
        self.contamination += max(0.002, 1 / self.n_points) * (rejected - self.contamination)
        due = self.several and self.is_due(taken_over)
        if rejected:
            self.risen += math.log(0.7 / usual)
            self.since += 1
            self.rejected += 1
            is_check_point = self.since % 8 == 0 if self.several else True
            return due or (self.risen > 16.0 and self.rejected >= 10 and is_check_point)
        if self.risen > 0.0:
            self.risen += math.log(0.3 / (1 - usual))
            self.since += 1
            if self.risen <= 0.0:
                self.risen, self.since, self.rejected = 0.0, 0, 0
        return due

    def is_due(self, taken_over):
        """A mixture is checked 64, 128, … 320 points after the slow experts took over."""
        if taken_over:
            self.wait, self.looks = 64, 5
            return False
        if self.wait == 0:
            return False
        self.wait -= 1
        if self.wait > 0:
            return False
        if self.looks > 1:
            self.wait, self.looks = 64, self.looks - 1
        return True


# ----------------------------------------------------------------------------------------------------------
# p-values
# ----------------------------------------------------------------------------------------------------------

EDGES = np.concatenate([np.arange(64) * 0.125, 8.0 + np.arange(65) * 0.5])  # of 128 bins, the last one without end


class PValues:
    """Histogram of surprises, and p-values from it."""

    def __init__(self, counts, called=0):
        self.counts, self.called = np.array(counts, dtype=np.float64), called

    def bin_of(self, surprise):
        return int(np.clip(np.searchsorted(EDGES, max(surprise, 0.0), side="right") - 1, 0, 127))

    def in_promise(self, far):
        return self.called <= 2 + far * self.counts.sum()

    def p_value(self, surprise, far):
        surprise = min(surprise, EDGES[-1])
        n, index = self.counts.sum(), self.bin_of(surprise)
        larger = self.counts[index + 1 :].sum()
        if larger < 10:
            seen = 0.0 if self.in_promise(far) else (larger + 0.5 * self.counts[index]) / (n + 1)
            return min(max(self.tail(surprise, n), seen), 1.0)
        low, high = EDGES[index], EDGES[index + 1]
        along = max(0.0, (surprise - low) / (high - low))
        here = larger + self.counts[index]
        if larger > 0.1 * n:  # a straight line between the edges, further out one between the logarithms
            return ((1 - along) * here + along * larger + 0.5) / (n + 1)
        return (here + 0.5) ** (1 - along) * (larger + 0.5) ** along / (n + 1)

    def tail(self, surprise, n):
        """k/n·(1 + x/(k·m))^(−k): the 16 largest or more, continued as an exponential whose mean is not quite known."""
        index, k, m = self.largest(16)
        if n > 15000:
            m = max(m, self.largest(0.002 * n)[2])
        x = max(surprise - EDGES[index], 0.0)
        return (1 + 150 / n) * k / (n + 1) * (1 + x / (k * m)) ** -k

    def largest(self, at_least):
        """The last bin with so many in it or beyond: its index, how many they are, their mean excess over its edge."""
        index = max((p for p in range(128) if self.counts[p:].sum() >= at_least), default=0)
        middles, counts = (EDGES[:-1] + EDGES[1:])[index:] / 2, self.counts[index:]
        return index, counts.sum(), np.sum(counts * (middles - EDGES[index])) / counts.sum()

    def count(self, surprise, p, level, far):
        """A surprise rarer than the level is moved to where it is just so rare, unless too many were called before."""
        index = self.bin_of(surprise)
        if p <= level and self.in_promise(far):
            while index > 0 and self.p_value(EDGES[index], far) <= level:
                index -= 1
        self.counts[index] += 1


# ----------------------------------------------------------------------------------------------------------
# The change score
# ----------------------------------------------------------------------------------------------------------


class SlowMoments:
    """Of one coordinate: a slow robust mean and variance, and how far the recent points are from them."""

    def __init__(self, mean, variance, count, far_out, streak, level, spread):
        self.mean, self.variance, self.count = mean, variance, count
        self.far_out, self.streak, self.level, self.spread = far_out, streak, level, spread

    def follow(self, x):
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

    def gone(self):
        """w/(1 + w) of the length w of (level, spread)."""
        w = math.hypot(self.level, self.spread)
        return w / (1 + w)


class ChangeScore:
    """The mean of a short and a long average of how far the coordinates have gone."""

    def __init__(self, coordinates, short, long):
        self.coordinates, self.short, self.long = coordinates, short, long

    def learn(self, y):
        for coordinate, x in zip(self.coordinates, y, strict=True):
            if not math.isnan(x):
                coordinate.follow(x)
        gone = np.mean([coordinate.gone() for coordinate in self.coordinates])
        self.short += 0.1 * (gone - self.short)
        self.long += 0.0075 * (gone - self.long)
        return (self.short + self.long) / 2


# ----------------------------------------------------------------------------------------------------------
# One point
# ----------------------------------------------------------------------------------------------------------


class AutoLearner:
    """All of it. core_squared: beyond it the scorers reject; odd_squared: within it nothing is an anomaly."""

    def __init__(self, scale, value, residual, lag, bank, rescue, calibration, change, core_squared, odd_squared, far):
        self.scale, self.value, self.residual, self.lag, self.bank = scale, value, residual, lag, bank
        self.rescue, self.calibration, self.change = rescue, calibration, change
        self.core_squared, self.odd_squared, self.far = core_squared, odd_squared, far

    def step(self, y):
        """Process a standardized point; return its results."""
        rest = y - self.lag.expected()
        first, excess, q = self.value.assess(y)
        second, further, q_rest = self.residual.assess(rest)
        unit = np.sum(np.log(self.scale[~np.isnan(y)]))
        score = first + unit + 0.25 * (second + unit)
        surprise = (excess + 0.25 * further) * min(1.0, 8.0 / len(y))

        dropped, distance = self.bank.judge(y, self.rescue.contamination)
        taken_over = False if dropped else self.bank.learn(y)
        look = self.rescue.count(y, dropped, taken_over)

        out_of_core = q > self.core_squared
        changed = self.value.learn(y, out_of_core)
        if changed:
            if self.value.core.K == 1:
                self.value.swap()
            else:
                self.value.install(self.bank.most_trusted())
        if self.residual.learn(rest, q_rest > self.core_squared):
            self.residual.swap()
        self.lag.learn(y, out_of_core)

        p = self.calibration.p_value(surprise, self.far)
        self.calibration.count(surprise, p, 0.1 * self.far, self.far)
        anomaly = p <= self.far and distance > self.odd_squared
        self.calibration.called += anomaly
        return {
            "score": score,
            "change_score": self.change.learn(y),
            "p_value": p,
            "rejected": dropped,
            "anomaly": anomaly,
            "look": look,
            "taken over": taken_over,
            "new core": changed,
        }
