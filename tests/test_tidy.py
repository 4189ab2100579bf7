"""Check the habits of the tree: sizes, first words, banned words, riddles, what may be tracked.

A check is a function that takes a file (or the project's root) and returns complaints.  Every check
meets the whole tree, and a sample that breaks it, so that none can be blind.
"""

from __future__ import annotations

import ast
import codecs
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.outlines import File
from tests.phrases import DOCUMENT_PHRASES, PHRASES
from tests.project import ROOT, project_files, settings, source_packages

MAX_FUNCTION_LINES: Final = 70
MAX_MODULE_LINES: Final = 600
MAX_LINE_CHARACTERS: Final = 100
MAX_FILE_BYTES: Final = 1_048_576

#: Files that may be larger than :data:`MAX_FILE_BYTES`, each with its reason.
LARGE_FILES: Final[dict[str, str]] = {}

#: Where lines are bounded: what people write by hand, prose (with its tables) aside.
CODE_SUFFIXES: Final = frozenset({".cfg", ".ini", ".py", ".pyi", ".sh", ".toml", ".yaml", ".yml"})
CODE_NAMES: Final = frozenset({".gitignore", ".importlinter", "Makefile", "run"})
#: What is read as words.  Recorded data and the licence are not ours to word.
TEXT_SUFFIXES: Final = CODE_SUFFIXES | {".md", ".rst", ".svg", ".txt", ".html", ".js", ".css"}
BUILT_SUFFIXES: Final = frozenset({".a", ".dll", ".o", ".pyc", ".pyd", ".pyo", ".so", ".whl"})

#: What the product never says, by the name of the rule; in rot13, or this file would break it.
BANNED_WORDS: Final = {
    "a path of one machine": (
        "/jbex",
        "/ebbg",
        "/ubzr/",
        "/Hfref/",
        "clrai",
        "funerq/",
    ),
    "the host of a package index": (
        "clcv.bet",
        "clgubaubfgrq",
        "pengrf.vb",
        "aczwf",
        "znira.bet",
        "tbynat.bet",
        "qro.qrovna.bet",
    ),
    "a tool of the workshop": (
        "snez-orapu",
        "snez orapu",
        "vffhrf fubj",
        "gur oevrs",
    ),
    "who wrote it": (
        "pynhqr",
        "naguebcvp",
        "PRB",
        "fhontrag",
        "fho-ntrag",
        "YYZ",
    ),
    "a note instead of the work": (
        "GBQB",
        "SVKZR",
        "KKK",
    ),
}
#: Only these are told from the same letters in small type.
CASE_MATTERS: Final = "a note instead of the work"


def banned_pattern(rule: str, hidden: str) -> re.Pattern[str]:
    """What finds one banned word, standing by itself; a path must begin where it stands."""
    word = codecs.decode(hidden, "rot13")
    before = r"(?<![\w./~-])" if word.startswith("/") else r"(?<!\w)"
    after = r"" if word.endswith("/") else r"(?!\w)"
    flags = 0 if rule == CASE_MATTERS else re.IGNORECASE
    return re.compile(before + re.escape(word) + after, flags)


#: Of each: the rule, what finds it, and what it has in small letters, which is found sooner.
BANNED: Final = [
    (rule, banned_pattern(rule, hidden), codecs.decode(hidden, "rot13").lower())
    for rule, words in BANNED_WORDS.items()
    for hidden in words
]
#: Work is not told by the number of its ticket: nobody outside can look it up.
for _word in ("issue", "ticket"):
    BANNED.append(("a ticket number", re.compile(rf"\b{_word} #?\d", re.IGNORECASE), _word))


#: These files have all of them.
_THESE: Final = frozenset({"tests/phrases.py", "tests/test_tidy.py"})


