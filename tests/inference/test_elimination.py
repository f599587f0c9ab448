"""The plan of a table against the same sets computed by brute force, pattern by pattern."""

import itertools
import random

import pytest
import torch

from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan


def random_graph(seed):
    """A graph of 5 to 8 nodes, sparse to dense."""
    rng = random.Random(seed)
    d, share = rng.randint(5, 8), rng.choice([0.2, 0.35, 0.6])
    names = [f"x{i}" for i in range(d)]
    rng.shuffle(names)
    edges = [pair for pair in itertools.combinations(names, 2) if rng.random() < share]
    return CausalGraph.from_edges(edges, names)


def all_patterns(d):
    return torch.tensor(list(itertools.product([False, True], repeat=d)))


def brute_force(graph, observed, clamped=frozenset(), *, joint=False):
    """Hidden, free and label of one row, by sets alone."""
    d = len(graph)
    parents = {i: set() if i in clamped else set(graph.parents[i]) for i in range(d)}
    seen = {i for i in range(d) if observed[i] or i in clamped}

    def ancestors(i):
        return {i}.union(*(ancestors(j) for j in parents[i]))

    closure = set().union(*(ancestors(i) for i in seen))
    hidden = closure - seen
    factors = closure - clamped
    free = {i for i in factors if not ({i} | parents[i]) & hidden}
    group = {i: i for i in hidden}

    def find(i):
        return i if group[i] == i else find(group[i])

    families = [hidden] if joint else [({i} | parents[i]) & hidden for i in factors]
    for family in families:
        for i, j in itertools.combinations(sorted(family), 2):
            group[max(find(i), find(j))] = min(find(i), find(j))
    label = dict.fromkeys(range(d), -1) | {i: find(i) for i in hidden}
    for i in factors - hidden - free:
        (label[i],) = {find(j) for j in parents[i] & hidden}
    return hidden, free, [label[i] for i in range(d)]


def check(graph, observed, clamped=frozenset(), *, joint=False):
    plan = Plan.make(graph, observed, clamped=clamped, joint=joint)
    for n, row in enumerate(observed):
        hidden, free, label = brute_force(graph, row.tolist(), clamped, joint=joint)
        p = plan.pattern[n]
        assert set(plan.hidden[p].nonzero()[:, 0].tolist()) == hidden
        assert set(plan.free[p].nonzero()[:, 0].tolist()) == free
        assert plan.label[p].tolist() == label
        seen = {i for i in range(len(graph)) if row[i]} | clamped
        assert set(plan.observed[p].nonzero()[:, 0].tolist()) == seen
        barren = set(plan.barren()[n].nonzero()[:, 0].tolist())
        assert barren == set(range(len(graph))) - seen - hidden
    return plan


@pytest.mark.parametrize("joint", [False, True], ids=["components", "joint"])
@pytest.mark.parametrize("seed", range(8))
def test_every_pattern_agrees_with_brute_force(seed, joint):
    graph = random_graph(seed)
    plan = check(graph, all_patterns(len(graph)), joint=joint)
    assert len(plan.observed) == 2 ** len(graph)


@pytest.mark.parametrize("joint", [False, True], ids=["components", "joint"])
@pytest.mark.parametrize("seed", range(8))
def test_clamped_nodes_are_cut_from_their_parents(seed, joint):
    graph = random_graph(seed)
    clamped = frozenset(random.Random(seed).sample(range(len(graph)), 2))
    plan = check(graph, all_patterns(len(graph)), clamped, joint=joint)
    components = plan.components()
    for node in clamped:
        assert not plan.free[:, node].any()
        assert node not in components.cell_node
        assert node not in components.evidence_node


def test_a_clamp_on_a_collider_separates_its_causes():
    graph = CausalGraph.read("a -> c; b -> c; a -> p; b -> q")
    row = torch.tensor([[name in "cpq" for name in graph.nodes]])
    assert len(Plan.make(graph, row).components()) == 1
    assert len(Plan.make(graph, row, clamped=[graph.index("c")]).components()) == 2


def test_a_chain_with_every_second_node_hidden_falls_into_single_nodes():
    names = [f"x{i}" for i in range(64)]
    graph = CausalGraph.from_edges(itertools.pairwise(names))
    row = torch.tensor([[i % 2 == 1 for i in range(64)]])
    assert Plan.make(graph, row).components().size.tolist() == [1] * 32
    assert Plan.make(graph, row, joint=True).components().size.tolist() == [32]


def test_a_barren_common_child_links_nothing():
    graph = CausalGraph.read("a -> p; b -> q; a -> c; b -> c")
    row = torch.tensor([[name in "pq" for name in graph.nodes]])
    plan = Plan.make(graph, row)
    assert plan.components().size.tolist() == [1, 1]
    assert [graph.nodes[i] for i in plan.barren()[0].nonzero()[:, 0]] == ["c"]


