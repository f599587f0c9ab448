"""Laws of policies: closed forms in linear models, enumeration in discrete ones, holes anywhere.

Each policy of the tables below is written twice: as the engine takes it, and as an equation that
the oracle puts into a dense Gaussian, or into a sum over all states.
"""

import itertools
import math
from dataclasses import dataclass, field

import pytest
import torch
from mixed_models import all_patterns, generator, mixed_model

from misscnf.errors import InputError
from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan
from misscnf.inference.likelihood import observed_log_prob
from misscnf.inference.posterior import draw_completions
from misscnf.mechanisms import Gaussian
from misscnf.model import Chance, Hold, Rule, StructuralModel
from misscnf.model.intervened import worlds

# Linear models: x is a cause of treatment t and outcome y; m lies between, w comes after t.

GRAPH = CausalGraph.read({"x": [], "t": ["x"], "m": ["t", "x"], "w": ["x"], "y": ["m", "t", "x"]})
X, T, M, W, Y = (GRAPH.index(name) for name in "xtmwy")
assert GRAPH.nodes == ("x", "t", "m", "w", "y")
WEIGHTS = {T: [0.8], M: [0.7, 0.3], W: [-0.6], Y: [0.4, 0.9, 0.5]}  # Y: of x, t, m
INTERCEPTS, SCALES = [0.2, -0.3, 0.1, 0.4, -0.2], [1.0, 0.7, 0.6, 0.8, 0.5]


@dataclass(frozen=True)
class Line:
    """x_i := a + Σ_j b_j x_j + c · (natural x_i) + s v, v standard normal."""

    a: float = 0.0
    b: dict = field(default_factory=dict)
    c: float = 0.0
    s: float = 0.0

    def policy(self, node, rows):
        reads = (*self.b, *([node] if self.c else []))
        slopes = (*self.b.values(), *([self.c] if self.c else []))

        def mean(inputs):
            return self.a + sum(b * x for b, x in zip(slopes, inputs, strict=True))

        if self.s:
            score = torch.randn(rows, generator=generator(9))
            return Chance(Normal(mean, self.s), score, reads)
        return Rule(lambda *x: mean(x), reads) if reads else Hold(torch.tensor(self.a))


@dataclass(frozen=True)
class Normal:
    mean: object
    scale: float

    def draw(self, score, inputs):
        return self.mean(inputs) + self.scale * score

    def log_prob(self, x, inputs):
        z = (x - self.mean(inputs)) / self.scale
        return -0.5 * z * z - math.log(self.scale) - 0.5 * math.log(2 * math.pi)


LINES = {
    "constant": {T: Line(1.5)},
    "shift": {T: Line(1.0, c=1.0)},
    "half of the natural value": {T: Line(c=0.5)},
    "dynamic": {T: Line(0.5, {X: -0.7})},
    "of a later column": {T: Line(0.3, {W: 0.8})},
    "of the natural value and a later column": {T: Line(0.1, {W: 0.5}, c=0.6)},
    "draw": {T: Line(0.5, s=0.6)},
    "draw around a line": {T: Line(0.2, {X: 0.9}, s=0.4)},
    "draw around the natural value": {T: Line(1.0, c=1.0, s=0.5)},
    "two rules, one of the other": {T: Line(0.5, {X: -0.7}), M: Line(0.2, {T: 0.5, W: 0.3})},
    "a rule below a constant": {X: Line(-0.5), M: Line(1.0, {T: -0.4}, c=0.5)},
    "a shift below a draw": {T: Line(0.4, s=0.7), M: Line(1.0, c=1.0)},
    "of a column below another intervention": {W: Line(c=1.0, a=2.0), T: Line(0.0, {W: 1.0})},
}


@pytest.fixture(params=LINES)
def lines(request):
    return LINES[request.param]


@pytest.fixture(scope="module")
def linear():
    torch.set_default_dtype(torch.float64)
    made = []
    for i, parents in enumerate(GRAPH.parents):
        made.append(Gaussian(len(parents)))
        made[-1].set_line(INTERCEPTS[i], WEIGHTS.get(i, []), SCALES[i])
    return StructuralModel(GRAPH, made).requires_grad_(requires_grad=False)


def acting(lines, rows):
    return {node: line.policy(node, rows) for node, line in lines.items()}


