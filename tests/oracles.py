"""Answers by other ways than the engine's: dense Gaussians, grids, and Algorithm 1 as printed.

None of them uses `elimination`, `integration`, `likelihood` or `posterior`.
"""

import math

import torch

LOG_TWO_PI = math.log(2.0 * math.pi)


def gaussian_moments(model):
    """Mean and covariance of a linear model: x = (I − B)⁻¹ (b + S u)."""
    d = len(model.graph)
    lines, intercept, scale = torch.zeros(d, d), torch.zeros(d), torch.zeros(d)
    for i, form in enumerate(model.linear_forms()):
        lines[i, list(model.graph.parents[i])] = form.weights.detach()
        intercept[i], scale[i] = form.intercept.detach(), form.scale.detach()
    total = torch.linalg.inv(torch.eye(d) - lines)
    return total @ intercept, total @ torch.diag(scale**2) @ total.T


def gaussian_log_prob(model, x, observed):
    """log p(x_O) of one row by the dense marginal."""
    mean, covariance = gaussian_moments(model)
    seen = observed.nonzero()[:, 0]
    away, part = x[seen] - mean[seen], covariance[seen][:, seen]
    square = away @ torch.linalg.solve(part, away) if len(seen) else torch.tensor(0.0)
    return -0.5 * (square + torch.logdet(part) + len(seen) * LOG_TWO_PI)


def gaussian_total(model, values, observed):
    """Σ log p(x_O) of rows by the dense marginal, with its gradient."""
    d = len(model.graph)
    forms = model.linear_forms()
    rows = []
    for i, form in enumerate(forms):
        row = torch.zeros(d)
        rows.append(row.index_put((torch.tensor(model.graph.parents[i]).long(),), form.weights))
    total = torch.linalg.inv(torch.eye(d) - torch.stack(rows))
    mean = total @ torch.stack([form.intercept for form in forms])
    covariance = total @ torch.diag(torch.stack([form.scale for form in forms]) ** 2) @ total.T
    answer = torch.zeros(())
    for pattern in observed.unique(dim=0):
        seen = pattern.nonzero()[:, 0]
        if not len(seen):
            continue
        here = (observed == pattern).all(1)
        part = covariance[seen][:, seen]
        away = values[here][:, seen] - mean[seen]
        square = (away * torch.linalg.solve(part, away.T).T).sum()
        answer = answer - 0.5 * (
            square + int(here.sum()) * (torch.logdet(part) + len(seen) * LOG_TWO_PI)
        )
    return answer


def gaussian_conditional(model, x, observed):
    """Mean and covariance of all unobserved nodes of one row given the observed ones."""
    mean, covariance = gaussian_moments(model)
    seen, lost = observed.nonzero()[:, 0], (~observed).nonzero()[:, 0]
    gain = torch.linalg.solve(covariance[seen][:, seen], covariance[seen][:, lost]).T
    return (
        mean[lost] + gain @ (x[seen] - mean[seen]),
        covariance[lost][:, lost] - gain @ covariance[seen][:, lost],
    )


def grid_log_prob(model, x, observed, points=97, reach=8.5):
    """log p(x_O) of one row by the trapezoid rule over the noise of up to three hidden ancestors.

    On a smooth integrand that vanishes at both ends the rule converges faster than any power of
    the spacing; on a bulk of standard deviation s with spacing h its error is exp(−2π² s²/h²).
    """
    closure = sorted(model.graph.ancestral_closure(observed.nonzero()[:, 0].tolist()))
    hidden = [i for i in closure if not observed[i]]
    axis = torch.linspace(-reach, reach, points)
    noise = (
        torch.stack(torch.meshgrid([axis] * len(hidden), indexing="ij"), -1) if hidden else axis
    )
    noise = noise.reshape(-1, len(hidden)) if hidden else torch.zeros(1, 0)
    columns = {i: x[i].expand(len(noise)) for i in closure if observed[i]}
    log_f = torch.full((len(noise),), len(hidden) * math.log(axis[1] - axis[0]))
    for i in closure:
        parents = [columns[j] for j in model.graph.parents[i]]
        parents = torch.stack(parents, -1) if parents else torch.zeros(len(noise), 0)
        with torch.no_grad():
            if observed[i]:
                log_f = log_f + model.mechanism(i).log_prob(columns[i], parents)
            else:
                u = noise[:, hidden.index(i)]
                columns[i] = model.mechanism(i).generate(u, parents).expand(len(noise))
                log_f = log_f - 0.5 * (u**2 + LOG_TWO_PI)
    return torch.logsumexp(log_f, 0)


def algorithm_1(model, x, observed, draws, generator):
    """log p̂(x_O) of one row: the paper's Algorithm 1, line by line."""
    d = len(model.graph)
    closure = model.graph.ancestral_closure([i for i in range(d) if observed[i]])
    log_g = []
    for _ in range(draws):
        u = torch.randn(d, generator=generator)
        value, total = x.clone(), 0.0
        for i in sorted(closure):
            mechanism, parents = model.mechanism(i), value[list(model.graph.parents[i])]
            if observed[i]:
                x_i = value[i].clone().requires_grad_()
                u_i = mechanism.abduct(x_i, parents)
                (slope,) = torch.autograd.grad(u_i, x_i)
                total += -0.5 * (u_i.detach() ** 2 + LOG_TWO_PI) + slope.abs().log()
            else:
                value[i] = mechanism.generate(u[i], parents).detach()
        log_g.append(total)
    return torch.logsumexp(torch.stack(log_g), 0) - math.log(draws)


def gaussian_process(x, y, at, hyper, noise):
    """Mean and deviation of a curve at some places, given rows (n, f) and values (n,).

    A line that is as good as free, radial basis functions and products; `hyper` holds the
    amplitude, f length scales and f bends, whatever follows. The noise is one number, or one for
    each row.
    """
    features = x.shape[1]
    amplitude, reach, bend = hyper[0], hyper[1 : 1 + features], hyper[1 + features :][:features]

    def covariance(a, b):
        distance = ((a[:, None] - b) / reach).square().sum(-1)
        radial = amplitude**2 * torch.exp(-0.5 * distance)
        return radial + ((a * bend**2) @ b.T) ** 2 + 1e4 * (1.0 + a @ b.T)

    rows = covariance(x, x) + noise**2 * torch.eye(len(x))
    across = covariance(at, x)
    mean = across @ torch.linalg.solve(rows, y)
    variance = covariance(at, at) - across @ torch.linalg.solve(rows, across.T)
    return mean, variance.diagonal().sqrt()
