"""Reference implementation of Algorithm 1 (SRA) and the models it drives: slow, obvious, numpy only.

Every compiled kernel of limpet is checked against this file. It is written from the equations of the paper
("Online Robust and Adaptive Learning from Data Streams", Section 3) and imports nothing of the library. It
never optimises, never floors a variance and never initializes: the first parameters are given.

Statistics are raw, about the origin, so s3/s1 - mu mu^T cancels where the data lie far from 0. They are
therefore kept in `np.longdouble`; only numpy.linalg, which has no such type, works in float64.

Algorithm 1 requires of a model
    score(point)          -log f(point; theta), natural logarithm
    size(point, norm)     ||H_theta(point)|| in the named norm
    update(point, rho)    theta <- theta - rho H_theta(point)
    parameters()          what the user sees: a dict of arrays
    statistics()          theta itself: a dict of arrays
where a point is a vector y for a mixture and a pair (x, y) for a regression. NaN means missing.
"""

import math
from typing import NamedTuple

import numpy as np

REAL = np.longdouble


def real(values):
    """A fresh long-double array (or scalar) with these values."""
    return np.array(values, dtype=REAL)


# ----------------------------------------------------------------------------------------------------------
# Step sizes: t -> rho_t, with t the 1-based count of points, those of the initialization included.
# ----------------------------------------------------------------------------------------------------------


def constant(rho):
    """rho_t = rho."""
    return lambda t: REAL(rho)


def inverse_time():
    """rho_t = 1/t."""
    return lambda t: REAL(1) / REAL(t)


def polynomial_decay(scale, shift, power):
    """rho_t = scale (t + shift)^(-power)."""
    return lambda t: REAL(scale) * (REAL(t) + REAL(shift)) ** (-REAL(power))


# ----------------------------------------------------------------------------------------------------------
# Algorithm 1
# ----------------------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """Results of `run`, one row per point; all float64."""

    scores: np.ndarray  # (T,)   -log f(y_t; theta_{t-1}), of rejected points too
    rejected: np.ndarray  # (T,)   bool
    sizes: np.ndarray  # (T,)   ||H_{theta_{t-1}}(y_t)||
    parameters: dict  # name -> (T, ...), after the row was accepted or rejected
    statistics: dict  # name -> (T, ...), likewise


def run(model, X, gamma, norm, step, warmup, t0, y=None, patience=0):
    """Algorithm 1 over the rows of X (of X and y for a regression); `model` is left where it ends.

    t0 is the number of points the model was started from: the first row is point t = t0 + 1. The threshold
    acts from t = warmup + 1 on. A rejected point counts: t increases. After `patience` consecutive rejections (0:
    never), the next `warmup` points are all accepted.
    """
    consecutive, n_lifted = 0, 0
    X = np.asarray(X)
    scores, rejected, sizes, parameters, statistics = [], [], [], [], []
    for i in range(len(X)):
        t = t0 + i + 1
        point = X[i] if y is None else (X[i], y[i])
        rho = step(t)

        score = model.score(point)
        size = float(model.size(point, norm))
        # G = H where ||H|| <= gamma, and 0 where ||H|| > gamma
        is_rejected = t > warmup and size > gamma and n_lifted == 0
        n_lifted = max(0, n_lifted - 1)
        consecutive = consecutive + 1 if is_rejected else 0
        if patience > 0 and consecutive == patience:
            consecutive, n_lifted = 0, warmup
        if not is_rejected:
            model.update(point, rho)

        scores.append(score)
        sizes.append(size)
        rejected.append(is_rejected)
        parameters.append(model.parameters())
        statistics.append(model.statistics())
    return Run(
        np.array(scores, dtype=np.float64),
        np.array(rejected, dtype=bool),
        np.array(sizes, dtype=np.float64),
        stack(parameters),
        stack(statistics),
    )


def stack(dicts):
    """A list of dicts of arrays as a dict of arrays."""
    if not dicts:
        return {}
    return {name: np.array([row[name] for row in dicts], dtype=np.float64) for name in dicts[0]}


# ----------------------------------------------------------------------------------------------------------
# Mixtures, by online EM: theta is the vector of expected statistics s, H = s - sbar(y; theta_bar(s)).
# ----------------------------------------------------------------------------------------------------------


