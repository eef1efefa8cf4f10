"""The example of docs/names.md says what the page shows, and draws its figure."""

import plot_names


def test_the_example_tells_names_and_draws_every_label(tmp_path, capsys):
    plot_names.main(tmp_path)
    told = capsys.readouterr().out
    assert "labels of the first gene: ['Class" in told
    assert "Class14       0.00      0.00      0.00        10" in told
    assert (tmp_path / "labels-by-name.png").read_bytes().startswith(b"\x89PNG")