#: Words of our own that code used once, each with the field's.
PRIVATE_WORDS: Final = {
    "bundle": "run",
    "enlist": "add",
    "husk": "tombstone",
    "parcel": "message set",
    "rouse": "wake",
    "strike": "remove",
    "tellings": "subscriptions",
    "twin": "duplicate",
}
_LOWER: Final = "|".join(PRIVATE_WORDS)
_CAPITALISED: Final = "|".join(word.capitalize() for word in PRIVATE_WORDS)
#: Also as a part of a name: ``_twins``, ``MARK_TWIN``, ``TwinTable``.
PRIVATE_PATTERN: Final = re.compile(
    f"(?:(?<![A-Za-z])(?:{_LOWER})|{_CAPITALISED}|{_LOWER.upper()})(?![a-rt-z])"
)


def phrase_pattern(phrase: str) -> re.Pattern[str]:
    """What finds a phrase, also across lines.

    Its first word may be capitalised, and no other: an Acknowledge is a type of message.
    """
    first, *others = (re.escape(word) for word in phrase.split())
    either = f"[{first[0].upper()}{first[0].lower()}]{first[1:]}" if first[0].isalpha() else first
    return re.compile(r"(?<![\w-])" + r"\s+".join([either, *others]) + r"(?!\w)")


def is_code(file: File) -> bool:
    """Whether a file's lines are bounded."""
    return file.suffix in CODE_SUFFIXES or file.path.name in CODE_NAMES


def is_text(file: File) -> bool:
    """Whether a file's words are ours."""
    return file.suffix in TEXT_SUFFIXES or file.path.name in CODE_NAMES


def is_document(file: File) -> bool:
    """Whether a file is read by users: a page, or an example."""
    return file.suffix == ".md" or file.folders[:1] == ("examples",)


def is_python(file: File) -> bool:
    """Whether a file is a Python module."""
    return file.suffix == ".py"


# --- Checks of one file --------------------------------------------------------------------------


def long_functions(file: File) -> Iterator[str]:
    """Functions of more than :data:`MAX_FUNCTION_LINES`, from ``def`` to the last line."""
    if not is_python(file):
        return
    for each in file.outline.definitions:
        lines = each.last_line - each.line + 1
        if each.kind is not ast.ClassDef and lines > MAX_FUNCTION_LINES:
            yield f"line {each.line}: {each.name} has {lines} lines"


def long_modules(file: File) -> Iterator[str]:
    """Modules of more than :data:`MAX_MODULE_LINES`."""
    if is_python(file):
        lines = len(file.text().splitlines())
        if lines > MAX_MODULE_LINES:
            yield f"{lines} lines"


def long_lines(file: File) -> Iterator[str]:
    """Lines of code of more than :data:`MAX_LINE_CHARACTERS`."""
    if not is_code(file):
        return
    for number, line in enumerate(file.text().split("\n"), 1):
        if len(line) > MAX_LINE_CHARACTERS:
            yield f"line {number} has {len(line)} characters"


def missing_first_words(file: File) -> Iterator[str]:
    """Python files that do not begin by saying what they are or do."""
    if is_python(file) and not file.outline.definitions[0].docstring.strip():
        yield "no docstring"


def formulas(file: File) -> Iterator[str]:
    """Docstrings that begin with a formula: say what the thing is or does."""
    if not is_python(file):
        return
    for each in file.outline.definitions:
        if each.docstring.split(maxsplit=1)[:1] == ["Owns"]:
            yield f"{each.name}: a docstring begins with 'Owns'"


def missing_public_list(file: File) -> Iterator[str]:
    """Library modules without a literal ``__all__``."""
    if is_python(file) and file.folders[:1] == ("src",) and file.outline.public is None:
        yield "no __all__ that is a plain list of names"


def banned_words(file: File) -> Iterator[str]:
    """Words that the product never says."""
    if not is_text(file):
        return
    text = file.text()
    small = text.lower()
    suspects = [(rule, pattern) for rule, pattern, part in BANNED if part in small]
    for number, line in enumerate(text.split("\n") if suspects else (), 1):
        for rule, pattern in suspects:
            found = pattern.search(line)
            if found is not None:
                yield f"line {number}: {found.group()!r} is {rule}"