def moments(lines):
    """Mean and covariance of the nodes in the intervened world: z = (I − B)⁻¹ (a + S e).

    z holds the nodes, and after them the natural value of each.
    """
    d = len(GRAPH)
    slope, mean, scale = torch.zeros(2 * d, 2 * d), torch.zeros(2 * d), torch.zeros(2 * d)
    for i, parents in enumerate(GRAPH.parents):
        own = d + i if i in lines else i
        slope[own, list(parents)] = torch.tensor(WEIGHTS.get(i, []))
        mean[own], scale[own] = INTERCEPTS[i], SCALES[i]
    for i, line in lines.items():
        mean[i], scale[i], slope[i, d + i] = line.a, line.s, line.c
        slope[i, list(line.b)] = torch.tensor(list(line.b.values()))
    total = torch.linalg.inv(torch.eye(2 * d) - slope)
    return (total @ mean)[:d], (total @ torch.diag(scale**2) @ total.T)[:d, :d]


def test_samples_under_a_policy_have_the_closed_form_moments(linear, lines):
    """The sweep is linear in all noise, so that 2 d + 1 rows of it give the moments exactly."""
    d = len(GRAPH)
    noise = torch.cat([torch.zeros(1, 2 * d), torch.eye(2 * d)])
    policies = acting(lines, 2 * d + 1)
    for node, policy in policies.items():
        if isinstance(policy, Chance):
            policies[node] = Chance(policy.law, noise[:, d + node], policy.reads)
    rows = linear.generate(noise[:, :d], policies)
    mean, covariance = moments(lines)
    jacobian = (rows[1:] - rows[0]).T
    torch.testing.assert_close(rows[0], mean, rtol=0.0, atol=1e-12)
    torch.testing.assert_close(jacobian @ jacobian.T, covariance, rtol=0.0, atol=1e-12)


def test_a_counterfactual_solves_the_equations_with_the_noise_of_the_row(linear, lines):
    rows = linear.generate(torch.randn(6, 5, generator=generator(2)))
    policies = acting(lines, 6)
    found = linear.counterfactual(rows, policies)
    noise = torch.stack(
        [
            (rows[:, i] - INTERCEPTS[i] - rows[:, list(pa)] @ torch.tensor(WEIGHTS.get(i, [])))
            for i, pa in enumerate(GRAPH.parents)
        ],
        1,
    )
    for i, parents in enumerate(GRAPH.parents):
        natural = INTERCEPTS[i] + found[:, list(parents)] @ torch.tensor(WEIGHTS.get(i, []))
        expected = natural + noise[:, i]
        if i in lines:
            line = lines[i]
            expected = line.a + line.c * expected + sum(b * found[:, j] for j, b in line.b.items())
            if line.s:
                expected = expected + line.s * policies[i].score
        torch.testing.assert_close(found[:, i], expected, rtol=0.0, atol=1e-10)


def log_prob_under(model, policies, values, observed, seed=0):
    found = torch.zeros(2, len(values))
    for world in worlds(model, policies, values, observed):
        plan = Plan.make(world.model.graph, world.observed, clamped=world.held)
        part = observed_log_prob(world.model, world.values, plan, generator(seed))
        found[:, world.rows] = torch.stack([part.log_prob, part.standard_error])
    return found


def test_densities_under_a_policy_are_closed_form_whatever_is_missing(linear, lines):
    """A draw has its density; a value and a rule have none, and what a row shows of them is moot.

    Integrals without a closed form say their standard error; five of them over 416 rows are
    passed by chance in 2e-4 of seeds.
    """
    rows = linear.generate(torch.randn(1, 5, generator=generator(4)))
    observed = all_patterns(5)
    values = torch.where(observed, rows, 0.0)
    log_prob, error = log_prob_under(linear, acting(lines, len(values)), values, observed)
    mean, covariance = moments(lines)
    for i, pattern in enumerate(observed):
        seen = [j for j in range(5) if pattern[j] and (j not in lines or lines[j].s)]
        away, part = rows[0, seen] - mean[seen], covariance[seen][:, seen]
        square = away @ torch.linalg.solve(part, away) if seen else 0.0
        expected = -0.5 * (square + torch.logdet(part) + len(seen) * math.log(2 * math.pi))
        assert abs(log_prob[i] - expected) <= 5 * error[i] + 1e-6, pattern
        settled = all(not line.c and not line.s for line in lines.values())
        if settled and set(range(5)) - set(lines) <= set(seen):
            assert error[i] == 0.0


