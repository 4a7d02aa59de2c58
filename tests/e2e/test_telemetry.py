"""Traces and metrics of a task, as a collector receives them over OTLP."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support import play
from tests.support.repo import Done, NewRepo, Repo


class Collector:
    """A collector on the loopback; it keeps what it is sent."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: set[str] = set()
        self.raw = b""

    def take(self, path: str, body: bytes) -> None:
        self.raw += body
        if path == "/v1/traces":
            sent = ExportTraceServiceRequest.FromString(body)
            self.spans += [
                span for each in sent.resource_spans for scope in each.scope_spans for span in scope.spans
            ]
        else:
            told = ExportMetricsServiceRequest.FromString(body)
            self.metrics |= {
                one.name
                for each in told.resource_metrics
                for scope in each.scope_metrics
                for one in scope.metrics
            }

    def named(self, begin: str) -> list[Any]:
        return [span for span in self.spans if span.name.startswith(begin)]


@contextmanager
def collecting() -> Iterator[tuple[Collector, str]]:
    found = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.take(self.path, self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield found, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def mend(repo: Repo, **env: str) -> Done:
    secret = play.turn(play.call("Bash", command="echo private words", description="d"), text="what I think")
    return repo.run(
        "task", play.WHOLE_CREW, "--model", repo.scripted(play.mending(secret, evidence="ev-0003")), env=env
    )


def attributes(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def test_a_trace_nests_as_the_task_does_and_holds_no_content(new_repo: NewRepo) -> None:
    with collecting() as (found, endpoint):
        done = mend(new_repo(play.QUICK), OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)
    assert done.code == 0, done.err
    spans = {span.span_id: span for span in found.spans}
    (whole,) = found.named("invoke_workflow agentflow")
    assert attributes(whole)["agentflow.status"] == "verified"
    assert len({span.trace_id for span in found.spans}) == 1
    for begin, around in (
        ("phase implementation", "invoke_workflow"),
        ("invoke_agent implementer", "phase implementation"),
        ("chat ", "invoke_agent"),
        ("execute_tool Edit", "invoke_agent implementer"),
        ("check tests", ("phase verification", "invoke_workflow")),
    ):
        inner = found.named(begin)[-1]
        outer = spans[inner.parent_span_id]
        assert outer.name.startswith(around), (begin, outer.name)
        assert inner.start_time_unix_nano <= inner.end_time_unix_nano
        assert outer.start_time_unix_nano <= inner.start_time_unix_nano
    told = attributes(found.named("chat")[0])
    assert told["gen_ai.operation.name"] == "chat"
    assert {"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.provider.name"} <= told.keys()
    assert {"gen_ai.client.operation.duration", "gen_ai.client.token.usage"} <= found.metrics
    assert b"what I think" not in found.raw
    assert b"private words" not in found.raw


def test_content_is_sent_where_it_is_asked_for_and_a_trace_around_the_task_is_joined(
    new_repo: NewRepo,
) -> None:
    around = "0af7651916cd43dd8448eb211c80319c"
    with collecting() as (found, endpoint):
        mend(
            new_repo(play.QUICK),
            OTEL_EXPORTER_OTLP_ENDPOINT=endpoint,
            OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true",
            TRACEPARENT=f"00-{around}-b7ad6b7169203331-01",
        )
    assert b"what I think" in found.raw
    assert {span.trace_id.hex() for span in found.spans} == {around}


def test_a_collector_that_is_away_changes_no_result_and_is_told_in_one_line(new_repo: NewRepo) -> None:
    done = mend(new_repo(play.QUICK), OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert done.code == 0
    assert done.err.count("telemetry was not sent") == 1
    assert "Traceback" not in done.err


def test_nothing_is_sent_unless_it_is_asked_for(new_repo: NewRepo) -> None:
    with collecting() as (found, endpoint):
        mend(new_repo(play.QUICK), OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, OTEL_SDK_DISABLED="true")
    assert found.raw == b""