class Mixture:
    """Base class of mixtures. `self.s` is a dict: s["s1"] is (K,), every other statistic (K, ...).

    A member gives theta_bar() and, of (theta, y), log_densities, expected_statistics and squared_distances.
    alpha > 0 is SDEM: the responsibilities of the update are smoothed; those in the norm of H are not.
    """

    norms = ("full", "mean", "whitened")

    def __init__(self, alpha):
        self.alpha = REAL(alpha)
        self.s = {}

    def responsibilities(self, y):
        """r_k = w_k f_k(y) / sum_j w_j f_j(y), over the observed coordinates."""
        theta = self.theta_bar()
        log_joint = np.log(theta["weights"]) + self.log_densities(theta, self.point(y))
        return np.exp(log_joint - log_sum_exp(log_joint))

    def score(self, y):
        """-log sum_k w_k f_k(y), over the observed coordinates."""
        theta = self.theta_bar()
        log_joint = np.log(theta["weights"]) + self.log_densities(theta, self.point(y))
        return -log_sum_exp(log_joint)

    def s_bar(self, y, r):
        """E[s(Y, Z) | Y = y]: of each statistic, r_k times its expectation in component k."""
        expected = self.expected_statistics(self.theta_bar(), self.point(y))
        result = {"s1": r}
        for name in expected:
            result[name] = np.array([r[k] * expected[name][k] for k in range(len(r))])
        return result

    def H(self, y, r):
        """The stochastic update s - sbar(y; theta_bar(s))."""
        s_bar = self.s_bar(y, r)
        return {name: self.s[name] - s_bar[name] for name in self.s}

    def size(self, y, norm):
        r = self.responsibilities(y)
        if norm == "full":
            H = self.H(y, r)
            return np.sqrt(sum(np.sum(H[name] ** 2) for name in H))
        if norm == "mean":
            return np.sqrt(np.sum(self.H(y, r)["s2"] ** 2))
        if norm == "whitened":
            return np.sqrt(np.sum(r * self.squared_distances(self.theta_bar(), self.point(y))))
        raise ValueError(f"norm must be one of {self.norms}, not {norm!r}")

    def update(self, y, rho):
        """s <- s - rho H, with the smoothed responsibilities (1 - alpha rho) r_k + alpha rho / K."""
        r = self.responsibilities(y)
        r = (1 - self.alpha * rho) * r + self.alpha * rho / len(r)
        H = self.H(y, r)
        self.s = {name: self.s[name] - rho * H[name] for name in self.s}

    def parameters(self):
        return self.theta_bar()

    def statistics(self):
        return dict(self.s)

    def point(self, y):
        """y as a long-double vector. Invalid points (all missing, infinite) raise."""
        y = np.atleast_1d(real(y))
        if y.shape != (self.d,):
            raise ValueError(f"a point has {self.d} coordinates; this one has shape {y.shape}")
        if np.all(np.isnan(y)) or np.any(np.isinf(y)):
            raise ValueError(f"the reference takes no invalid points: {y}")
        return y