def test_components_list_each_hidden_cell_and_each_piece_of_evidence_once():
    graph = random_graph(5)
    observed = all_patterns(len(graph))
    plan = Plan.make(graph, observed)
    c = plan.components()
    expected_cells, expected_evidence, expected_components = [], [], []
    for n, row in enumerate(observed.tolist()):
        hidden, _, label = brute_force(graph, row)
        expected_components += [(n, k) for k in sorted({label[i] for i in hidden})]
        expected_cells += [(i, n, (n, label[i])) for i in hidden]
        evidence = (i for i in range(len(graph)) if label[i] >= 0 and i not in hidden)
        expected_evidence += [(i, n, (n, label[i])) for i in evidence]
    name = {key: number for number, key in enumerate(expected_components)}
    assert c.row.tolist() == [n for n, _ in expected_components]

    def triples(node, row, component):
        return list(zip(node.tolist(), row.tolist(), component.tolist(), strict=True))

    cells = triples(c.cell_node, c.cell_row, c.cell_component)
    evidence = triples(c.evidence_node, c.evidence_row, c.evidence_component)
    assert cells == sorted((i, n, name[key]) for i, n, key in expected_cells)
    assert evidence == sorted((i, n, name[key]) for i, n, key in expected_evidence)
    sizes = [sum(k == number for _, _, k in cells) for number in range(len(c))]
    assert c.size.tolist() == sizes


def test_joint_plans_have_one_component_a_row_with_something_hidden():
    graph = random_graph(3)
    observed = all_patterns(len(graph))
    plan = Plan.make(graph, observed, joint=True)
    c = plan.components()
    hidden = plan.hidden[plan.pattern]
    assert c.row.tolist() == hidden.any(1).nonzero()[:, 0].tolist()
    assert c.size.tolist() == hidden.sum(1)[hidden.any(1)].tolist()


def test_rows_can_be_selected_in_any_order_and_repeatedly():
    graph = random_graph(2)
    observed = all_patterns(len(graph))
    rows = torch.randint(len(observed), (50,), generator=torch.Generator().manual_seed(1))
    some, anew = Plan.make(graph, observed).select(rows), Plan.make(graph, observed[rows])
    assert len(some) == 50
    for name in ("observed", "hidden", "free", "label"):
        assert torch.equal(getattr(some, name)[some.pattern], getattr(anew, name)[anew.pattern])
    ours, theirs = some.components(), anew.components()
    for name in vars(ours):
        assert torch.equal(getattr(ours, name), getattr(theirs, name))


def test_rows_of_one_pattern_share_it_and_the_input_is_kept():
    graph = random_graph(1)
    observed = all_patterns(len(graph))[::3].repeat(4, 1)
    before = observed.clone()
    plan = Plan.make(graph, observed, clamped=[0])
    assert torch.equal(observed, before)
    distinct = {
        tuple(row) for row in torch.cat([observed[:, :1] | True, observed[:, 1:]], 1).tolist()
    }
    assert len(plan.observed) == len(distinct)


def test_free_factors_are_sorted_by_node_and_complete():
    graph = random_graph(4)
    observed = all_patterns(len(graph))
    nodes, rows = Plan.make(graph, observed).free_factors()
    assert (nodes.diff() >= 0).all()
    expected = {
        (i, n) for n, row in enumerate(observed.tolist()) for i in brute_force(graph, row)[1]
    }
    found = list(zip(nodes.tolist(), rows.tolist(), strict=True))
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_selected_components_keep_their_cells_and_evidence():
    graph = random_graph(6)
    c = Plan.make(graph, all_patterns(len(graph))).components()
    keep = torch.rand(len(c), generator=torch.Generator().manual_seed(0)) < 0.4
    some = c.select(keep)
    kept = keep.nonzero()[:, 0]
    assert torch.equal(some.row, c.row[keep])
    assert torch.equal(some.size, c.size[keep])
    for kind in ("cell", "evidence"):
        inside = keep[getattr(c, f"{kind}_component")]
        assert 0 < inside.sum() < len(inside)
        for part in ("node", "row"):
            name = f"{kind}_{part}"
            assert torch.equal(getattr(some, name), getattr(c, name)[inside])
        number = getattr(some, f"{kind}_component")
        assert torch.equal(kept[number], getattr(c, f"{kind}_component")[inside])
    assert len(c.select(torch.zeros(len(c), dtype=torch.bool))) == 0


def test_slots_count_the_cells_of_a_component_in_graph_order():
    graph = random_graph(6)
    c = Plan.make(graph, all_patterns(len(graph))).components()
    slot = c.slots()
    for number in range(len(c)):
        mine = (c.cell_component == number).nonzero()[:, 0]
        assert slot[mine].tolist() == list(range(int(c.size[number])))
        assert (c.cell_node[mine].diff() > 0).all()


def test_touching_finds_components_by_the_factors_they_use():
    graph = CausalGraph.read("a -> p; b -> q")
    c = Plan.make(graph, torch.tensor([[name in "pq" for name in graph.nodes]])).components()
    for node, expected in {"a": [True, False], "p": [True, False], "q": [False, True]}.items():
        chosen = torch.tensor([name == node for name in graph.nodes])
        assert c.touching(chosen).tolist() == expected


def test_a_table_without_rows_has_an_empty_plan():
    plan = Plan.make(random_graph(0), torch.zeros(0, len(random_graph(0)), dtype=torch.bool))
    assert len(plan) == 0
    assert len(plan.components()) == 0


def test_a_wide_table_keeps_patterns_apart():
    # Patterns are compared as packed bits: columns beyond the eighth and the last one count too.
    names = [f"x{i}" for i in range(19)]
    graph = CausalGraph.from_edges([], names)
    observed = ~torch.eye(19, dtype=torch.bool)
    plan = Plan.make(graph, observed)
    assert torch.equal(plan.observed[plan.pattern], observed)