def riddles(file: File) -> Iterator[str]:
    """Phrases for which there is a plain one; what a command printed is left as it is."""
    if not is_text(file) or file.name in _THESE:
        return
    text = re.sub(
        r"^( *)```text\n.*?^\1```$",
        lambda block: "\n" * block.group().count("\n"),
        file.text(),
        flags=re.MULTILINE | re.DOTALL,
    )
    phrases = {**PHRASES, **DOCUMENT_PHRASES} if is_document(file) else PHRASES
    one_line = " ".join(text.split())
    for phrase, better in phrases.items():
        if phrase[1:] not in one_line:
            continue  # quicker than its pattern, and nearly always so
        for found in phrase_pattern(phrase).finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield f"line {line}: {phrase!r}: write {better!r}, or the like"


def private_words(file: File) -> Iterator[str]:
    """Words of our own in names and comments, where the field has one."""
    if not is_python(file) or file.name in _THESE:
        return
    for found in PRIVATE_PATTERN.finditer(file.text()):
        line = file.text().count("\n", 0, found.start()) + 1
        word = found.group().lower()
        yield f"line {line}: {word!r}: write {PRIVATE_WORDS[word]!r}, or the like"


def untidy_ends(file: File) -> Iterator[str]:
    """White space at the end of a line, carriage returns, a last line without its end."""
    if not is_text(file):
        return
    text = file.text()
    if text and not text.endswith("\n"):
        yield "the last line has no end"
    for number, line in enumerate(text.split("\n"), 1):
        if line != line.rstrip():
            yield f"line {number} ends in white space"


def large_files(file: File) -> Iterator[str]:
    """Files of more than :data:`MAX_FILE_BYTES` that are not on the list."""
    size = file.path.stat().st_size
    if size > MAX_FILE_BYTES and file.name not in LARGE_FILES:
        yield f"{size} bytes"


def built_files(file: File) -> Iterator[str]:
    """Products of a build: they are made, not kept."""
    if file.suffix in BUILT_SUFFIXES:
        yield "a build product"


def packages_of_tests(file: File) -> Iterator[str]:
    """Tests are not packages: ``tests/tmqp/__init__.py`` would stand for the real ``tmqp``."""
    if file.path.name == "__init__.py" and file.folders[:1] == ("tests",):
        yield "folders of tests have no __init__.py"


Check = Callable[[File], Iterator[str]]

FILE_CHECKS: Final[tuple[Check, ...]] = (
    long_functions,
    long_modules,
    long_lines,
    missing_first_words,
    formulas,
    missing_public_list,
    banned_words,
    riddles,
    private_words,
    untidy_ends,
    large_files,
    built_files,
    packages_of_tests,
)

_FUNCTION: Final = '"""A sample."""\n\n__all__ = []\n\n\ndef sample():\n' + "    pass\n" * 69
_MODULE: Final = '"""A sample."""\n\n__all__ = []\n' + "x = 1\n" * 597
_LINE: Final = '"""A sample."""\n\n__all__ = []\n#' + "x" * 99 + "\n"

