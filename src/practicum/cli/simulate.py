"""`practicum simulate`: the real scheduler on a plant that does not exist yet.

Owns: the command `simulate`.
Invariant: what is printed says which scheduler it is of, which term binds, and where the time of every worker went.
Must not know: how anything is simulated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from practicum.cli.failure import NEGATIVE
from practicum.cli.output import JsonOption, Progress, emit

if TYPE_CHECKING:
    from practicum.simulation.result import Comparison, Result

_SHARE = 0.001  # below this a share of time is not shown to people
_LINES = 12  # of each log, for people; --json has them all


def simulate(
    source: Annotated[
        str | None, typer.Argument(metavar="SCENARIO.toml|NAME", help="A file, or a shipped scenario; none lists them.")
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=VALUE", help="Override one key; may be repeated.")
    ] = None,
    scheduler: Annotated[str | None, typer.Option(metavar="NAME", help="synchronous, batches or continuous.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Run the real scheduler against simulated boxes, engines, judges and a trainer, on virtual time.

    The synchronous loop is run on the same work, to compare. Exits 1 where an attempt was not reported exactly once, or
    a fault was scored.
    """
    from practicum.simulation.shipped import load_scenario, scenarios

    if source is None:
        known = scenarios()
        width = max(map(len, known))
        emit(known, "\n".join(f"{name:<{width}}  {about}" for name, about in known.items()), as_json=as_json)
        return
    from practicum.simulation.result import simulate as run_simulation

    scenario = load_scenario(source, [*(overrides or []), *([f"scheduler={scheduler}"] if scheduler else [])])
    progress = Progress("simulating", 0)
    found = run_simulation(scenario, lambda name: progress.say(f"simulating the {name} scheduler", now=True))
    emit(found.document(), _text(source, found), as_json=as_json)
    if not all(each.reported_once and not each.scored_faults for each in found.ran):
        raise typer.Exit(NEGATIVE)


def _text(source: str, found: Comparison) -> str:
    result, bound = found.result, found.result.bound
    terms = sorted((rate, name) for name, rate in bound.to_json()["terms"].items())
    lines = [
        f"{source}: {result.scheduler}, {result.virtual_s:,.0f} s of virtual time; all took {found.wall_s:.0f} s",
        "",
        f"  bound        {bound.per_s:8.3f} episodes/s, by {bound.binding}",
        f"               {', '.join(f'{name} {rate:.3g}' for rate, name in terms)}",
        f"  achieved     {result.episodes_per_s:8.3f} episodes/s = {result.fraction:.1%} of the bound, "
        f"{found.speedup_vs_sync:.2f} × the synchronous loop",
        f"  staleness    {result.staleness_mean:8.2f} versions on average, {result.staleness_max} at most, "
        f"{found.scenario.max_staleness} allowed",
        f"  reports      {'each attempt exactly once' if result.reported_once else 'NOT each attempt exactly once'}, "
        f"{result.scored_faults} faults scored",
        f"  episodes     {_episodes(result)}",
    ]
    if result.faults:
        lines.append(f"  faults       {', '.join(f'{name} {count}' for name, count in result.faults.items())}")
    lines += ["", "where the time went"]
    lines += [f"  {name:<12} {_shares(shares)}" for name, shares in result.workers.items()]
    lines += ["", f"waits{'count':>19}{'p50 s':>10}{'p99 s':>10}"]
    lines += [
        f"  {name:<12}{waits['count']:>10}{waits['p50_s']:>10.2f}{waits['p99_s']:>10.2f}"
        for name, waits in result.waits.items()
    ]
    lines += ["", f"schedulers{'episodes/s':>18}{'of bound':>10}{'stalest':>9}"]
    lines += [
        f"  {each.scheduler:<14}{each.episodes_per_s:>12.3f}{each.fraction:>10.1%}{each.staleness_max:>9}"
        for each in found.ran
    ]
    for title, log in (("circuit breakers", result.breakers), ("concurrency", result.decisions)):
        if log:
            more = [f"  … and {len(log) - _LINES} more (--json has them all)"] if len(log) > _LINES else []
            lines += ["", title, *(f"  {line}" for line in log[:_LINES]), *more]
    return "\n".join(lines)


def _episodes(result: Result) -> str:
    each = result.episodes
    lost = f", {each['boxes_lost']} boxes lost" if each["boxes_lost"] else ""
    masked = f", {each['masked_groups']} groups masked" if each["masked_groups"] else ""
    return (
        f"{each['trained']} trained of {each['dispatched']} dispatched{lost}{masked}; a place is held for "
        f"{each['p50_s']:.0f} s (median), {each['p99_s']:.0f} s (p99)"
    )


def _shares(shares: Mapping[str, float]) -> str:
    """The larger first."""
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return ", ".join(f"{state.replace('_', ' ')} {share:.1%}" for state, share in ordered if share >= _SHARE)