class GaussianMixture(Mixture):
    """s1_k, s2_k, s3_k = running (responsibility, responsibility y, responsibility y y^T), about the origin.

    Started from weights (K,), means (K, d) and covariances (K, d, d), or (K, d) of variances when "diagonal".
    Matrices are (K, d, d) throughout; "diagonal" keeps the other entries of s3 and of the covariances at 0.

    The penalty R: a on the weights, kappa on the means (towards `centre`), nu on the covariances (towards
    `psi`). It acts in the M-step only: the parameters given make the first statistics, and with a penalty
    theta_bar of these is not what was given.
    """

    def __init__(
        self,
        weights,
        means,
        covariances,
        covariance="full",
        a=0,
        kappa=0,
        nu=0,
        centre=None,
        psi=None,
        alpha=0,
    ):
        super().__init__(alpha)
        if covariance not in ("full", "diagonal"):
            raise ValueError(f'covariance must be "full" or "diagonal", not {covariance!r}')
        weights, means, covariances = real(weights), real(means), real(covariances)
        self.K, self.d = means.shape
        self.diagonal = covariance == "diagonal"
        if covariances.ndim == 2:
            covariances = np.array([np.diag(variances) for variances in covariances])
        self.a, self.kappa, self.nu = REAL(a), REAL(kappa), REAL(nu)
        self.centre = np.zeros(self.d, dtype=REAL) if centre is None else np.atleast_1d(real(centre))
        self.psi = np.zeros((self.d, self.d), dtype=REAL) if psi is None else np.atleast_2d(real(psi))

        self.s = {
            "s1": np.zeros(self.K, dtype=REAL),
            "s2": np.zeros((self.K, self.d), dtype=REAL),
            "s3": np.zeros((self.K, self.d, self.d), dtype=REAL),
        }
        for k in range(self.K):
            self.s["s1"][k] = weights[k]
            self.s["s2"][k] = weights[k] * means[k]
            self.s["s3"][k] = weights[k] * self.apply_structure(covariances[k] + np.outer(means[k], means[k]))

    def apply_structure(self, matrix):
        """Return the matrix, or its diagonal if covariances are diagonal."""
        return np.diag(np.diag(matrix)) if self.diagonal else matrix

    def theta_bar(self):
        """The M-step. With a = kappa = nu = 0: weights s1, means s2/s1, covariances s3/s1 - mu mu^T."""
        s1, s2, s3 = self.s["s1"], self.s["s2"], self.s["s3"]
        a, kappa, nu, c = self.a, self.kappa, self.nu, self.centre
        weights = np.zeros(self.K, dtype=REAL)
        means = np.zeros((self.K, self.d), dtype=REAL)
        covariances = np.zeros((self.K, self.d, self.d), dtype=REAL)
        for k in range(self.K):
            m = s2[k] / s1[k]
            C = s3[k] / s1[k] - np.outer(m, m)
            pull = s1[k] * kappa / (s1[k] + kappa) * np.outer(m - c, m - c)
            weights[k] = (s1[k] + a) / (1 + self.K * a)
            means[k] = (s2[k] + kappa * c) / (s1[k] + kappa)
            covariances[k] = self.apply_structure((s1[k] * C + pull + nu * self.psi) / (s1[k] + nu))
        return {"weights": weights, "means": means, "covariances": covariances}

    def log_densities(self, theta, y):
        """log N(y_o; mu_o, Sigma_oo) of each component, o being the observed coordinates."""
        o = ~np.isnan(y)
        result = np.zeros(self.K, dtype=REAL)
        for k in range(self.K):
            sign, log_determinant = np.linalg.slogdet(theta["covariances"][k][np.ix_(o, o)].astype(np.float64))
            if sign <= 0:
                raise ValueError(f"the covariance of component {k} is not positive")
            distance = squared_distance(y[o], theta["means"][k][o], theta["covariances"][k][np.ix_(o, o)])
            result[k] = -(np.sum(o) * np.log(2 * REAL(np.pi)) + log_determinant + distance) / 2
        return result

    def expected_statistics(self, theta, y):
        """E[y | y_o] and E[y y^T | y_o] in each component, by the conditional mean and covariance."""
        o = ~np.isnan(y)
        m = np.isnan(y)
        first = np.zeros((self.K, self.d), dtype=REAL)
        second = np.zeros((self.K, self.d, self.d), dtype=REAL)
        for k in range(self.K):
            mu, Sigma = theta["means"][k], theta["covariances"][k]
            mean = np.array(y)
            covariance = np.zeros((self.d, self.d), dtype=REAL)
            if np.any(m):
                Sigma_oo, Sigma_om = Sigma[np.ix_(o, o)], Sigma[np.ix_(o, m)]
                Sigma_mo, Sigma_mm = Sigma[np.ix_(m, o)], Sigma[np.ix_(m, m)]
                mean[m] = mu[m] + Sigma_mo @ solve(Sigma_oo, y[o] - mu[o])
                covariance[np.ix_(m, m)] = Sigma_mm - Sigma_mo @ solve(Sigma_oo, Sigma_om)
            first[k] = mean
            second[k] = self.apply_structure(np.outer(mean, mean) + covariance)
        return {"s2": first, "s3": second}

    def squared_distances(self, theta, y):
        """(y - mu_k)^T Sigma_k^{-1} (y - mu_k) over the observed coordinates (Sigma_oo: the marginal)."""
        o = ~np.isnan(y)
        result = np.zeros(self.K, dtype=REAL)
        for k in range(self.K):
            result[k] = squared_distance(y[o], theta["means"][k][o], theta["covariances"][k][np.ix_(o, o)])
        return result