#: For each check: a file's name, a text that just passes and one that does not.
SAMPLES: Final[dict[str, tuple[str, str, str]]] = {
    "long_functions": ("src/a.py", _FUNCTION, _FUNCTION + "    pass\n"),
    "long_modules": ("src/a.py", _MODULE, _MODULE + "x = 1\n"),
    "long_lines": ("Makefile", _LINE, _LINE.replace("#", "##")),
    "missing_first_words": ("tests/a.py", '"""Is."""\n', "import this\n"),
    "formulas": ("src/a.py", '"""An owner."""\n', '"""Owns all."""\n'),
    "missing_public_list": ("src/a.py", '"""Is."""\n\n__all__ = []\n', '"""Is."""\n'),
    "banned_words": ("a.md", "as usual\n", f"ticket {7}\n"),
    "riddles": ("a.md", "is in two\nplaces\n", "stands\ntwice\n"),
    "private_words": ("src/a.py", '"""Twinkles."""\n', "_twins = 1\n"),
    "untidy_ends": ("a.toml", "a = 1\n", "a = 1 \n"),
    "large_files": ("a.json", "x" * MAX_FILE_BYTES, "x" * (MAX_FILE_BYTES + 1)),
    "built_files": ("a.py", '"""Is."""\n', ""),
    "packages_of_tests": ("tests/a.py", '"""Is."""\n', '"""Is."""\n'),
}
README: Final = "README.md"
#: Where the bad sample of a check has another name.
BAD_NAMES: Final = {"built_files": "a.so", "packages_of_tests": "tests/a/__init__.py"}


@cache
def files_of_the_project() -> list[File]:
    """Every file, read once for all checks; but those of others, which are kept as they were
    published (a README beside them says what they are)."""
    own = [path for path in project_files() if path.parent.name != "vendor" or path.name == README]
    return [File(path, path.relative_to(ROOT).as_posix()) for path in own]


@pytest.mark.parametrize("check", FILE_CHECKS, ids=lambda check: check.__name__)
def test_the_tree(check: Check) -> None:
    files = files_of_the_project()
    assert "pyproject.toml" in {file.name for file in files}
    complaints = [f"{file.name}: {complaint}" for file in files for complaint in check(file)]
    assert not complaints, "\n" + "\n".join(complaints)


@pytest.mark.parametrize("check", FILE_CHECKS, ids=lambda check: check.__name__)
def test_each_check_can_fail(check: Check, tmp_path: Path) -> None:
    name, good, bad = SAMPLES[check.__name__]
    assert not list(check(write(tmp_path, name, good)))
    assert list(check(write(tmp_path, BAD_NAMES.get(check.__name__, name), bad)))


def write(folder: Path, name: str, text: str) -> File:
    """A new file of a project that has its root at ``folder``."""
    file = File(folder / name, name)
    file.path.parent.mkdir(parents=True, exist_ok=True)
    file.path.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("rule", "hidden"),
    [(rule, hidden) for rule, words in BANNED_WORDS.items() for hidden in words],
)
def test_each_banned_word_is_found(rule: str, hidden: str, tmp_path: Path) -> None:
    word = codecs.decode(hidden, "rot13")
    found = list(banned_words(write(tmp_path, "a.md", f"see {word}\n")))
    assert [complaint.endswith(rule) for complaint in found] == [True]
    found = list(banned_words(write(tmp_path, "a.py", f"# `{word}`, once more\n")))
    assert [complaint.endswith(rule) for complaint in found] == [True]
    assert not list(banned_words(write(tmp_path, "b.md", f"more{word}\n")))


def test_a_ticket_number_is_found(tmp_path: Path) -> None:
    for text in (f"as issue {7} says", f"see Issue #{7}"):
        assert list(banned_words(write(tmp_path, "a.md", text + "\n"))) != []
    assert list(banned_words(write(tmp_path, "a.md", "an issue of 3 pages\n"))) == []


def test_a_riddle_is_found_where_it_must_not_be(tmp_path: Path) -> None:
    assert list(riddles(write(tmp_path, "a.md", "Under\nway\n"))) == [
        "line 1: 'under way': write 'in flight, or in progress', or the like"
    ]
    assert list(riddles(write(tmp_path, "examples/a.py", "# is told so\n"))) != []
    assert list(riddles(write(tmp_path, "src/a.py", "# under way\n"))) == []
    assert list(riddles(write(tmp_path, "src/a.py", "# Started anew\n"))) != []
    assert list(riddles(write(tmp_path, "a.md", "answers by an Acknowledge\n"))) == []
    assert list(riddles(write(tmp_path, "a.md", "```text\nunder way\n```\n"))) == []
    assert list(riddles(write(tmp_path, "a.md", "the tmqp_server.application\n"))) == []


