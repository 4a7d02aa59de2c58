"""Traces and metrics of a task for OpenTelemetry, by the conventions for generative AI; the door to its SDK.

The names are those of github.com/open-telemetry/semantic-conventions-genai as of November 2026.
"""

import logging
from collections.abc import Mapping
from datetime import datetime
from itertools import chain

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from agentflow.core import events
from agentflow.core.messages import Usage
from agentflow.core.routing import ROLE_OF
from agentflow.core.task import Phase
from agentflow.redact import to_one_line
from agentflow.settings import PROVIDERS

_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_SEND_SECONDS = 3
"""Until a collector that does not answer is given up."""
_OWN_MODELS = ("repair", "script:", "replay:")
_Value = str | int
_Key = tuple[str, object]


class TaskTrace:
    """The spans of one task in this process: task, phase, agent, model call, tool call, check."""

    def __init__(self, task_id: str, environ: Mapping[str, str]) -> None:
        self._complaint = _Complaint()
        noisy = logging.getLogger("opentelemetry")
        noisy.addHandler(self._complaint)
        noisy.propagate = False
        resource = Resource.create({"service.name": environ.get("OTEL_SERVICE_NAME", "agentflow")})
        self._spans = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=_SEND_SECONDS)))
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(timeout=_SEND_SECONDS))
        self._metrics = MeterProvider(resource=resource, metric_readers=[reader], shutdown_on_exit=False)
        self._tracer = self._spans.get_tracer("agentflow")
        meter = self._metrics.get_meter("agentflow")
        self._seconds = meter.create_histogram("gen_ai.client.operation.duration", unit="s")
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", unit="{token}")
        self._tells_content = environ.get(_CONTENT, "").lower() == "true"
        self._open: dict[_Key, Span] = {}
        self._models: dict[int, str] = {}
        around = TraceContextTextMapPropagator().extract({"traceparent": environ.get("TRACEPARENT", "")})
        self._task = self._tracer.start_span(
            "invoke_workflow agentflow",
            context=around,
            attributes=_name_operation("invoke_workflow", {"gen_ai.conversation.id": task_id}),
        )

    def tell(self, stamped: events.StoredEvent) -> None:
        at = int(datetime.fromisoformat(stamped.at).timestamp() * 1_000) * 1_000_000  # nanoseconds
        match stamped.event:
            case events.PhaseStarted(phase=phase, iteration=iteration):
                told: dict[str, _Value] = {"agentflow.iteration": iteration}
                self._begin(("phase", phase), f"phase {phase}", self._task, at, told)
            case events.PhaseEnded(phase=phase, status=status):
                error = "failed" if status == "failed" else ""
                self._end(("phase", phase), at, {"agentflow.status": status}, error)
            case events.TaskEnded(status=ended, exit_code=code):
                self._task.set_attributes({"agentflow.status": ended, "agentflow.exit_code": code})
                _mark(self._task, ended if code else "")
            case events.RunStarted() | events.RunEnded() as event:
                self._tell_run(event, stamped.parent, at)
            case events.Asked() | events.Replied() as event:
                self._tell_request(event, at)
            case events.ToolStarted() | events.ToolFinished() | events.ToolBlocked() as event:
                self._tell_call(event, at)
            case events.CheckStarted() | events.EvidenceRecorded() as event:
                self._tell_check(event, at)
            case _:
                pass

    def _tell_run(self, event: events.RunStarted | events.RunEnded, parent: int | None, at: int) -> None:
        if isinstance(event, events.RunEnded):
            told = {"agentflow.outcome": event.outcome, **_count_tokens(event.usage)}
            self._end(("run", event.run), at, told, "" if event.outcome == "submitted" else event.outcome)
            return
        self._models[event.run] = event.model
        phase = next((phase for phase, role in ROLE_OF.items() if role == event.role), None)
        around = self._open.get(("run", parent)) or self._open.get(("phase", phase)) or self._task
        told = {"gen_ai.agent.name": event.agent, "gen_ai.request.model": event.model}
        name = f"invoke_agent {event.agent}"
        self._begin(("run", event.run), name, around, at, _name_operation("invoke_agent", told))

    def _tell_request(self, event: events.Asked | events.Replied, at: int) -> None:
        model = self._models.get(event.run, "")
        known = next((name for name in PROVIDERS if model.startswith(f"{name}/")), "anthropic")
        provider = "agentflow" if model.startswith(_OWN_MODELS) else known
        told = {"gen_ai.provider.name": provider, "gen_ai.request.model": model}
        key = ("chat", event.run)
        if isinstance(event, events.Asked):
            around = self._open.get(("run", event.run), self._task)
            self._begin(key, f"chat {model}", around, at, _name_operation("chat", told))
            return
        self._seconds.record(event.seconds, _name_operation("chat", told))
        sent = _count_tokens(event.usage)
        for kind in ("input", "output"):
            attributes = _name_operation("chat", {**told, "gen_ai.token.type": kind})
            self._tokens.record(int(sent[f"gen_ai.usage.{kind}_tokens"]), attributes)
        said = {"gen_ai.output.messages": event.text} if self._tells_content and event.text else {}
        self._end(key, at, {**sent, **said, "gen_ai.response.finish_reasons": event.stop})

    def _tell_call(
        self, event: events.ToolStarted | events.ToolFinished | events.ToolBlocked, at: int
    ) -> None:
        key = ("tool", event.call_id)
        if not isinstance(event, events.ToolFinished):
            told = {
                "gen_ai.tool.name": event.tool,
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.id": event.call_id,
            }
            if self._tells_content and isinstance(event, events.ToolStarted):
                told["gen_ai.tool.call.arguments"] = event.subject
            around = self._open.get(("run", event.run), self._task)
            self._begin(key, f"execute_tool {event.tool}", around, at, _name_operation("execute_tool", told))
        if isinstance(event, events.ToolBlocked):
            self._end(key, at, {}, "blocked")
        elif isinstance(event, events.ToolFinished):
            said = {"gen_ai.tool.call.result": event.summary} if self._tells_content else {}
            self._end(key, at, said, "tool_error" if event.is_error else "")

    def _tell_check(self, event: events.CheckStarted | events.EvidenceRecorded, at: int) -> None:
        key = ("check", (event.check, event.command, event.code))
        if isinstance(event, events.CheckStarted):
            told = {"agentflow.check.name": event.check, "agentflow.check.code": event.code}
            around = self._open.get(("phase", Phase.VERIFICATION), self._task)
            self._begin(key, f"check {event.check}", around, at, told)
        else:
            code = -1 if event.exit_code is None else event.exit_code
            self._end(key, at, {"agentflow.check.exit_code": code}, "failed" if event.exit_code else "")

    def _begin(self, key: _Key, name: str, around: Span, at: int, told: Mapping[str, _Value]) -> None:
        kind = SpanKind.CLIENT if key[0] == "chat" else SpanKind.INTERNAL
        context = set_span_in_context(around)
        self._open[key] = self._tracer.start_span(name, context, kind, dict(told), start_time=at)

    def _end(self, key: _Key, at: int, told: Mapping[str, _Value], error: str = "") -> None:
        if (span := self._open.pop(key, None)) is not None:
            span.set_attributes(dict(told))
            _mark(span, error)
            span.end(at)

    def close(self) -> None:
        """End what is open, send everything, and say in one line if the collector did not take it."""
        for span in chain(reversed(self._open.values()), (self._task,)):
            span.end()
        self._spans.shutdown()
        self._metrics.shutdown()
        if self._complaint.text:
            logging.getLogger(__name__).warning("telemetry was not sent: %s", self._complaint.text)


class _Complaint(logging.Handler):
    text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = self.text or to_one_line(record.getMessage(), 200)


def _name_operation(name: str, told: Mapping[str, _Value]) -> dict[str, _Value]:
    return {"gen_ai.operation.name": name, **told}


def _count_tokens(usage: Usage) -> dict[str, _Value]:
    """Return the tokens of a usage; by the conventions those of a cache are input too."""
    return {
        "gen_ai.usage.input_tokens": usage.input + usage.cache_read + usage.cache_write,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
    }


def _mark(span: Span, error: str) -> None:
    if error:
        span.set_status(StatusCode.ERROR, error)
        span.set_attribute("error.type", error)