class PoissonMixture(Mixture):
    """s1_k, s2_k = running (responsibility, responsibility y); coordinates independent in a component.

    Started from weights (K,) and rates (K, d). The penalty: a on the weights, kappa on the rates (towards
    `centre`).
    """

    def __init__(self, weights, rates, a=0, kappa=0, centre=None, alpha=0):
        super().__init__(alpha)
        weights, rates = real(weights), real(rates)
        self.K, self.d = rates.shape
        self.a, self.kappa = REAL(a), REAL(kappa)
        self.centre = np.zeros(self.d, dtype=REAL) if centre is None else np.atleast_1d(real(centre))
        self.s = {
            "s1": weights,
            "s2": np.array([weights[k] * rates[k] for k in range(self.K)]),
        }

    def theta_bar(self):
        """The M-step. With a = kappa = 0: weights s1, rates s2/s1."""
        s1, s2 = self.s["s1"], self.s["s2"]
        weights = np.zeros(self.K, dtype=REAL)
        rates = np.zeros((self.K, self.d), dtype=REAL)
        for k in range(self.K):
            weights[k] = (s1[k] + self.a) / (1 + self.K * self.a)
            rates[k] = (s2[k] + self.kappa * self.centre) / (s1[k] + self.kappa)
        return {"weights": weights, "rates": rates}

    def log_densities(self, theta, y):
        """sum_j y_j log rate_kj - rate_kj - log y_j! over the observed coordinates j."""
        result = np.zeros(self.K, dtype=REAL)
        for k in range(self.K):
            for j in range(self.d):
                if not np.isnan(y[j]):
                    rate = theta["rates"][k, j]
                    result[k] += y[j] * np.log(rate) - rate - math.lgamma(float(y[j]) + 1)
        return result

    def expected_statistics(self, theta, y):
        """E[y | y_o] in each component: a missing coordinate is expected at the component's rate."""
        first = np.zeros((self.K, self.d), dtype=REAL)
        for k in range(self.K):
            for j in range(self.d):
                first[k, j] = theta["rates"][k, j] if np.isnan(y[j]) else y[j]
        return {"s2": first}

    def squared_distances(self, theta, y):
        """sum_j 4 (sqrt(y_j + 3/8) - sqrt(rate_kj + 3/8))^2 over the observed coordinates: Anscombe's transform."""
        result = np.zeros(self.K, dtype=REAL)
        for k in range(self.K):
            for j in range(self.d):
                if not np.isnan(y[j]):
                    result[k] += 4 * (np.sqrt(y[j] + 0.375) - np.sqrt(theta["rates"][k, j] + 0.375)) ** 2
        return result


def log_sum_exp(values):
    """log sum_k exp(values_k), safe where every density underflows."""
    largest = np.max(values)
    return largest + np.log(np.sum(np.exp(values - largest)))


def solve(matrix, right):
    """matrix^{-1} right, in float64 (numpy has no long-double linear algebra)."""
    return real(np.linalg.solve(matrix.astype(np.float64), right.astype(np.float64)))


def squared_distance(y, mean, covariance):
    """(y - mean)^T covariance^{-1} (y - mean)."""
    return (y - mean) @ solve(covariance, y - mean)


# ----------------------------------------------------------------------------------------------------------
# Regressions, by SGD with an L2 penalty: H = lambda theta + grad loss(theta), in standardised coordinates.
# ----------------------------------------------------------------------------------------------------------


class Regression:
    """Base class of regressions: theta = (b_1 .. b_p, b_0), H_b = lambda b - e x~, H_0 = -e (no penalty).

    A member gives residual(point), e, and longest_step(x~), the step beyond which a point would be overshot.
    """

    norms = ("full", "whitened")

    def __init__(self, coefficients, intercept, feature_centres, feature_scales, penalty):
        self.b = np.atleast_1d(real(coefficients))
        self.b_0 = REAL(intercept)
        self.feature_centres = np.atleast_1d(real(feature_centres))
        self.feature_scales = np.atleast_1d(real(feature_scales))
        self.penalty = REAL(penalty)

    def standardised(self, x):
        """x~ = (x - m) / s; a missing feature stands at its centre, x~_j = 0."""
        x = np.atleast_1d(real(x))
        if x.shape != self.b.shape:
            raise ValueError(f"a point has {len(self.b)} features; this one has shape {x.shape}")
        if np.any(np.isinf(x)):
            raise ValueError(f"the reference takes no invalid points: {x}")
        x = (x - self.feature_centres) / self.feature_scales
        x[np.isnan(x)] = 0
        return x

    def linear(self, x):
        """b . x~ + b_0."""
        return np.sum(self.b * self.standardised(x)) + self.b_0

    def H(self, point):
        """The stochastic update of (b, b_0)."""
        e = self.residual(point)
        return self.penalty * self.b - e * self.standardised(point[0]), -e

    def full_norm(self, point):
        H_b, H_0 = self.H(point)
        return np.sqrt(np.sum(H_b**2) + H_0**2)

    def gradient_step(self, point, rho):
        """(b, b_0) <- (b, b_0) - rho' H with rho' = min(rho, the longest step)."""
        H_b, H_0 = self.H(point)
        rho = min(rho, self.longest_step(self.standardised(point[0])))
        self.b = self.b - rho * H_b
        self.b_0 = self.b_0 - rho * H_0