# --- Checks of the project as a whole ------------------------------------------------------------


def makefile_targets(text: str) -> list[str]:
    """The targets that ``make help`` shows, in its order."""
    return re.findall(r"^([a-z][a-z-]*):[^#\n]*## .+$", text, re.MULTILINE)


def readme_commands(text: str) -> list[str]:
    """The commands of the first block of code in a README, comments aside."""
    block = re.search(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = block.group(1).splitlines() if block is not None else []
    return [line.split("#")[0].strip() for line in lines]


def packages_without_types(root: Path) -> list[str]:
    """Packages of ``src/`` that do not say to type checkers that they are typed."""
    packages = [path.parent for path in root.glob("src/*/__init__.py")]
    return sorted(path.name for path in packages if not (path / "py.typed").is_file())


def packages_not_shipped(names: list[str], patterns: list[str]) -> list[str]:
    """Top-level packages that the distribution's include list does not name."""
    return sorted(name for name in names if not {name, f"{name}.*"} <= set(patterns))


def classes_of_one_name(files: list[File]) -> list[str]:
    """Classes of a package that share their name with another of it.

    The blocking face of the client has the names of the async one: programs choose by import.  Each
    wire format is used alone, and has its own protocol's words.
    """
    places: dict[tuple[str, str], list[str]] = {}
    for file in files:
        if not is_python(file) or file.folders[:1] != ("src",):
            continue
        if file.folders[1:3] == ("tmqp_client", "sync"):
            continue
        rooms = (*file.folders[1:], file.path.stem)
        package = ".".join(rooms[:2]) if rooms[0] == "tmqp_wires" else rooms[0]
        for each in file.outline.definitions:
            if each.kind is ast.ClassDef:
                places.setdefault((package, each.name), []).append(file.name)
    return sorted(f"{name}: {', '.join(found)}" for (_, name), found in places.items() if found[1:])


def test_a_class_has_a_name_of_its_own_in_its_package(tmp_path: Path) -> None:
    assert classes_of_one_name(files_of_the_project()) == []
    two = [write(tmp_path, f"src/p/{name}.py", "class Link: ...\n") for name in "ab"]
    assert classes_of_one_name(two) == ["Link: src/p/a.py, src/p/b.py"]


def test_demo_and_test_come_first() -> None:
    targets = makefile_targets((ROOT / "Makefile").read_text(encoding="utf-8"))
    assert targets[:2] == ["demo", "test"]
    assert len(targets) == len(set(targets))
    commands = readme_commands((ROOT / "README.md").read_text(encoding="utf-8"))
    assert commands[:2] == ["make demo", "make test"]


def test_every_phony_target_is_explained() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY:((?:.*\\\n)*.*)", text, re.MULTILINE)
    assert phony is not None
    names = phony.group(1).replace("\\", " ").split()
    assert sorted(names) == sorted([*makefile_targets(text), "help"])


def test_every_package_is_typed_and_shipped() -> None:
    assert packages_without_types(ROOT) == []
    patterns = settings()["tool"]["setuptools"]["packages"]["find"]["include"]
    shipped = [name for name in source_packages() if (ROOT / "src" / name).is_dir()]
    assert "tmqp" in shipped
    assert packages_not_shipped(shipped, patterns) == []


def test_the_checks_of_the_project_can_fail(tmp_path: Path) -> None:
    assert makefile_targets("a: b ## first\nc:\nd: ## second\n") == ["a", "d"]
    assert readme_commands("# x\n```sh\nmake a  # b\nc\n```\n") == ["make a", "c"]
    package = tmp_path / "src" / "sample"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    assert packages_without_types(tmp_path) == ["sample"]
    (package / "py.typed").touch()
    assert packages_without_types(tmp_path) == []
    assert packages_not_shipped(["sample"], ["sample"]) == ["sample"]