def test_completions_under_a_policy_are_draws_from_the_conditional(linear, lines):
    """Means within six standard errors, spreads within 8 % (seven); a rule holds in each draw."""
    rows = linear.generate(torch.randn(2, 5, generator=generator(5)))
    observed = torch.zeros(2, 5, dtype=torch.bool)
    observed[:, Y] = True
    observed[0, W] = True
    policies = acting(lines, 2)
    mean, covariance = moments(lines)
    count = 4000
    for world in worlds(linear, policies, rows, observed):
        plan = Plan.make(world.model.graph, world.observed, clamped=world.held)
        part = draw_completions(world.model, world.values, plan, count, generator(6))
        for number, row in enumerate(world.rows.tolist()):
            drawn = part[:, number, world.place]
            seen = [j for j in range(5) if observed[row, j] and j not in lines]
            gain = torch.linalg.solve(covariance[seen][:, seen], covariance[seen]).T
            wanted = mean + gain @ (rows[row, seen] - mean[seen])
            spread = (covariance - gain @ covariance[seen]).diagonal().clamp(min=0).sqrt()
            off = (drawn.mean(0) - wanted).abs()
            assert (off <= 6 * spread / math.sqrt(count) + 1e-9).all()
            torch.testing.assert_close(drawn.std(0), spread, rtol=0.08, atol=1e-6)
            for i, line in lines.items():
                if not line.s and not line.c:
                    exact = line.a + sum(b * drawn[:, j] for j, b in line.b.items())
                    torch.testing.assert_close(drawn[:, i], exact + 0 * drawn[:, i])


# Discrete models: b1 is the treatment, k its cause, b2 a column beside it.

DISCRETE = "k -> b1; k -> o; b1 -> o; k -> b2; o -> n; b2 -> n"


@dataclass(frozen=True)
class Choice:
    """P(value 1) of a binary node by what it reads."""

    chance: object

    def draw(self, score, inputs):
        uniform = torch.special.ndtr(score)
        return (uniform > 1 - self.chance(*inputs)).to(score)

    def log_prob(self, x, inputs):
        p = self.chance(*inputs)
        return torch.where(x == 1, p, 1 - p).log()


@pytest.fixture(scope="module")
def discrete():
    torch.set_default_dtype(torch.float64)
    return mixed_model(DISCRETE, seed=4)


NODES = CausalGraph.read(DISCRETE).nodes
K, B1, O3, B2, N = (NODES.index(name) for name in ("k", "b1", "o", "b2", "n"))
RULES = {
    "constant": lambda k, own, b2: torch.ones_like(k),
    "turned": lambda k, own, b2: 1 - own,
    "dynamic": lambda k, own, b2: (k >= 1).double(),
    "of a sibling": lambda k, own, b2: b2,
    "of all": lambda k, own, b2: ((k + own + b2) >= 2).double(),
}
CHANCES = {
    "coin": lambda k, own, b2: 0.3 + 0 * k,
    "by a cause": lambda k, own, b2: 0.2 + 0.3 * k,
    "by the natural value and a sibling": lambda k, own, b2: 0.1 + 0.5 * own + 0.3 * b2,
}


def discrete_oracle(model, assigned, chance):
    """The joint over (k, b1 assigned, o, b2, n), by a sum over the natural b1; counts below 40."""
    table = {}
    for k, own, b2, o in itertools.product(range(3), range(2), range(2), range(3)):
        state = torch.tensor([float(k), float(own), float(b2)])
        for b1 in range(2):
            weight = float(chance(*state)) if chance else None
            share = (weight if b1 else 1 - weight) if chance else float(assigned(*state) == b1)
            if not share:
                continue
            row = torch.zeros(40, 5)
            row[:, K], row[:, B1], row[:, O3], row[:, B2] = k, own, o, b2
            row[:, N] = torch.arange(40.0)
            natural = model.log_factors(row)
            row[:, B1] = b1
            under = model.log_factors(row)
            joint = natural[:, B1] + under[:, [K, O3, B2, N]].sum(1) + math.log(share)
            for n, value in enumerate(joint.exp().tolist()):
                key = (k, b1, o, b2, n)
                table[key] = table.get(key, 0.0) + value
    return table


@pytest.mark.slow
@pytest.mark.parametrize("name", [*RULES, *CHANCES])
def test_discrete_densities_under_a_policy_are_sums_over_states(discrete, name):
    reads, chance = (K, B1, B2), CHANCES.get(name)
    rule = None if chance else RULES[name]
    rows = torch.tensor([[1.0, 1.0, 1.0, 0.0, 2.0], [2.0, 0.0, 2.0, 1.0, 0.0]])
    order = torch.tensor([(K, B1, O3, B2, N).index(j) for j in range(5)])
    rows = rows[:, order]
    observed = all_patterns(5).repeat(2, 1)
    values = torch.where(observed, rows.repeat_interleave(32, 0), 0.0)
    policy = Chance(Choice(chance), torch.zeros(64), reads) if chance else Rule(rule, reads)
    log_prob, error = log_prob_under(discrete, {B1: policy}, values, observed)
    table = discrete_oracle(discrete, rule, chance)
    for i, pattern in enumerate(observed):
        wanted = 0.0
        for key, value in table.items():
            state = dict(zip((K, B1, O3, B2, N), key, strict=True))
            counted = [j for j in range(5) if pattern[j] and (j != B1 or chance)]
            if all(state[j] == values[i, j] for j in counted):
                wanted += value
        assert log_prob[i] == pytest.approx(math.log(wanted), abs=1e-8)
        assert error[i] == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("name", [*RULES, *CHANCES])
