"""Evaluations of runs: what is computed from rows and events alone, or not at all."""

from __future__ import annotations

from enum import StrEnum

from workbench_contract.base import Model


class MetricName(StrEnum):
    """What is measured, over the episodes that have ended.

    Attributes:
        SUCCESS_RATE: share of them that completed.
        TURNS_PER_EPISODE: model turns on record, the mean.
        TOKENS_PER_EPISODE: tokens in and out of all turns, the mean.
        TOOL_ERROR_RATE: share of the tool calls that came to nothing.
        GOAL_RATE: share of the simulated runs that hit their goal.
        FIRST_HANDOVER_RATE: share of those that submitted whose first submission was accepted.
        APPROVAL_RATE: share of the reviewers' decisions that approve.
        CATALOGUE_HIT_RATE: share of the searches that found a part.
        SECONDS_PER_EPISODE: from running to the end, the mean.
    """

    SUCCESS_RATE = "success_rate"
    TURNS_PER_EPISODE = "turns_per_episode"
    TOKENS_PER_EPISODE = "tokens_per_episode"
    TOOL_ERROR_RATE = "tool_error_rate"
    GOAL_RATE = "goal_rate"
    FIRST_HANDOVER_RATE = "first_handover_rate"
    APPROVAL_RATE = "approval_rate"
    CATALOGUE_HIT_RATE = "catalogue_hit_rate"
    SECONDS_PER_EPISODE = "seconds_per_episode"


class Metric(Model):
    """One metric.

    Attributes:
        value: none where it cannot be computed, and never 0 in its place.
        over: how many it is computed from: episodes, calls, runs, submissions, decisions, searches.
        missing: what would be needed and is not there; empty where there is a value.
    """

    name: MetricName
    value: float | None
    over: int
    missing: str


class Metrics(Model):
    """All metrics, each once.

    Attributes:
        batch_id: of the episodes that are looked at; none for all.
        episodes: how many have ended.
    """

    batch_id: str | None
    episodes: int
    metrics: list[Metric]


class Interval(Model):
    """With 95 % confidence."""

    low: float
    high: float


class Rate(Model):
    """A share of episodes.

    Attributes:
        value: none of none.
    """

    succeeded: int
    ended: int
    value: float | None


class Transfer(Model):
    """What a batch succeeds in more often than its baseline, over the seeds that both have.

    Attributes:
        seeds: these, in order.
        unpaired: seeds that one of the two has alone.
        uplift: the difference of the two rates; none where one of them is none.
        interval: of the difference, by Newcombe's method of Wilson scores.
        improves: whether all of the interval is above zero.
        missing: what would be needed and is not there; empty where there is an uplift.
    """

    batch_id: str
    baseline_id: str
    seeds: list[int]
    unpaired: list[int]
    rate: Rate
    baseline: Rate
    uplift: float | None
    interval: Interval | None
    improves: bool
    missing: str


class Effectiveness(Model):
    """What runs with one version of the skills succeed in more often than those with an earlier one.

    Runs that completed or failed count; one that was interrupted says nothing of its skills.

    Attributes:
        before, after: commits of the skills' repository.
        skill: of which runs alone: those that read this one; none for all.
        delta: share of ``after`` less that of ``before``; none where there is no run of one of them.
        interval: of the delta, by Newcombe's method of Wilson scores.
        improves: whether all of the interval is above zero.
        missing: what would be needed and is not there; empty where there is a delta.
    """

    before: str
    after: str
    skill: str | None
    before_rate: Rate
    after_rate: Rate
    delta: float | None
    interval: Interval | None
    improves: bool
    missing: str