class LinearRegression(Regression):
    """y~ = b . x~ + b_0 + noise of variance v, H_v = v - e^2; b, b_0, v in standardised coordinates."""

    def __init__(
        self,
        coefficients,
        intercept,
        variance,
        feature_centres,
        feature_scales,
        target_centre,
        target_scale,
        penalty=0,
    ):
        super().__init__(coefficients, intercept, feature_centres, feature_scales, penalty)
        self.v = REAL(variance)
        self.target_centre = REAL(target_centre)
        self.target_scale = REAL(target_scale)

    def residual(self, point):
        """e = y~ - (b . x~ + b_0)."""
        x, y = point
        if not np.isfinite(y):
            raise ValueError(f"the reference takes no invalid targets: {y}")
        return (REAL(y) - self.target_centre) / self.target_scale - self.linear(x)

    def longest_step(self, x):
        """At 1/(1 + |x~|^2) the point is met exactly; the penalty curves by lambda."""
        return 1 / (1 + np.sum(x**2) + self.penalty)

    def score(self, point):
        """-log N(y; prediction, v s_y^2), in the raw units of y."""
        x, y = point
        prediction = self.target_centre + self.target_scale * self.linear(x)
        variance = self.v * self.target_scale**2
        return (np.log(2 * REAL(np.pi) * variance) + (REAL(y) - prediction) ** 2 / variance) / 2

    def size(self, point, norm):
        if norm == "full":
            return self.full_norm(point)
        if norm == "whitened":
            return abs(self.residual(point)) / np.sqrt(self.v)
        raise ValueError(f"norm must be one of {self.norms}, not {norm!r}")

    def update(self, point, rho):
        H_v = self.v - self.residual(point) ** 2
        self.gradient_step(point, rho)
        self.v = self.v - rho * H_v

    def parameters(self):
        return {"coefficients": self.b, "intercept": self.b_0, "variance": self.v}

    def statistics(self):
        return self.parameters()


class LogisticRegression(Regression):
    """P(y = 1) = p = 1/(1 + exp(-(b . x~ + b_0)))."""

    def __init__(self, coefficients, intercept, feature_centres, feature_scales, penalty=0):
        super().__init__(coefficients, intercept, feature_centres, feature_scales, penalty)

    def probabilities(self, x):
        """p and 1 - p, each from its own formula: 1 - p would lose the digits of a p near 1."""
        z = self.linear(x)
        return 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(z))

    def residual(self, point):
        """e = y - p."""
        x, y = point
        if y not in (0, 1):
            raise ValueError(f"the target is 0 or 1, not {y}")
        p, q = self.probabilities(x)
        return q if y == 1 else -p

    def longest_step(self, x):
        """The log-loss curves by at most (1 + |x~|^2)/4; the penalty by lambda."""
        return 1 / ((1 + np.sum(x**2)) / 4 + self.penalty)

    def score(self, point):
        """The log-loss, -log p where y = 1 and -log(1 - p) where y = 0."""
        x, y = point
        z = self.linear(x)
        return np.log1p(np.exp(-z)) if y == 1 else np.log1p(np.exp(z))

    def size(self, point, norm):
        if norm == "full":
            return self.full_norm(point)
        if norm == "whitened":
            p, q = self.probabilities(point[0])
            return abs(self.residual(point)) / np.sqrt(p * q)
        raise ValueError(f"norm must be one of {self.norms}, not {norm!r}")

    def update(self, point, rho):
        self.gradient_step(point, rho)

    def parameters(self):
        return {"coefficients": self.b, "intercept": self.b_0}

    def statistics(self):
        return self.parameters()
