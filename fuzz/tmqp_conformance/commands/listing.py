"""``list`` and ``explain``: show the cases of the suite."""

from __future__ import annotations

import json

import click

from tmqp.testing.conformance import Case
from tmqp_conformance.commands.packs import pack_option
from tmqp_conformance.packs import PACKS
from tmqp_conformance.register import NATIVE, former, register, retirement
from tmqp_conformance.rules import WITHOUT_CASE, coverage, rules
from tmqp_conformance.suite import ALL_CASES, SUITE_VERSION, chosen, find, pack_of

__all__ = ["explain", "list_cases"]


@click.command("list")
@click.option("--role", type=click.Choice(["server", "client"]), help="Only cases for this role.")
@click.option("--group", help="Only cases of this group.")
@click.option("--level", type=click.Choice(["must", "should", "all"]), default="all")
@click.option("--only", multiple=True, metavar="PATTERN", help="Only these ids (globs).")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "md"]),
    default="table",
    show_default=True,
)
@click.option("--rules", "by_rule", is_flag=True, help="List the rules, with the cases of each.")
@pack_option
def list_cases(
    role: str | None,
    group: str | None,
    level: str,
    only: tuple[str, ...],
    form: str,
    by_rule: bool,
    pack: str | None,
) -> None:
    """List the cases of the suite or of a pack, or the rules that they cover."""
    every = ALL_CASES if pack is None else PACKS[pack].cases
    cases = [
        case
        for case in chosen(every, only, level=level)
        if role in (None, case.role) and group in (None, case.group)
    ]
    if by_rule:
        _list_rules(cases, form, pack or "")
        return
    if form == "json":
        click.echo(json.dumps([_as_json(case) for case in cases], indent=1, ensure_ascii=False))
        return
    for case in cases:
        if form == "md":
            title = case.title.replace("|", "\\|")
            click.echo(f"| `{case.id}` | {case.level} | {title} | {' '.join(case.requires)} |")
        else:
            click.echo(f"{case.id:<52} {case.level:<8} {case.title}")
    if form == "table":
        found = coverage(cases, pack or "")
        excused = 0 if pack else len(WITHOUT_CASE)
        click.echo(
            f"\n{len(cases)} cases of suite {SUITE_VERSION}; {len(found.covered)} of"
            f" {found.known} rules have cases, {excused} need none,"
            f" {len(found.uncovered)} are missing"
        )
        if pack and PACKS[pack].setting:
            click.echo(PACKS[pack].setting)


def _list_rules(cases: list[Case], form: str, pack: str) -> None:
    found = coverage(cases, pack)
    known = rules(pack)
    if form == "json":
        table = {name: found.covered.get(name, []) for name in known}
        click.echo(json.dumps(table, indent=1))
        return
    for name, rule in known.items():
        ids = found.covered.get(name, [])
        reason = WITHOUT_CASE.get(name, "NO CASE")
        what = f"{len(ids)} cases" if ids else reason
        if form == "md":
            click.echo(f"| {name} | {rule.section} | {what} |")
        else:
            click.echo(f"{name:<28} {rule.section:<36} {what}")


def _as_json(case: Case) -> dict[str, object]:
    return {
        "id": case.id,
        "title": case.title,
        "why": case.why,
        "level": str(case.level),
        "requires": list(case.requires),
        "needs": list(case.needs),
        "task": case.task,
        "steps": [step.describe() for step in case.steps],
    }


@click.command()
@click.argument("case_id", metavar="CASE")
def explain(case_id: str) -> None:
    """Explain a case: why, the rules in full, each step, and what is acceptable."""
    case = find(case_id)
    if case is None:
        every = [*ALL_CASES, *(each for pack in PACKS.values() for each in pack.cases)]
        why = retirement(case_id)
        if why:
            raise click.BadParameter(why, param_hint="CASE")
        near = [each.id for each in every if case_id in each.id][:5]
        hint = f"; near: {', '.join(near)}" if near else ""
        raise click.BadParameter(f"no case has the id {case_id!r}{hint}", param_hint="CASE")
    pack = pack_of(case.id)
    since = register().since.get(NATIVE if pack is None else pack.name, {}).get(case.id, "")
    click.echo(f"{case.id}  ({case.level}{f', since suite {since}' if since else ''})")
    if former(case.id):
        click.echo(f"Called before: {', '.join(former(case.id))}")
    click.echo(f"\n{case.title}.\n{case.why}")
    if case.needs:
        click.echo(f"\nNeeds: {', '.join(case.needs)}")
    if case.task:
        click.echo(f"\nThe client's task: {case.task}")
    click.echo("\nSteps")
    for number, step in enumerate(case.steps, 1):
        click.echo(f"  {number:>3}. {step.describe()}")
    click.echo("\nRules")
    known = rules("" if pack is None else pack.name)
    for name in case.requires:
        rule = known.get(name)
        if rule is not None:
            click.echo(f"  {name} ({rule.place}): {rule.text}\n")
    if pack is not None and pack.setting:
        click.echo(f"Before: {pack.setting}")