def test_risks_under_a_policy_are_sums_over_states(discrete, name):
    """40,000 units; the risk of o = 2 within 4 standard errors."""
    reads, chance = (K, B1, B2), CHANCES.get(name)
    units = 40_000
    noise = torch.randn(units, discrete.noise_width, generator=generator(7))
    score = torch.randn(units, generator=generator(8))
    rule = None if chance else RULES[name]
    policy = Chance(Choice(chance), score, reads) if chance else Rule(rule, reads)
    drawn = discrete.generate(noise, {B1: policy})
    table = discrete_oracle(discrete, rule, chance)
    for node, place in ((O3, 2), (B1, 1), (N, 4)):
        value = 1 if node == B1 else 2
        risk = sum(p for key, p in table.items() if key[place] == value)
        error = math.sqrt(max(risk * (1 - risk), 0.0) / units)
        assert abs((drawn[:, node] == value).double().mean() - risk) <= 4 * error + 1e-12


def test_a_threshold_on_a_hidden_number_is_integrated():
    """b := x > 0.3 with x missing: p(y) = Σ_b ∫ p(x) p(y | b, x) 1[b = 1(x > 0.3)], on a grid."""
    model = mixed_model("x1 -> b; x1 -> x2; b -> x2", seed=2)
    one, b, two = (model.graph.index(name) for name in ("x1", "b", "x2"))
    values = torch.zeros(5, 3)
    values[:, two] = torch.linspace(-2.0, 2.0, 5)
    observed = torch.zeros(5, 3, dtype=torch.bool)
    observed[:, two] = True
    policy = Rule(lambda x: (x > 0.3).double(), (one,))
    log_prob, error = log_prob_under(model, {b: policy}, values, observed)
    grid = 0.3 + (torch.arange(-40_000, 40_000) + 0.5) * 2.5e-4
    for row in range(5):
        complete = torch.zeros(len(grid), 3)
        complete[:, one], complete[:, b] = grid, (grid > 0.3).double()
        complete[:, two] = values[row, two]
        factors = model.log_factors(complete)
        wanted = torch.logsumexp(factors[:, one] + factors[:, two], 0) + math.log(2.5e-4)
        assert abs(log_prob[row] - wanted) <= 5 * error[row] + 1e-6
        assert error[row] < 0.01


# What a policy cannot read


@pytest.mark.parametrize(
    ("policies", "words"),
    [
        ({T: Rule(lambda y: y, (Y,))}, "the rule for 't' reads 'y', which is downstream of it"),
        (
            {T: Rule(lambda t, m: t + m, (T, M))},
            "the rule for 't' reads 'm', which is downstream of it",
        ),
        (
            {T: Rule(lambda w: w, (W,)), W: Rule(lambda t: t, (T,))},
            "the rules for 't' and 'w' read one another in a circle",
        ),
    ],
)
def test_what_a_rule_leads_to_is_refused_by_name(linear, policies, words):
    with pytest.raises(InputError, match=words):
        linear.generate(torch.zeros(3, 5), policies)
    with pytest.raises(InputError, match=words):
        list(worlds(linear, policies, torch.zeros(3, 5), torch.ones(3, 5).bool()))


def test_a_column_that_another_intervention_cuts_off_may_be_read(linear):
    """t → m → y, and m is held: y does not depend on t, and a rule for t may read it."""
    chain = CausalGraph.read("t -> m; m -> y; t -> z; y -> z")
    made = []
    for parents in chain.parents:
        made.append(Gaussian(len(parents)))
        made[-1].set_line(0.0, [1.0] * len(parents), 1.0)
    model = StructuralModel(chain, made)
    t, m, y, z = (chain.index(name) for name in "tmyz")
    policies = {m: Hold(torch.tensor(2.0)), t: Rule(lambda y: 10 * y, (y,))}
    noise = torch.randn(4, 4, generator=generator(1))
    found = model.generate(noise, policies)
    torch.testing.assert_close(found[:, y], 2.0 + noise[:, y])
    torch.testing.assert_close(found[:, t], 10 * found[:, y])
    torch.testing.assert_close(found[:, z], found[:, t] + found[:, y] + noise[:, z])
