"""The tables about wire captures and a fuzzer's corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["answer_times", "corpus_shape", "faults", "frame_kinds", "frames"]

#: The part of an error before its sentence is the rule that was broken.
_RULE: Final = "substring_index(error, ':', 1)"


def frames(spark: SparkSession, paths: list[str], layout: str, skip_bytes: int = 0) -> DataFrame:
    """Read every frame of some files, and all invalid bytes."""
    return (
        spark.read.format("tmqp_capture")
        .option("layout", layout)
        .option("skipBytes", str(skip_bytes))
        .schema(
            "file string, flow string, dir string, frame_no int, at_us bigint, length bigint,"
            " type string, content_type int, message_id string, pending_response boolean,"
            " pending_ack boolean, target string, error string, error_offset bigint"
        )
        .load(paths)
    )


def frame_kinds(found: DataFrame) -> list[Any]:
    """Return rows of direction, type, frames and bytes, the most frequent first."""
    return (
        found.where("type is not null")
        .groupBy("dir", "type")
        .agg({"*": "count", "length": "sum"})
        .selectExpr("dir", "type", "`count(1)` as frames", "`sum(length)` as bytes")
        .orderBy("frames", "dir", "type", ascending=[False, True, True])
        .collect()
    )


def faults(found: DataFrame, most: int) -> list[Any]:
    """Return rows of rule, count, files and an example, the most frequent first."""
    return (
        found.where("error is not null")
        .selectExpr(f"{_RULE} as rule", "file", "flow", "error_offset", "error")
        .groupBy("rule")
        .agg({"*": "count"})
        .join(
            found.where("error is not null")
            .selectExpr(f"{_RULE} as rule", "file", "error")
            .groupBy("rule")
            .agg({"file": "min", "error": "min"}),
            "rule",
        )
        .selectExpr("rule", "`count(1)` as count", "`min(file)` as file", "`min(error)` as example")
        .orderBy("count", "rule", ascending=[False, True])
        .limit(most)
        .collect()
    )


def answer_times(found: DataFrame) -> list[Any]:
    """Return response times: rows of type, asked, answered, and p50, p95 and most in milliseconds.

    An answer is a Response or Acknowledge with the message's id, in the same flow of the same file,
    and in the other direction.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as everybody calls it; Spark

    asked = found.where(
        "(pending_response or pending_ack) and message_id <> '' and type not in ('RESPONSE',"
        " 'ACKNOWLEDGE')"
    ).alias("asked")
    answers = (
        found.where("type in ('RESPONSE', 'ACKNOWLEDGE') and message_id <> ''")
        .groupBy("file", "flow", "dir", "message_id")
        .agg(F.min("at_us").alias("answered_us"))
        .alias("answer")
    )
    together = asked.join(
        answers,
        F.expr(
            "asked.file = answer.file and asked.flow <=> answer.flow and asked.dir <>"
            " answer.dir and asked.message_id = answer.message_id"
        ),
        "left",
    ).selectExpr(
        "asked.type as type",
        "answer.message_id is not null as answered",
        "(answer.answered_us - asked.at_us) / 1000.0 as ms",
    )
    return (
        together.groupBy("type")
        .agg(
            F.count(F.lit(1)).alias("asked"),
            F.count_if("answered").alias("answered"),
            F.expr("percentile(ms, 0.5)").alias("p50"),
            F.expr("percentile(ms, 0.95)").alias("p95"),
            F.max("ms").alias("most"),
        )
        .orderBy("type")
        .collect()
    )


def corpus_shape(found: DataFrame) -> Any:
    """Return a row about a corpus: files, frames, bytes, inputs with a fault, and the longest
    frame."""
    return found.selectExpr(
        "count(distinct file) as files",
        "count(type) as frames",
        "coalesce(sum(length), 0) as bytes",
        "count(distinct case when error is not null then concat_ws('#', file, flow) end) as faulty",
        "coalesce(max(length), 0) as longest",
        "count(distinct type) as kinds",
    ).first()
