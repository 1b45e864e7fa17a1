"""What the benchmarks read and write, where nothing but Python is needed: run by test/python.sh."""

import pytest
from corpora import dependencies, number_words, read_lattices, read_tagged, repeated
from readme import best_of, compact, peers_page, readme_section, summary
from tables import replace_section


def leaf(word):
    return {"Leaf": [word]}


def node(left, right):
    return {"Node": [left, right]}


def test_lattices_have_the_word_of_the_first_edge_and_all_nodes_before():
    text = "2\n3\n0 1 2\n0 \n1 0 62\n2 1 480 0 3395\n\n1\n5\n0 \n"
    assert read_lattices(text) == [[(0, []), (62, [0]), (480, [1, 0])], [(0, [])]]


@pytest.mark.parametrize("wrong", ["1\n2\n0 0\n0 \n1 1 5\n", "1\n2\n0 0\n0 \n", "1\n2\n0 0\n0 \n2 0 5\n"])
def test_a_lattice_that_is_none_is_refused(wrong):
    with pytest.raises(ValueError, match="lattice 0"):
        read_lattices(wrong)


def test_words_are_numbered_by_how_often_they_occur():
    sentences = read_tagged("The|O band|I-ORG the|O\n\na|b|O band|O\n")
    assert sentences == [["the", "band", "the"], ["a|b", "band"]]
    assert number_words(sentences, 3) == [[2, 1, 2], [0, 1]]
    assert number_words(sentences, 10) == [[2, 1, 2], [3, 1]]


def test_a_parse_tree_has_a_head_for_each_part():
    # The longer part's head; of two equal ones the right one.
    assert dependencies(leaf(4)) == {"Tree": [4, []]}
    assert dependencies(node(leaf(1), leaf(2))) == {"Tree": [2, [{"Tree": [1, []]}]]}
    tree = node(node(leaf(1), leaf(2)), leaf(3))
    assert dependencies(tree) == {"Tree": [2, [{"Tree": [1, []]}, {"Tree": [3, []]}]]}


def test_fewer_items_are_repeated():
    assert repeated([1, 2, 3], 7) == [1, 2, 3, 1, 2, 3, 1]


def test_a_section_is_replaced_and_must_be_there():
    page = "a\n<!-- x -->\nold\n<!-- end of x -->\nb\n"
    assert replace_section(page, "x", "new\n") == "a\n<!-- x -->\nnew\n<!-- end of x -->\nb\n"
    for wrong in ("a\n", page + page, "<!-- end of x -->\n<!-- x -->\n"):
        with pytest.raises(ValueError, match="section x"):
            replace_section(wrong, "x", "new\n")


def case(model, rows, **others):
    """A case as peers.py leaves it, of rows as (batch, Cohort's rate, rates of peers)."""
    rows = [{"batch": b, "cohort": c, "peers": peers, "single": ["single"]} for b, c, peers in rows]
    for row in rows:
        row["best"], row["best rate"] = best_of(rows, row)
        row["ratio"] = row["best"] and row["cohort"] / row["best rate"]
    found = {"model": model, "size": 256, "inputs": "random", "rows": rows, "failed": {}, "memory": None}
    found |= {"instances": 8, "turns": 3, "repetitions": 1}
    return {**found, "processor": "a processor", "versions": {"torch": "2.12", "jax": None}, **others}


def test_a_peer_of_one_instance_counts_at_every_batch():
    slow, fast = (1, 8.0, {"single": 4.0, "level": 1.0}), (8, 8.0, {"level": 2.0})
    rows = case("act", [slow, fast])["rows"]
    assert [(row["best"], row["ratio"]) for row in rows] == [("single", 2.0), ("single", 2.0)]
    # One that takes batches counts at its own.
    rows = case("act", [(1, 8.0, {"level": 16.0}), (8, 8.0, {"level": 2.0})])["rows"]
    assert [row["ratio"] for row in rows] == [0.5, 4.0]


def test_the_summary_has_the_mean_the_least_and_what_is_lost():
    cases = [case("act", [(1, 8.0, {"level": 16.0}), (8, 8.0, {"level": 1.0})])]
    text = summary(cases)
    assert "over 2 rows" in text and "2.00x the best peer" in text
    assert "We lose in 1: `act` at 256, batch 1: 0.50x" in text
    assert "**0.50x**" in compact(cases)
    assert "No row is below 1x" in summary([case("act", [(1, 8.0, {"level": 8.0})])])


def test_what_is_written_says_where_and_how_it_was_measured():
    text = readme_section([case("act", [(1, 8.0, {"level": 4.0})])])
    assert "a processor, one thread, against PyTorch 2.12: 3 turns of at least 1 passes over 8 instances" in text
    assert "| act   |  2.00x |" in text


def test_a_peer_that_failed_is_shown_and_not_compared():
    failed = case("act", [(1, 8.0, {})], failed={"level": "its output 3 differs by 2"})
    assert failed["rows"][0]["ratio"] is None
    page = peers_page({"cases": [failed], "refused": {"drnn at 256": "too deep"}})
    assert "`act` at 256: the peer *level* is not timed: its output 3 differs by 2" in page
    assert "`drnn at 256` does not run: too deep" in page
    assert summary([failed]) == "Nothing was compared.\n"
